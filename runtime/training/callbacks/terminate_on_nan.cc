#include "runtime/training/callbacks/terminate_on_nan.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "runtime/training/first_rank.h"
#include "runtime/training/fit.h"

namespace syncline::training {

void TerminateOnNaN::on_step_end(Fit& fit, const Logs& logs) {
  const auto loss = logs.find("loss");
  if (!loss || std::isfinite(*loss)) return;
  if (is_first(wire_))
    fmt::print(stderr, "syncline: the loss of step {} of epoch {} is {}: the training ends\n", fit.state().counts.step,
               fit.state().counts.epoch + 1, *loss);
  fit.stop();
}

}  // namespace syncline::training
