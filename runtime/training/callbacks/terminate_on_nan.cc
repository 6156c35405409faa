#include "syncline/training/callbacks/terminate_on_nan.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/training/say.h"
#include "syncline/training/first_rank.h"
#include "syncline/training/fit.h"

namespace syncline::training {

void TerminateOnNaN::on_step_end(Fit& fit, const Logs& logs) {
  const double loss = logs.monitored("TerminateOnNaN", monitor_);
  if (std::isfinite(loss)) return;
  const io::TrainingState& counts = fit.counts();
  if (is_first(communicator_))
    say(fmt::format("the {} of step {} of epoch {} is {}: the training ends", monitor_, counts.step, counts.epoch + 1,
                    loss));
  fit.stop();
}

}  // namespace syncline::training
