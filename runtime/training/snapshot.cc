#include "runtime/training/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "runtime/training/first_rank.h"

namespace syncline::training {
namespace {

constexpr const char* kSums = "epoch_sums";
constexpr const char* kCallback = "callback/";
constexpr const char* kRandomRuns = "random_runs";
constexpr std::string_view kParts = "parts/";

std::string name_of(const Variable& v) { return v.name() + ":0"; }

io::Weight weight_of(const Variable& v) { return {name_of(v), v.state().partial() ? get_value(v) : v.state().value()}; }

// JSON has no infinite numbers and no NaN, which stand as text; before, they stood as null.
std::string text_of(const std::vector<double>& sums) {
  nlohmann::json items = nlohmann::json::array();
  for (const double sum : sums)
    items.push_back(std::isfinite(sum) ? nlohmann::json(sum) : nlohmann::json(fmt::format("{}", sum)));
  return items.dump();
}

double number_of(const nlohmann::json& item) {
  if (item.is_null()) return std::numeric_limits<double>::quiet_NaN();
  return item.is_string() ? std::strtod(item.get_ref<const std::string&>().c_str(), nullptr) : item.get<double>();
}

// What each rank holds of partial variables, all of it on the ranks that `keep` it. One variable and rank at a time:
// the others have memory for no more.
void add_parts(const SavedModel& model, comm::Communicator& wire, bool keep, io::Checkpoint& checkpoint) {
  static const comm::Tag tag{.names = comm::remember_names("what each rank holds of an accumulated sum")};
  for (const Variable& v : variables_of(model)) {
    if (!v.state().partial()) continue;
    const Array& own = v.state().value();
    Shape shape = own.shape();
    shape.insert(0, keep ? wire.size() : 1);
    Array parts = Array::uninitialized(own.dtype(), shape);
    for (int r = 0; r < wire.size(); ++r) {
      std::byte* part = parts.raw() + (keep ? static_cast<std::size_t>(r) * own.bytes() : 0);
      if (r == wire.rank()) std::memcpy(part, own.raw(), own.bytes());
      wire.wait(wire.broadcast(tag, part, static_cast<std::int64_t>(own.bytes()), r));
    }
    if (keep) checkpoint.optimizer.push_back({std::string(kParts) + name_of(v), std::move(parts)});
  }
}

std::vector<double> sums_in(const io::Checkpoint& checkpoint) {
  std::vector<double> sums;
  if (const auto found = checkpoint.notes.find(kSums); found != checkpoint.notes.end())
    for (const nlohmann::json& item : nlohmann::json::parse(found->second)) sums.push_back(number_of(item));
  return sums;
}

Session::RandomRuns random_runs_in(const io::Checkpoint& checkpoint) {
  const auto found = checkpoint.notes.find(kRandomRuns);
  if (found == checkpoint.notes.end()) return {};
  return nlohmann::json::parse(found->second).get<Session::RandomRuns>();
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

io::Checkpoint snapshot(const SavedModel& model, const Fit& fit, comm::Communicator* wire, bool keep) {
  io::Checkpoint checkpoint;
  checkpoint.model = model.name;
  checkpoint.state = fit.state().counts;
  for (const NamedLayer& layer : model.layers) {
    checkpoint.layers.push_back({layer.name, {}});
    for (const Variable& v : layer.weights) checkpoint.layers.back().weights.push_back(weight_of(v));
  }
  for (const Variable& v : model.optimizer) checkpoint.optimizer.push_back(weight_of(v));
  if (wire != nullptr && wire->size() > 1) add_parts(model, *wire, keep, checkpoint);
  if (!fit.state().sums.empty()) checkpoint.notes[kSums] = text_of(fit.state().sums);
  if (!fit.state().random_runs.empty()) checkpoint.notes[kRandomRuns] = nlohmann::json(fit.state().random_runs).dump();
  for (const Callback* callback : fit.options().callbacks)
    if (!callback->name().empty()) checkpoint.notes[kCallback + callback->name()] = callback->state();
  return checkpoint;
}

std::vector<io::Weight> take_parts(io::Checkpoint& checkpoint) {
  std::vector<io::Weight>& all = checkpoint.optimizer;
  const auto first =
      std::find_if(all.begin(), all.end(), [](const io::Weight& w) { return w.name.starts_with(kParts); });
  std::vector<io::Weight> parts(std::make_move_iterator(first), std::make_move_iterator(all.end()));
  all.erase(first, all.end());
  return parts;
}

void restore_parts(const std::vector<io::Weight>& parts, const SavedModel& model, comm::Communicator& wire) {
  std::vector<Variable> partial = variables_of(model);
  std::erase_if(partial, [](const Variable& v) { return !v.state().partial(); });
  bool fit = parts.size() == partial.size();
  for (std::size_t i = 0; fit && i < parts.size(); ++i) {
    Shape shape = partial[i].shape();
    shape.insert(0, wire.size());
    fit = parts[i].name == std::string(kParts) + name_of(partial[i]) && parts[i].value.dtype() == partial[i].dtype() &&
          parts[i].value.shape() == shape;
  }
  copy_from_first_rank(&wire, "whether a checkpoint has what each rank holds", &fit, sizeof fit);
  if (!fit) return;
  for (std::size_t i = 0; i < partial.size(); ++i) {
    Array& own = partial[i].state().value();
    Array part = Array::uninitialized(own.dtype(), own.shape());
    for (int r = 0; r < wire.size(); ++r) {
      if (is_first(&wire))
        std::memcpy(part.raw(), parts[i].value.raw() + static_cast<std::size_t>(r) * own.bytes(), own.bytes());
      copy_from_first_rank(&wire, "what each rank holds of an accumulated sum", part.raw(), part.bytes());
      if (r == wire.rank()) std::memcpy(own.raw(), part.raw(), own.bytes());
    }
    partial[i].state().set_changed(false);  // it is not rank 0's alone
  }
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
    fit.set_state({checkpoint.state, sums_in(checkpoint), random_runs_in(checkpoint)});
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
