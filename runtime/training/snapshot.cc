#include "syncline/training/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "runtime/placement/strategy.h"
#include "runtime/training/say.h"
#include "syncline/error.h"
#include "syncline/session.h"
#include "syncline/training/first_rank.h"

namespace syncline::training {
namespace {

constexpr const char* kSums = "epoch_sums";
constexpr const char* kCallback = "callback/";
constexpr const char* kRandomRuns = "random_runs";
constexpr std::string_view kParts = "parts/";

std::string name_of(const Variable& v) { return v.name() + ":0"; }

io::Weight weight_of(const Variable& v) { return {name_of(v), v.state().value()}; }

// The variables whose values differ between ranks. Right after an update the accumulated sums are left out: the next
// call overwrites them.
std::vector<Variable> divided_of(const SavedModel& model) {
  const bool empty = !model.accumulated.empty() && model.accumulated[0].state().value().item() == 0;
  std::vector<Variable> all = variables_of(model);
  if (empty) all.resize(all.size() - model.accumulated.size());
  const Strategy* strategy = Session::current().strategy();
  const bool has_parts = strategy != nullptr && strategy->parts() > 0;
  std::erase_if(all, [&](const Variable& v) { return !v.state().partial() || has_parts; });
  return all;
}

// The variables whose rows are split between nodes.
std::vector<Variable> split_of(const SavedModel& model) {
  std::vector<Variable> all = variables_of(model);
  std::erase_if(all, [](const Variable& v) { return !v.state().is_split(); });
  return all;
}

// JSON has no infinity and no NaN: they are written as text. Earlier versions wrote null.
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

// Buffers for add_parts. A rank that keeps nothing receives all parts in the same scratch buffer.
struct PartsRoom {
  PartsRoom(const std::vector<Variable>& divided, int ranks, bool keep) {
    std::size_t largest = 0;
    for (const Variable& v : divided) {
      Shape shape = v.shape();
      shape.insert(0, ranks);
      largest = std::max(largest, v.state().value().bytes());
      if (keep) parts.push_back(Array::uninitialized(v.dtype(), shape));
      if (keep) sums.push_back(Array::uninitialized(v.dtype(), v.shape()));
    }
    if (!keep) scratch = Array::uninitialized(DType::kUint8, {static_cast<std::int64_t>(largest)});
  }
  std::vector<Array> parts, sums;
  Array scratch;
};

// Allocates on all ranks, or throws std::bad_alloc on all: otherwise ranks would wait for one without memory.
PartsRoom make_room(const std::vector<Variable>& divided, comm::Communicator& wire, bool keep) {
  std::optional<PartsRoom> room;
  try {
    room.emplace(divided, wire.size(), keep);
  } catch (const std::bad_alloc&) {
  }
  if (greatest_of_all(&wire, "whether a rank has no memory for a checkpoint", room ? 0 : 1) > 0) throw std::bad_alloc();
  return std::move(*room);
}

// Replaces this rank's part by the value.
void put_value(const std::string& name, const Array& value, io::Checkpoint& checkpoint) {
  const auto put = [&](std::vector<io::Weight>& weights) {
    for (io::Weight& weight : weights)
      if (weight.name == name) weight.value = value;
  };
  for (io::Layer& layer : checkpoint.layers) put(layer.weights);
  put(checkpoint.optimizer);
}

// Gathers the ranks' parts of divided variables, and their sums, on the ranks that `keep` them. One broadcast per
// variable and rank: the other ranks have memory for one part only.
void add_parts(const std::vector<Variable>& divided, comm::Communicator& wire, bool keep, io::Checkpoint& checkpoint) {
  static const comm::Tag tag{.names = comm::remember_names("what each rank holds of an accumulated sum")};
  PartsRoom room = make_room(divided, wire, keep);
  for (std::size_t i = 0; i < divided.size(); ++i) {
    const Array& own = divided[i].state().value();
    // A value set by hand is rank 0's and not shared yet: other ranks contribute zeros.
    const bool nothing = wire.rank() > 0 && divided[i].state().changed();
    const auto put_own = [&](std::byte* to) {
      if (nothing) std::memset(to, 0, own.bytes());
      else std::memcpy(to, own.raw(), own.bytes());
    };
    for (int r = 0; r < wire.size(); ++r) {
      std::byte* part = keep ? room.parts[i].raw() + static_cast<std::size_t>(r) * own.bytes() : room.scratch.raw();
      if (r == wire.rank()) put_own(part);
      wire.wait(wire.broadcast(tag, part, static_cast<std::int64_t>(own.bytes()), r));
    }
    std::byte* sum = keep ? room.sums[i].raw() : room.scratch.raw();
    put_own(sum);
    wire.wait(wire.all_reduce(tag, sum, own.size(), own.dtype(), comm::Reduce::kSum));
    if (!keep) continue;
    put_value(name_of(divided[i]), room.sums[i], checkpoint);
    checkpoint.optimizer.push_back({std::string(kParts) + name_of(divided[i]), room.parts[i]});
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
  for (const auto* more : {&model.optimizer, &model.accumulated}) all.insert(all.end(), more->begin(), more->end());
  return all;
}

bool is_divided(const SavedModel& model) { return !divided_of(model).empty() || !split_of(model).empty(); }

io::Checkpoint snapshot(const SavedModel& model, const Fit& fit, comm::Communicator* wire, bool keep) {
  io::Checkpoint checkpoint;
  checkpoint.model = model.name;
  const FitState state = fit.state();
  checkpoint.state = state.counts;
  for (const NamedLayer& layer : model.layers) {
    checkpoint.layers.push_back({layer.name, {}});
    for (const Variable& v : layer.weights) checkpoint.layers.back().weights.push_back(weight_of(v));
  }
  for (const auto* more : {&model.optimizer, &model.accumulated})
    for (const Variable& v : *more) checkpoint.optimizer.push_back(weight_of(v));
  const std::vector<Variable> divided = divided_of(model);
  if (wire != nullptr && wire->size() > 1 && !divided.empty()) add_parts(divided, *wire, keep, checkpoint);
  const std::vector<Variable> split = split_of(model);
  hold_values(split, keep);
  for (const Variable& v : split)
    if (keep) put_value(name_of(v), *v.state().whole(), checkpoint);
  release_values(split);
  if (!state.sums.empty()) checkpoint.notes[kSums] = text_of(state.sums);
  if (!state.random_runs.empty()) checkpoint.notes[kRandomRuns] = nlohmann::json(state.random_runs).dump();
  for (const Callback* callback : fit.options().callbacks)
    if (!callback->name().empty()) checkpoint.notes[kCallback + callback->name()] = callback->state();
  return checkpoint;
}

// The parts follow the model's own weights, whatever those are called.
std::vector<io::Weight> take_parts(io::Checkpoint& checkpoint, const SavedModel& model) {
  std::vector<io::Weight>& all = checkpoint.optimizer;
  const std::size_t own = model.optimizer.size() + model.accumulated.size();
  const auto first = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(std::min(own, all.size())), all.end(),
                                  [](const io::Weight& w) { return w.name.starts_with(kParts); });
  std::vector<io::Weight> parts(std::make_move_iterator(first), std::make_move_iterator(all.end()));
  all.erase(first, all.end());
  return parts;
}

void restore_parts(const std::vector<io::Weight>& parts, const SavedModel& model, comm::Communicator& wire) {
  const std::vector<Variable> partial = divided_of(model);
  bool fit = parts.size() == partial.size();
  for (std::size_t i = 0; fit && i < parts.size(); ++i) {
    Shape shape = partial[i].shape();
    shape.insert(0, wire.size());
    fit = parts[i].name == std::string(kParts) + name_of(partial[i]) && parts[i].value.dtype() == partial[i].dtype() &&
          parts[i].value.shape() == shape;
  }
  copy_from_first_rank(&wire, "whether a checkpoint has what each rank holds", &fit, sizeof fit);
  if (!fit) {
    if (is_first(&wire) && parts.empty())
      say("the checkpoint has accumulated gradients as one sum, because an earlier version or a single process wrote "
          "it: the result may not be bitwise identical");
    return;
  }
  for (std::size_t i = 0; i < partial.size(); ++i) {
    Array& own = partial[i].state().value();
    Array part = Array::uninitialized(own.dtype(), own.shape());
    for (int r = 0; r < wire.size(); ++r) {
      if (is_first(&wire))
        std::memcpy(part.raw(), parts[i].value.raw() + static_cast<std::size_t>(r) * own.bytes(), own.bytes());
      copy_from_first_rank(&wire, "what each rank holds of an accumulated sum", part.raw(), part.bytes());
      if (r == wire.rank()) std::memcpy(own.raw(), part.raw(), own.bytes());
    }
    partial[i].state().set_changed(false);  // each rank now has its own part
  }
}

io::ModelSpec spec_of(const SavedModel& model) {
  const auto spec = [](const Variable& v) { return io::WeightSpec{name_of(v), v.dtype(), v.shape()}; };
  io::ModelSpec all;
  for (const NamedLayer& layer : model.layers) {
    all.layers.push_back({layer.name, {}});
    for (const Variable& v : layer.weights) all.layers.back().weights.push_back(spec(v));
  }
  for (const auto* more : {&model.optimizer, &model.accumulated})
    for (const Variable& v : *more) all.optimizer.push_back(spec(v));
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
    fail<IoError>(path, ": its notes are not from a training: ", error.what());
  }
  const std::vector<Variable> variables = variables_of(model);
  std::vector<std::pair<Variable, Value>> pairs;
  for (std::size_t i = 0; i < variables.size(); ++i) pairs.emplace_back(variables[i], values[i]);
  batch_set_value(pairs);
}

}  // namespace syncline::training
