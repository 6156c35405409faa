// Reads a JSON list of trainings, {callback, options, losses, learning_rate}, and prints the callback's decisions in
// each: the learning rates of the epochs that ran; the final weight, which counts steps unless the callback restores
// it; and whether a training resumed after each epoch decides the same.
//
// usage: callback_decisions < TRAININGS
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "syncline/session.h"
#include "syncline/training/callbacks/early_stopping.h"
#include "syncline/training/callbacks/history.h"
#include "syncline/training/callbacks/learning_rate.h"
#include "tests/runtime/training/callbacks/scripted_fit.h"

namespace {

using namespace syncline;
using namespace syncline::training;
using nlohmann::json;

Mode mode_of(const json& options) {
  const auto mode = options.at("mode").get<std::string>();
  return mode == "min" ? Mode::kMin : mode == "max" ? Mode::kMax : Mode::kAuto;
}

std::unique_ptr<Callback> make(const std::string& callback, const json& options, const ScriptedFit& fit) {
  const auto monitor = options.at("monitor").get<std::string>();
  const auto min_delta = options.at("min_delta").get<double>();
  const auto patience = options.at("patience").get<std::int64_t>();
  if (callback == "ReduceLROnPlateau")
    return std::make_unique<ReduceLROnPlateau>(
        fit.learning_rate, ReduceLROnPlateauOptions{.monitor = monitor,
                                                    .factor = options.at("factor").get<double>(),
                                                    .patience = patience,
                                                    .mode = mode_of(options),
                                                    .min_delta = min_delta,
                                                    .cooldown = options.at("cooldown").get<std::int64_t>(),
                                                    .min_lr = options.at("min_lr").get<double>()});
  EarlyStoppingOptions stopping{
      .monitor = monitor, .min_delta = min_delta, .patience = patience, .mode = mode_of(options)};
  if (!options.at("baseline").is_null()) stopping.baseline = options["baseline"].get<double>();
  if (options.at("restore_best_weights").get<bool>()) stopping.restore = {fit.weight};
  return std::make_unique<EarlyStopping>(std::move(stopping));
}

// null stands for NaN, which JSON cannot express.
std::vector<double> losses_of(const json& list) {
  std::vector<double> losses;
  for (const json& loss : list)
    losses.push_back(loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>());
  return losses;
}

// With `cut`, a new callback continues from the previous one's state after each epoch.
json decisions(const json& training, bool cut) {
  Session session(1);
  const SessionScope scope(session);
  const json& options = training.at("options");
  ScriptedFit fit(losses_of(training.at("losses")), options.at("monitor").get<std::string>(),
                  training.at("learning_rate").get<double>());
  struct Rates : Callback {
    const ScriptedFit& fit;
    std::vector<double> seen;
    explicit Rates(const ScriptedFit& of) : fit(of) {}
    void on_epoch_end(Fit&, std::int64_t, Logs&) override { seen.push_back(get_value(fit.learning_rate).item()); }
  } rates(fit);
  auto callback = make(training.at("callback").get<std::string>(), options, fit);
  FitState state = fit.run({callback.get(), &rates}, nullptr, cut ? 1 : 0);
  while (cut) {
    auto next = make(training["callback"].get<std::string>(), options, fit);
    const auto* before = dynamic_cast<EarlyStopping*>(callback.get());
    const auto* after = dynamic_cast<EarlyStopping*>(next.get());
    for (std::size_t i = 0; before != nullptr && i < before->kept().size(); ++i)
      set_value(after->kept()[i], get_value(before->kept()[i]));
    next->set_state(callback->state());
    callback = std::move(next);
    const std::int64_t epoch = state.counts.epoch;
    state = fit.run({callback.get(), &rates}, &state, 1);
    if (state.counts.epoch == epoch) break;
  }
  return {{"rates", rates.seen}, {"weight", get_value(fit.weight).item()}};
}

}  // namespace

int main() {
  try {
    json all = json::array();
    for (const json& training : json::parse(std::cin)) {
      json whole = decisions(training, false);
      whole["same_when_cut"] = decisions(training, true) == whole;
      all.push_back(std::move(whole));
    }
    std::cout << all.dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "callback_decisions: " << error.what() << '\n';
    return 1;
  }
}
