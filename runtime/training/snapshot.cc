#include "runtime/training/snapshot.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "runtime/session.h"

namespace syncline::training {
namespace {

constexpr const char* kSums = "epoch_sums";
constexpr const char* kCallback = "callback/";
constexpr const char* kRandomRuns = "random_runs";

std::string name_of(const Variable& v) { return v.name() + ":0"; }

io::Weight weight_of(const Variable& v) { return {name_of(v), v.state().partial() ? get_value(v) : v.state().value()}; }

// JSON knows no NaN and writes null.
double number_of(const nlohmann::json& item) {
  return item.is_null() ? std::numeric_limits<double>::quiet_NaN() : item.get<double>();
}

std::vector<double> sums_in(const io::Checkpoint& checkpoint) {
  std::vector<double> sums;
  if (const auto found = checkpoint.notes.find(kSums); found != checkpoint.notes.end())
    for (const nlohmann::json& item : nlohmann::json::parse(found->second)) sums.push_back(number_of(item));
  return sums;
}

// Checkpoints of earlier versions have none: there all random operations counted by the state's random_step.
void restore_random_runs(const io::Checkpoint& checkpoint) {
  if (const auto found = checkpoint.notes.find(kRandomRuns); found != checkpoint.notes.end())
    Session::current().set_random_runs(nlohmann::json::parse(found->second).get<Session::RandomRuns>());
}

}  // namespace

std::vector<Variable> variables_of(const SavedModel& model) {
  std::vector<Variable> all;
  for (const NamedLayer& layer : model.layers) all.insert(all.end(), layer.weights.begin(), layer.weights.end());
  all.insert(all.end(), model.optimizer.begin(), model.optimizer.end());
  return all;
}

bool has_partial(const SavedModel& model) {
  for (const Variable& v : variables_of(model))
    if (v.state().partial()) return true;
  return false;
}

io::Checkpoint snapshot(const SavedModel& model, const Fit& fit) {
  io::Checkpoint checkpoint;
  checkpoint.model = model.name;
  checkpoint.state = fit.state().counts;
  for (const NamedLayer& layer : model.layers) {
    checkpoint.layers.push_back({layer.name, {}});
    for (const Variable& v : layer.weights) checkpoint.layers.back().weights.push_back(weight_of(v));
  }
  for (const Variable& v : model.optimizer) checkpoint.optimizer.push_back(weight_of(v));
  if (!fit.state().sums.empty()) checkpoint.notes[kSums] = nlohmann::json(fit.state().sums).dump();
  if (const Session::RandomRuns runs = Session::current().random_runs(); !runs.empty())
    checkpoint.notes[kRandomRuns] = nlohmann::json(runs).dump();
  for (const Callback* callback : fit.options().callbacks)
    if (!callback->name().empty()) checkpoint.notes[kCallback + callback->name()] = callback->state();
  return checkpoint;
}

io::ModelSpec spec_of(const SavedModel& model) {
  const auto spec = [](const Variable& v) { return io::WeightSpec{name_of(v), v.dtype(), v.shape()}; };
  io::ModelSpec all;
  for (const NamedLayer& layer : model.layers) {
    all.layers.push_back({layer.name, {}});
    for (const Variable& v : layer.weights) all.layers.back().weights.push_back(spec(v));
  }
  for (const Variable& v : model.optimizer) all.optimizer.push_back(spec(v));
  return all;
}

void restore(const std::string& path, const io::Checkpoint& checkpoint, const std::vector<Array>& values,
             const SavedModel& model, Fit& fit) {
  try {
    for (Callback* callback : fit.options().callbacks)
      if (const auto note = checkpoint.notes.find(kCallback + callback->name());
          !callback->name().empty() && note != checkpoint.notes.end())
        callback->set_state(note->second);
    fit.set_state({checkpoint.state, sums_in(checkpoint)});
    restore_random_runs(checkpoint);
  } catch (const ValueError& error) {
    fail<IoError>(path, ": ", error.what());
  } catch (const nlohmann::json::exception& error) {
    fail<IoError>(path, ": its notes are not those of a training: ", error.what());
  }
  const std::vector<Variable> variables = variables_of(model);
  std::vector<std::pair<Variable, Value>> pairs;
  for (std::size_t i = 0; i < variables.size(); ++i) pairs.emplace_back(variables[i], values[i]);
  batch_set_value(pairs);
}

}  // namespace syncline::training
