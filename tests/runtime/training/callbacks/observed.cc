// Trains with every callback that writes files, stops after step 8, resumes from step 6, and prints the expected
// contents of the files for foreign_readers_test.py.
//
// usage: observed_training FOLDER
#include <iostream>
#include <nlohmann/json.hpp>

#include "syncline/session.h"
#include "syncline/training/callbacks/csv_logger.h"
#include "syncline/training/callbacks/learning_rate.h"
#include "syncline/training/callbacks/metrics_exporter.h"
#include "syncline/training/callbacks/tensor_board.h"
#include "tests/runtime/training/small_fit.h"

namespace {

using namespace syncline;
using namespace syncline::training;
using nlohmann::json;

class Recorder : public Callback {
 public:
  json steps = json::array(), epochs = json::array();
  FitState first;  // after the first epoch
  std::int64_t pause_at = 0;

  void on_step_end(Fit& fit, const Logs& logs) override {
    steps.push_back({{"step", fit.counts().global_step}, {"logs", object(logs)}});
    if (fit.counts().global_step == pause_at) fit.pause();
  }
  void on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) override {
    epochs.push_back({{"epoch", epoch}, {"step", fit.counts().global_step}, {"logs", object(logs)}});
    if (epoch == 0) first = fit.state();
  }

 private:
  static json object(const Logs& logs) {
    json result = json::object();
    for (const auto& [name, value] : logs) result[name] = value;
    return result;
  }
};

class OddName : public Callback {
  void on_epoch_end(Fit&, std::int64_t, Logs& logs) override { logs.set(R"(an "odd", \ name)", 1.0 / 3); }
};

// One process's part of the training.
void train(const std::string& folder, SmallFit& small, Recorder& recorder, const FitState* state) {
  CsvLogger csv(folder + "/epochs.csv", nullptr);
  TensorBoard board({.folder = folder});
  MetricsExporter metrics({.path = folder + "/training.prom", .checkpoints = folder});
  OddName odd;
  const ReduceLROnPlateauOptions plateau{.monitor = "loss"};
  ReduceLROnPlateau reduce(small.optimizer.learning_rate, plateau);
  FitOptions options = small.fit->options();
  options.callbacks = {&odd, &reduce, &csv, &board, &metrics, &recorder};
  Fit fit(options);
  if (state != nullptr) fit.set_state(*state);
  fit.run();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::cerr << "usage: observed_training FOLDER\n", 2;
  try {
    Session session(3);
    const SessionScope scope(session);
    SmallFit small(3, {});
    Recorder before, after;
    before.pause_at = 8;
    train(argv[1], small, before, nullptr);
    train(argv[1], small, after, &before.first);
    json steps = json::array();
    for (const json& step : before.steps)
      if (step["step"] <= before.first.counts.global_step) steps.push_back(step);
    steps.insert(steps.end(), after.steps.begin(), after.steps.end());
    json epochs = before.epochs;
    epochs.insert(epochs.end(), after.epochs.begin(), after.epochs.end());
    std::cout << json{{"steps", steps}, {"epochs", epochs}}.dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "observed_training: " << error.what() << '\n';
    return 1;
  }
}
