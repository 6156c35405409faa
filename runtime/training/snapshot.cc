#include "syncline/training/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
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

// A split variable's rows are gathered later.
io::Weight weight_of(const Variable& v) {
  const bool split = v.state().is_split();
  return {name_of(v), split ? io::absent_array(v.dtype(), v.shape()) : v.state().value()};
}

// The callbacks with a state, by the names of their notes. Those of one name are counted in their order.
std::vector<std::pair<std::string, Callback*>> callbacks_with_state(const Fit& fit) {
  std::vector<std::pair<std::string, Callback*>> found;
  std::map<std::string, int> number;
  for (Callback* callback : fit.options().callbacks) {
    const std::string name = callback->name();
    if (name.empty()) continue;
    const int n = ++number[name];
    found.emplace_back(kCallback + name + (n > 1 ? join_text("#", n) : ""), callback);
  }
  return found;
}

io::Weight parts_of(const Variable& v, int ranks) {
  Shape shape = v.shape();
  shape.insert(0, ranks);
  return {std::string(kParts) + name_of(v), io::absent_array(v.dtype(), shape)};
}

// The weights in the order of variables_of, followed by the parts.
std::vector<io::Weight*> weights_of(io::Checkpoint& checkpoint) {
  std::vector<io::Weight*> all;
  for (io::Layer& layer : checkpoint.layers)
    for (io::Weight& weight : layer.weights) all.push_back(&weight);
  for (io::Weight& weight : checkpoint.optimizer) all.push_back(&weight);
  return all;
}

// The positions in variables_of(model) of variables whose values differ between ranks. Right after an update the
// accumulated sums are left out: the next call overwrites them.
std::vector<std::size_t> divided_in(const std::vector<Variable>& variables, const SavedModel& model) {
  const Strategy* strategy = Session::current().strategy();
  const bool has_parts = strategy != nullptr && strategy->parts() > 0;
  if (has_parts) return {};
  const bool empty = !model.accumulated.empty() && model.accumulated[0].state().value().item() == 0;
  const std::size_t end = variables.size() - (empty ? model.accumulated.size() : 0);
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < end; ++i)
    if (variables[i].state().partial()) at.push_back(i);
  return at;
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

// Throws std::bad_alloc on all ranks if one has no memory: otherwise ranks would wait for it.
template <class Allocate>
void allocate_on_all(comm::Communicator& communicator, Allocate allocate) {
  bool done = true;
  try {
    allocate();
  } catch (const std::bad_alloc&) {
    done = false;
  }
  if (greatest_of_all(&communicator, "whether a rank has no memory for a checkpoint", done ? 0 : 1) > 0)
    throw std::bad_alloc();
}

struct DividedVariable {
  Variable variable;
  io::Weight *sum, *parts;  // of all ranks; null where another rank keeps them
};

// Gathers the ranks' parts of divided variables, and their sums. One broadcast per variable and rank: a rank that keeps
// neither has memory for one part only.
void add_sums(const std::vector<DividedVariable>& divided, comm::Communicator& communicator) {
  static const comm::Tag tag{.names = comm::remember_names("what each rank holds of an accumulated sum")};
  Array scratch;
  allocate_on_all(communicator, [&] {
    std::size_t largest = 0;
    for (const auto& [variable, sum, parts] : divided) {
      for (io::Weight* weight : {sum, parts})
        if (weight != nullptr) weight->value = Array::uninitialized(weight->value.dtype(), weight->value.shape());
      largest = std::max(largest, variable.state().value().bytes());
    }
    scratch = Array::uninitialized(DType::kUint8, {static_cast<std::int64_t>(largest)});
  });
  for (const auto& [variable, sum, parts] : divided) {
    const Array& own = variable.state().value();
    // A value set by hand is rank 0's and not shared yet: other ranks contribute zeros.
    const bool nothing = communicator.rank() > 0 && !variable.state().agreed();
    const auto put_own = [&](std::byte* to) {
      if (nothing) std::memset(to, 0, own.bytes());
      else std::memcpy(to, own.raw(), own.bytes());
    };
    for (int r = 0; r < communicator.size(); ++r) {
      std::byte* part = scratch.raw();
      if (parts != nullptr) part = parts->value.raw() + static_cast<std::size_t>(r) * own.bytes();
      if (r == communicator.rank()) put_own(part);
      communicator.wait(communicator.broadcast(tag, part, static_cast<std::int64_t>(own.bytes()), r));
    }
    std::byte* total = sum != nullptr ? sum->value.raw() : scratch.raw();
    put_own(total);
    communicator.wait(communicator.all_reduce(tag, total, own.size(), own.dtype(), comm::Reduce::kSum));
  }
}

// Gathers divided values, and leaves out those of other shards.
void add_values(const SavedModel& model, comm::Communicator* communicator, std::optional<io::Shard> shard,
                io::Checkpoint& checkpoint) {
  const std::vector<Variable> variables = variables_of(model);
  std::vector<std::size_t> divided;
  if (communicator != nullptr && communicator->size() > 1) divided = divided_in(variables, model);
  for (const std::size_t i : divided) checkpoint.optimizer.push_back(parts_of(variables[i], communicator->size()));
  const std::vector<io::Weight*> weights = weights_of(checkpoint);
  std::vector<bool> own(weights.size());
  if (shard) own = io::weights_in(*shard, checkpoint);
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (Array& value = weights[i]->value; !own[i]) value = io::absent_array(value.dtype(), value.shape());
  const auto kept = [&](std::size_t i) { return own[i] ? weights[i] : nullptr; };
  std::vector<DividedVariable> sums;
  for (std::size_t i = 0; i < divided.size(); ++i)
    sums.push_back({variables[divided[i]], kept(divided[i]), kept(variables.size() + i)});
  if (!sums.empty()) add_sums(sums, *communicator);
  own.resize(variables.size());
  hold_values(variables, own);
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (const Array* whole = variables[i].state().whole(); whole != nullptr && own[i]) weights[i]->value = *whole;
  release_values(variables);
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

bool is_divided(const SavedModel& model) {
  const std::vector<Variable> all = variables_of(model);
  return !divided_in(all, model).empty() ||
         std::any_of(all.begin(), all.end(), [](const Variable& v) { return v.state().is_split(); });
}

io::Checkpoint snapshot(const SavedModel& model, const Fit& fit, comm::Communicator* communicator,
                        std::optional<io::Shard> shard) {
  io::Checkpoint checkpoint;
  checkpoint.model = model.name;
  const FitState state = fit.state();
  checkpoint.state = state.counts;
  if (!state.sums.empty()) checkpoint.notes[kSums] = text_of(state.sums);
  if (!state.random_runs.empty()) checkpoint.notes[kRandomRuns] = nlohmann::json(state.random_runs).dump();
  for (const auto& [note, callback] : callbacks_with_state(fit)) checkpoint.notes[note] = callback->state();
  for (const NamedLayer& layer : model.layers) {
    checkpoint.layers.push_back({layer.name, {}});
    for (const Variable& v : layer.weights) checkpoint.layers.back().weights.push_back(weight_of(v));
  }
  for (const auto* more : {&model.optimizer, &model.accumulated})
    for (const Variable& v : *more) checkpoint.optimizer.push_back(weight_of(v));
  add_values(model, communicator, shard, checkpoint);
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

void restore_parts(const std::vector<io::Weight>& parts, const SavedModel& model, comm::Communicator& communicator) {
  std::vector<Variable> partial;
  const std::vector<Variable> variables = variables_of(model);
  for (const std::size_t i : divided_in(variables, model)) partial.push_back(variables[i]);
  bool fit = parts.size() == partial.size();
  for (std::size_t i = 0; fit && i < parts.size(); ++i) {
    const io::Weight wanted = parts_of(partial[i], communicator.size());
    fit = parts[i].name == wanted.name && parts[i].value.dtype() == wanted.value.dtype() &&
          parts[i].value.shape() == wanted.value.shape();
  }
  copy_from_first_rank(&communicator, "whether a checkpoint has what each rank holds", &fit, sizeof fit);
  if (!fit) {
    if (is_first(&communicator) && parts.empty())
      say("the checkpoint has accumulated gradients as one sum, because an earlier version or a single process wrote "
          "it: the result may not be bitwise identical");
    return;
  }
  for (std::size_t i = 0; i < partial.size(); ++i) {
    Array& own = partial[i].state().value();
    Array part = Array::uninitialized(own.dtype(), own.shape());
    for (int r = 0; r < communicator.size(); ++r) {
      if (is_first(&communicator))
        std::memcpy(part.raw(), parts[i].value.raw() + static_cast<std::size_t>(r) * own.bytes(), own.bytes());
      copy_from_first_rank(&communicator, "what each rank holds of an accumulated sum", part.raw(), part.bytes());
      if (r == communicator.rank()) std::memcpy(own.raw(), part.raw(), own.bytes());
    }
    partial[i].state().set_agreed(true);  // each rank now has its own part
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
    for (const auto& [name, callback] : callbacks_with_state(fit))
      if (const auto note = checkpoint.notes.find(name); note != checkpoint.notes.end())
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
