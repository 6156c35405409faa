#include "syncline/training/job.h"

#include "runtime/training/job_saves.h"
#include "syncline/error.h"
#include "syncline/training/callbacks/monitor.h"

namespace syncline::training {
namespace {

JobOptions checked(JobOptions options) {
  if (options.folder.empty() || options.save_every < 0)
    fail<ValueError>("Job: ", options.folder.empty() ? "no folder" : "save_every is negative",
                     "; give a folder for the checkpoints and 0 or more steps between them");
  const int ranks = options.communicator == nullptr ? 1 : options.communicator->size();
  if (options.shards < 1 || options.shards > ranks)
    fail<ValueError>("Job: shards is ", options.shards, "; give 1 to ", ranks, ", the number of ranks");
  options.keep.higher_is_better = Monitor("Job", options.monitor, options.mode).higher_is_better() ||
                                  (options.mode == Mode::kAuto && options.keep.higher_is_better);
  return options;
}

}  // namespace

Job::Job(JobOptions options) : saves_(std::make_unique<Saves>(checked(std::move(options)))) {}

Job::~Job() = default;

std::string Job::state() const { return saves_->state(); }
void Job::set_state(const std::string& state) { saves_->set_state(state); }
void Job::on_train_begin(Fit& fit) { saves_->on_train_begin(fit); }
void Job::on_step_begin(Fit& fit) { saves_->on_step_begin(fit); }
void Job::on_step_end(Fit& fit, const Logs& logs) { saves_->on_step_end(fit, logs); }
void Job::on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) { saves_->on_epoch_end(fit, epoch, logs); }
void Job::on_train_end(Fit& fit) { saves_->on_train_end(fit); }
void Job::on_failure(Fit& fit, const std::exception& error) noexcept { saves_->on_failure(fit, error); }

}  // namespace syncline::training
