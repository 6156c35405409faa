#include "runtime/execution/function_plans.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/graph/attrs.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "ops/kernels/digest.h"
#include "runtime/execution/shared_variables.h"
#include "runtime/passes/compile.h"
#include "runtime/placement/agreement.h"
#include "runtime/placement/differing_value.h"
#include "runtime/placement/faults.h"
#include "runtime/placement/strategy.h"
#include "syncline/session.h"
#include "syncline/timeline.h"

namespace syncline {
namespace {

std::string describe(const CompileRequest& request) {
  std::vector<Expr> roots = request.outputs;
  for (const Update& u : request.updates) roots.push_back(u.value);
  return describe_graph(request.name, roots, request.updates);
}

bool overlap(const Array& a, const Array& b) { return a.raw() < b.raw() + b.bytes() && b.raw() < a.raw() + a.bytes(); }

// Replaces values set by hand with rank 0's. The ranks usually set equal values: comparing one digest then avoids a
// broadcast for each of hundreds of variables. A partial variable keeps its value on rank 0 and becomes zero elsewhere.
void share_values(const Session& session, std::span<const std::shared_ptr<VariableState>> variables,
                  const RowShares& shares) {
  Strategy& strategy = *session.strategy();
  std::vector<VariableState*> changed;
  std::uint64_t digest = 0, place = 0;
  for (const auto& state : variables) {
    ++place;
    if (state->agreed()) continue;
    Array& value = state->value();
    if (!state->partial() || !divides_partial_variables(&strategy)) {
      digest = attrs::mix(attrs::mix(digest, place), kernels::digest(value.raw(), value.bytes()));
      changed.push_back(state.get());
      continue;
    }
    if (strategy.rank() != 0) std::memset(value.raw(), 0, value.bytes());
    state->set_agreed(true);
  }
  if (changed.empty()) return;
  const bool equal = all_equal(gather_numbers(strategy, digest, "values set by hand"));
  for (VariableState* state : changed) {
    Array& value = state->value();
    if (!equal) strategy.broadcast("the value set by hand of " + state->name(), value.raw(), value.bytes());
    state->set_agreed(true);
  }
  move_to_shared(session, changed, shares);
}

}  // namespace

std::vector<Array> results_for(const Plan& plan) {
  std::vector<Array> results;
  for (std::size_t i = 0; i < plan.outputs(); ++i)
    results.push_back(Array::uninitialized(plan.output_meta(i).dtype, plan.output_meta(i).shape));
  return results;
}

FunctionPlans::FunctionPlans(std::string name, std::vector<Expr> inputs, std::vector<Expr> outputs,
                             std::vector<Update> updates)
    : name_(std::move(name)),
      fed_(name_, std::move(inputs)),
      outputs_(std::move(outputs)),
      updates_(std::move(updates)) {
  pointers_.reserve(fed_.leaves().size() + outputs_.size());
  find_static_arguments();
}

FunctionPlans::Planned& FunctionPlans::find_for_fed(Session& session) {
  last_ = nullptr;  // its plan may be freed
  Planned* planned = &first_plan(session);
  while (planned->computes_sizes) planned = &plan_after(*planned, session);
  last_ = &planned->plan;
  return *planned;
}

bool FunctionPlans::fits(const Key& key, const Session& session, bool own_rows) const {
  if (key.generation != session.generation() || key.own_rows != own_rows) return false;
  std::size_t next = 0;
  for (std::size_t i = 0; i < fed_.leaves().size(); ++i) {
    const Array& feed = *fed_.arrays()[i];
    if (key.metas[i].shape != feed.shape()) return false;
    if (is_static_[i] && key.static_arguments[next++] != feed.data<bool>()[0]) return false;
  }
  return true;
}

// Row shares are computed in every step if each rank feeds its own rows or an input is sparse, because sparse tensors
// are packed by rank.
FunctionPlans::Planned& FunctionPlans::first_plan(Session& session) {
  Strategy* strategy = session.strategy();
  const bool own_rows = strategy != nullptr && strategy->feeds_are_local();
  const bool ask = fed_.any_sparse() || own_rows;
  if (fed_.any_sparse() && strategy != nullptr && strategy->parts() > 0)
    fail<ValueError>(name_, ": a sparse input cannot be divided into the parts of a batch; give a dense array, or set ",
                     "SYNCLINE_PARTS=0");
  if (!ask)
    for (auto it = plans_.begin(); it != plans_.end(); ++it)
      if (fits((*it)->key, session, own_rows)) return use(plans_, it, session);
  auto fresh = std::make_unique<Planned>();  // from here on memory is allocated
  fresh->shares = fed_.share(strategy, fresh->global, fresh->split, fresh->local);
  if (ask)
    for (auto it = plans_.begin(); it != plans_.end(); ++it)
      if ((*it)->shares == fresh->shares && fits((*it)->key, session, own_rows)) return use(plans_, it, session);
  fresh->key.generation = session.generation();
  fresh->key.own_rows = own_rows;
  for (std::size_t i = 0; i < fed_.leaves().size(); ++i) {
    const Array& feed = *fed_.arrays()[i];
    fresh->key.metas.push_back({feed.dtype(), feed.shape()});
    if (is_static_[i]) fresh->key.static_arguments.push_back(feed.data<bool>()[0]);
  }
  make_plan(*fresh, session);
  return add(plans_, std::move(fresh), session);
}

// Runs a plan of sizes; its results select the successor.
FunctionPlans::Planned& FunctionPlans::plan_after(Planned& before, Session& session) {
  SizeValues values = results_for(before.plan);
  run(before, session, values);
  const auto equal = [](const Array& a, const Array& b) {
    return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  };
  for (auto it = before.next.begin(); it != before.next.end(); ++it)
    if (std::ranges::equal((*it)->key.sizes.back(), values, equal)) return use(before.next, it, session);
  auto fresh = std::make_unique<Planned>();
  fresh->key = before.key;
  fresh->key.sizes.push_back(std::move(values));
  fresh->global = before.global;
  fresh->split = before.split;
  fresh->local = before.local;
  fresh->shares = before.shares;
  fresh->random_ops = before.random_ops;
  fresh->first_fingerprint = before.first_fingerprint;
  make_plan(*fresh, session);
  return add(before.next, std::move(fresh), session);
}

FunctionPlans::Planned& FunctionPlans::add(Plans& list, std::unique_ptr<Planned> fresh, Session& session) const {
  list.insert(list.begin(), std::move(fresh));
  constexpr std::size_t kMostPlans = 32;
  if (list.size() > kMostPlans) list.pop_back();
  return use(list, list.begin(), session);
}

FunctionPlans::Planned& FunctionPlans::use(Plans& list, Plans::iterator found, Session& session) const {
  std::rotate(list.begin(), found, found + 1);
  Planned& planned = *list.front();
  std::byte* arena = session.arena(planned.plan.arena_bytes());
  std::byte* shared = session.shared_memory(planned.plan.shared_bytes());
  if (planned.arena_moves != session.arena_moves()) {
    planned.plan.bind(arena, shared, session.strategy());
    planned.arena_moves = session.arena_moves();
  }
  return planned;
}

// Compiles the function's plan, or a plan of sizes that are still missing.
void FunctionPlans::make_plan(Planned& planned, Session& session) const {
  const timeline::Span traced("plan", "make a plan");
  CompileRequest request{.name = name_,
                         .feeds = {},
                         .local = planned.local,
                         .outputs = {},
                         .in_callers_memory = {},
                         .wanted = {},
                         .shares = &planned.shares,
                         .strategy = session.strategy(),
                         .shared_buckets = session.strategy() != nullptr,
                         .fuse = session.passes().fuse};
  std::vector<Expr> roots = outputs_;
  for (const Update& u : updates_) roots.push_back(u.value);
  Concrete concrete = concretize(roots, bind_feeds(planned, request), session.passes().simplify, planned.key.sizes);
  planned.computes_sizes = !concrete.sizes.empty();
  if (planned.computes_sizes) {
    request.name = "sizes of " + name_;
    request.outputs = std::move(concrete.sizes);
    request.wanted.resize(request.outputs.size());
  } else {
    const auto values = concrete.roots.begin() + static_cast<std::ptrdiff_t>(outputs_.size());
    request.outputs.assign(concrete.roots.begin(), values);
    for (std::size_t i = 0; i < updates_.size(); ++i) {
      const Expr& value = values[static_cast<std::ptrdiff_t>(i)];
      if (value.shape() != updates_[i].target.shape())
        fail<ShapeError>(name_, ": the new value of variable '", updates_[i].target.name(), "' of shape ",
                         updates_[i].target.shape(), " has the shape ", value.shape(),
                         "; an update must keep the shape");
      request.updates.push_back({updates_[i].target, value});
    }
  }
  request.in_callers_memory.resize(request.outputs.size(), true);
  std::uint64_t fingerprint = 0;
  if (request.strategy != nullptr) fingerprint = agree_on_graph(session, *request.strategy, describe(request));
  // Successors of different sizes have equal fingerprints.
  if (planned.key.sizes.empty()) planned.first_fingerprint = fingerprint;
  else if (fingerprint != 0) fingerprint = attrs::mix(planned.first_fingerprint, planned.key.sizes.size());
  if (!planned.computes_sizes) {
    request.wanted = place_updates(session, planned.shares, concrete.roots, request.updates);
    planned.key.generation = session.generation();
  }
  planned.plan = compile(std::move(request));
  planned.plan.set_fingerprint(fingerprint);
  if (Strategy* strategy = session.strategy()) agree_on_seeds(*strategy, planned.plan.random_ops());
  for (RandomOp* op : planned.plan.random_ops())
    if (std::ranges::find(planned.random_ops, op) == planned.random_ops.end()) planned.random_ops.push_back(op);
}

// Maps the function's leaves to the plan's placeholders, or to constants.
Bindings FunctionPlans::bind_feeds(const Planned& planned, CompileRequest& request) const {
  Bindings bindings;
  std::size_t next = 0;
  for (std::size_t i = 0; i < planned.global.size(); ++i) {
    const Expr& leaf = fed_.leaves()[i];
    const Expr feed = apply<Placeholder>({}, {planned.global[i].dtype, planned.global[i].shape, i + 1}, leaf.name());
    if (planned.split[i]) request.placement[feed] = Placement::split(0);
    request.feeds.push_back(feed);
    bindings[leaf] = is_static_[i] ? scalar(planned.key.static_arguments[next++] ? 1 : 0, leaf.dtype()) : feed;
  }
  // A learning phase that is not fed means testing. The one that is fed counts for those from before Session::clear.
  const auto fed = std::ranges::find_if(fed_.leaves(), Session::is_learning_phase);
  const Expr phase_value = fed == fed_.leaves().end() ? scalar(0, DType::kBool) : bindings.at(*fed);
  for (const Expr& phase : phases_) bindings.try_emplace(phase, phase_value);
  return bindings;
}

// A boolean scalar feed selects branches at compile time: true and false have separate plans.
void FunctionPlans::find_static_arguments() {
  std::vector<Expr> roots = outputs_;
  for (const Update& u : updates_) roots.push_back(u.value);
  for (const auto& node : nodes_under(roots))
    if (Session::is_learning_phase(Expr(node))) phases_.emplace_back(node);
  for (const Expr& input : fed_.leaves()) is_static_.push_back(input.ndim() == 0 && input.dtype() == DType::kBool);
}

// The plan computes an output directly in the caller's array where possible; other outputs are copied afterwards. A
// feed that overlaps an output is copied first, because steps may write the output before they read the feed.
void FunctionPlans::run(Planned& planned, Session& session, std::span<Array> results) {
  if (session.strategy() != nullptr) share_values(session, planned.plan.variables(), planned.shares);
  pointers_.clear();
  std::vector<Array> copies;
  for (const Array* feed : fed_.arrays()) {
    const bool shared = std::any_of(results.begin(), results.end(), [&](const Array& r) { return overlap(*feed, r); });
    if (shared) copies.push_back(feed->copy());
    pointers_.push_back(shared ? copies.back().raw() : feed->raw());
  }
  for (const Array& result : results) pointers_.push_back(result.raw());
  Faults* faults = planned.computes_sizes ? nullptr : session.faults();
  try {
    if (faults != nullptr && faults->before_run(session.steps(), planned.plan.variables())) return;  // no step
    planned.plan.run(session, pointers_);
  } catch (...) {  // count a failed step: the next one needs other tags
    session.count_step({});
    throw;
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    if (const void* value = planned.plan.output(i); value != results[i].raw() && results[i].bytes() > 0)
      std::memcpy(results[i].raw(), value, results[i].bytes());
}

}  // namespace syncline
