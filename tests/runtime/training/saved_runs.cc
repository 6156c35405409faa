#include "tests/runtime/training/saved_runs.h"

#include <filesystem>
#include <initializer_list>

#include "syncline/distributed/communicator.h"
#include "syncline/training/callbacks/csv_logger.h"
#include "syncline/training/callbacks/early_stopping.h"
#include "syncline/training/job.h"
#include "syncline/training/resume.h"
#include "tests/io/scratch.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/training/small_fit.h"

namespace syncline::training {
namespace {

constexpr std::uint64_t kSeed = 3;

struct Stop : Requests {
  mutable std::int64_t asked = 0;
  Request pending() const override { return ++asked == kStopAfter ? Request::kStop : Request::kNone; }
  void begins(Request) override {}
  std::string name() const override { return "a test"; }
};

Trained train_rank(comm::Communicator& communicator, const Way& way, const std::string& folder) {
  const auto found = way.resume ? find_checkpoint(folder, &communicator) : nullptr;
  Stop stop;
  Killer killer(kStopAfter);
  EarlyStopping stopping({.monitor = "val_loss", .patience = way.patience, .mode = way.mode});
  CsvLogger csv(folder + "/epochs.csv", &communicator);
  SmallFit small(way.epochs, {});
  const SavedModel model{
      "small", {{"hidden", {small.kernel, small.bias}}, {"top", {small.top}}}, small.optimizer.weights};
  Job job({.folder = folder,
           .keep = {.keep_last = 1},
           .monitor = "val_loss",
           .shards = way.shards,
           .model = model,
           .communicator = &communicator,
           .requests = way.stop ? &stop : nullptr});
  FitOptions options = small.fit->options();
  if (way.kill && communicator.rank() == 0) options.callbacks.push_back(&killer);
  for (Callback* callback : std::initializer_list<Callback*>{&stopping, &csv, &job})
    options.callbacks.push_back(callback);
  Fit fit(options);
  if (found) found->resume(model, fit);
  Trained trained{.begun = small.digest(), .begun_step = fit.counts().global_step, .csv = {}};
  fit.run();
  trained.ended = small.digest();
  return trained;
}

}  // namespace

Trained train(const Way& way, const std::string& folder) {
  std::filesystem::create_directories(folder);
  Trained trained;
  const auto body = [&](comm::Communicator& communicator) {
    const Trained own = train_rank(communicator, way, folder);
    if (communicator.rank() == 0) trained = own;
  };
  syncline::testing::on_ranks(way.ranks, body, {}, kSeed);
  trained.csv = io::read_file(folder + "/epochs.csv");
  return trained;
}

}  // namespace syncline::training
