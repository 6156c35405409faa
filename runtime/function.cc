#include "runtime/function.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/timeline.h"
#include "ops/attrs.h"
#include "ops/kernels/digest.h"
#include "ops/leaf.h"
#include "ops/op.h"
#include "ops/shape.h"
#include "ops/sparse.h"
#include "ops/sparse/tensor.h"
#include "runtime/agreement.h"
#include "runtime/concretize.h"
#include "runtime/differing_value.h"
#include "runtime/distributor.h"
#include "runtime/faults.h"
#include "runtime/passes/compile.h"
#include "runtime/plan.h"
#include "runtime/session.h"

namespace syncline {
namespace {

std::uint64_t next_placeholder_key() {
  // Tells placeholders of one thread's graphs apart; ranks as threads count alike.
  thread_local std::uint64_t key = 0;
  return ++key;
}

Expr sparse_placeholder(const PlaceholderOptions& options, const std::string& name) {
  if (options.shape.ndim() != 2)
    fail<ShapeError>("placeholder: the sparse placeholder '", name, "' has the shape ", options.shape,
                     "; sparse tensors have two dimensions");
  static constexpr std::string_view kParts[] = {"values", "columns", "spans", "extent"};
  std::vector<Expr> parts;
  for (const Meta& m : packed_metas(options.dtype, options.shape, kUnknown))
    parts.push_back(
        apply<Placeholder>({}, {m.dtype, m.shape, next_placeholder_key()}, join_text(name, '/', kParts[parts.size()])));
  return sparse_tensor({parts[0], parts[1], parts[2], parts[3]}, name);
}

}  // namespace

Expr placeholder(PlaceholderOptions options) {
  if (options.ndim && options.shape.ndim() == 0)
    options.shape = Shape(std::vector<std::int64_t>(static_cast<std::size_t>(std::max(0, *options.ndim)), kUnknown));
  if (options.ndim && options.shape.ndim() != *options.ndim)
    fail<ValueError>("placeholder: the shape ", options.shape, " has not ", *options.ndim,
                     " dimensions; give shape or ndim");
  std::string name = Session::current().unique_name(options.name.empty() ? "placeholder" : options.name);
  if (options.sparse) return sparse_placeholder(options, name);
  return apply<Placeholder>({}, {options.dtype, std::move(options.shape), next_placeholder_key()}, std::move(name));
}

bool is_placeholder(const Expr& x) {
  return x.is<Placeholder>() || (is_sparse(x) && sparse_values(x).is<Placeholder>());
}

Expr constant(const Array& value, std::optional<DType> dtype, const std::optional<Shape>& shape, std::string name) {
  const Array own = dtype && *dtype != value.dtype() ? value.cast(*dtype) : value.copy();
  if (!shape || *shape == own.shape()) return constant_of(own, std::move(name));
  if (own.size() == 1) return identity(broadcast_like(reshape(constant_of(own), {}), fill(*shape, 0)), std::move(name));
  if (!shape->is_known() || shape->size() != own.size())
    fail<ShapeError>("constant: a value of shape ", own.shape(), " does not fill the shape ", *shape,
                     "; give as many elements, or one");
  return constant_of(own.reshaped(*shape), std::move(name));
}
Expr constant(double value, DType dtype, const Shape& shape, std::string name) {
  const Expr filled = fill(shape, value, dtype);
  return name.empty() ? filled : identity(filled, std::move(name));
}

Expr learning_phase() { return Session::current().learning_phase(); }
void set_learning_phase(int value) {
  if (value != 0 && value != 1) fail<ValueError>("set_learning_phase: ", value, "; give 0 (testing) or 1 (training)");
  Session::current().set_learning_phase(value != 0);
}

std::optional<bool> TrainingPhase::known() const {
  double value = 0;
  if (known_ || !scalar_value(tensor(), value)) return known_;
  return value != 0;
}

Expr in_train_phase(const TensorOrFunction& x, const TensorOrFunction& alt, const TrainingPhase& training) {
  if (const std::optional<bool> known = training.known()) return (*known ? x : alt).get();
  return switch_(training.tensor(), x, alt);
}

Expr in_test_phase(const TensorOrFunction& x, const TensorOrFunction& alt, const TrainingPhase& training) {
  return in_train_phase(alt, x, training);
}

struct Function::Impl {
  explicit Impl(FedInputs inputs) : fed(std::move(inputs)) {}

  // What a plan is made for.
  struct Key {
    std::vector<Meta> metas;        // of the feeds as handed over
    std::vector<bool> steering;     // values of the feeds that steer, in order
    std::uint64_t generation = 0;   // of the session
    bool own_rows = false;          // of each rank
    std::vector<SizeValues> sizes;  // that have been computed, by one plan after the other
  };
  struct Cached {
    Key key;
    std::vector<Meta> global;  // of the feeds under all ranks
    std::vector<bool> split;
    bool local = false;
    RowShares shares;
    Plan plan;
    // Of a plan that computes sizes: those that come after it, one for each of their values.
    bool computes_sizes = false;
    std::vector<std::unique_ptr<Cached>> next;
    std::vector<RandomOp*> random_ops;  // of this plan and of those before it
    std::uint64_t arena_moves = 0;      // when the plan was bound
    std::uint64_t compared_in = 0;      // the round of comparing variables that has the plan's
  };
  using Plans = std::vector<std::unique_ptr<Cached>>;  // the one used last comes first

  FedInputs fed;
  std::vector<Expr> outputs;
  std::vector<bool> steers;  // leaves whose values are known when the plan is made
  std::vector<Expr> phases;  // the learning phases that the graph was made with
  std::vector<Update> updates;
  std::string name;
  Plans plans;
  const Plan* last_plan = nullptr;
  std::vector<const void*> pointers;

  void check_outputs(std::span<const Array> arrays, const Plan& plan) const {
    if (arrays.size() != plan.outputs())
      fail<ValueError>(name, ": ", arrays.size(), " arrays for ", plan.outputs(), " outputs");
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const Meta& meta = plan.output_meta(i);
      if (arrays[i].dtype() != meta.dtype)
        fail<DTypeError>(name, ": output ", i, " is ", meta, ", but the array for it holds ", arrays[i].dtype());
      if (arrays[i].shape() != meta.shape)
        fail<ShapeError>(name, ": output ", i, " is ", meta, ", but the array for it has the shape ",
                         arrays[i].shape());
    }
  }

  bool fits(const Key& key, const Session& session, bool own_rows) const {
    if (key.generation != session.generation() || key.own_rows != own_rows) return false;
    std::size_t steer = 0;
    for (std::size_t i = 0; i < fed.leaves().size(); ++i) {
      const Array& feed = *fed.arrays()[i];
      if (key.metas[i].shape != feed.shape()) return false;
      if (steers[i] && key.steering[steer++] != feed.data<bool>()[0]) return false;
    }
    return true;
  }

  template <class Value>
  Cached& plan_for(std::span<const Value> feeds, Session& session) {
    fed.take(feeds);
    Cached* cached = &first_plan(session);
    while (cached->computes_sizes) cached = &plan_after(*cached, session);
    last_plan = &cached->plan;
    return *cached;
  }

  // Where each rank's rows are is asked anew in each step if every rank brings its own, and for a sparse value, whose
  // tensors are made by rank.
  Cached& first_plan(Session& session) {
    Distributor* distributor = session.distributor();
    const bool own_rows = distributor != nullptr && distributor->feeds_are_local();
    const bool ask = fed.any_sparse() || own_rows;
    if (!ask)
      for (auto it = plans.begin(); it != plans.end(); ++it)
        if (fits((*it)->key, session, own_rows)) return use(plans, it, session);
    auto fresh = std::make_unique<Cached>();  // from here on memory is allocated
    fresh->shares = fed.share(distributor, fresh->global, fresh->split, fresh->local);
    if (ask)
      for (auto it = plans.begin(); it != plans.end(); ++it)
        if ((*it)->shares == fresh->shares && fits((*it)->key, session, own_rows)) return use(plans, it, session);
    fresh->key.generation = session.generation();
    fresh->key.own_rows = own_rows;
    for (std::size_t i = 0; i < fed.leaves().size(); ++i) {
      const Array& feed = *fed.arrays()[i];
      fresh->key.metas.push_back({feed.dtype(), feed.shape()});
      if (steers[i]) fresh->key.steering.push_back(feed.data<bool>()[0]);
    }
    make_plan(*fresh, session);
    return add(plans, std::move(fresh), session);
  }

  // The sizes that the plan computes decide which one comes next.
  Cached& plan_after(Cached& before, Session& session) {
    SizeValues values = results_for(before.plan);
    run_plan(before, session, values);
    const auto equal = [](const Array& a, const Array& b) {
      return a.bytes() == b.bytes() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
    };
    for (auto it = before.next.begin(); it != before.next.end(); ++it)
      if (std::ranges::equal((*it)->key.sizes.back(), values, equal)) return use(before.next, it, session);
    auto fresh = std::make_unique<Cached>();
    fresh->key = before.key;
    fresh->key.sizes.push_back(std::move(values));
    fresh->global = before.global;
    fresh->split = before.split;
    fresh->local = before.local;
    fresh->shares = before.shares;
    fresh->random_ops = before.random_ops;
    make_plan(*fresh, session);
    return add(before.next, std::move(fresh), session);
  }

  Cached& add(Plans& list, std::unique_ptr<Cached> fresh, Session& session) const {
    list.insert(list.begin(), std::move(fresh));
    constexpr std::size_t kMostPlans = 32;
    if (list.size() > kMostPlans) list.pop_back();
    return use(list, list.begin(), session);
  }

  Cached& use(Plans& list, Plans::iterator found, Session& session) const {
    std::rotate(list.begin(), found, found + 1);
    Cached& cached = *list.front();
    std::byte* arena = session.arena(cached.plan.arena_bytes());
    std::byte* shared = session.shared_memory(cached.plan.shared_bytes());
    if (cached.arena_moves != session.arena_moves()) {
      cached.plan.bind(arena, shared, session.distributor());
      cached.arena_moves = session.arena_moves();
    }
    return cached;
  }

  // The plan of the function, or of sizes that have to be computed before that.
  void make_plan(Cached& cached, Session& session) const {
    const timeline::Span traced("plan", "make a plan");
    CompileRequest request{.name = name,
                           .feeds = {},
                           .local = cached.local,
                           .outputs = {},
                           .in_callers_memory = {},
                           .wanted = {},
                           .shares = &cached.shares,
                           .distributor = session.distributor(),
                           .shared_buckets = session.distributor() != nullptr,
                           .fuse = session.passes().fuse};
    std::vector<Expr> roots = outputs;
    for (const Update& u : updates) roots.push_back(u.value);
    Concrete concrete = concretize(roots, bind_feeds(cached, request), session.passes().simplify, cached.key.sizes);
    cached.computes_sizes = !concrete.sizes.empty();
    if (cached.computes_sizes) {
      request.name = "sizes of " + name;
      request.outputs = std::move(concrete.sizes);
      request.wanted.resize(request.outputs.size());
    } else {
      const auto values = concrete.roots.begin() + static_cast<std::ptrdiff_t>(outputs.size());
      request.outputs.assign(concrete.roots.begin(), values);
      for (std::size_t i = 0; i < updates.size(); ++i)
        request.updates.push_back({updates[i].target, values[static_cast<std::ptrdiff_t>(i)]});
      request.wanted = wanted_placements();
    }
    request.in_callers_memory.resize(request.outputs.size(), true);
    std::uint64_t fingerprint = 0;
    if (request.distributor != nullptr) fingerprint = agree_on_graph(session, *request.distributor, describe(request));
    cached.plan = compile(std::move(request));
    cached.plan.set_fingerprint(fingerprint);
    if (Distributor* distributor = session.distributor()) agree_on_seeds(*distributor, cached.plan.random_ops());
    for (RandomOp* op : cached.plan.random_ops())
      if (std::ranges::find(cached.random_ops, op) == cached.random_ops.end()) cached.random_ops.push_back(op);
  }

  static std::string describe(const CompileRequest& request) {
    std::vector<Expr> roots = request.outputs;
    for (const Update& u : request.updates) roots.push_back(u.value);
    return describe_graph(request.name, roots, request.updates);
  }

  // What stands for the function's inputs in a plan's graph.
  Bindings bind_feeds(const Cached& cached, CompileRequest& request) const {
    Bindings bindings;
    std::size_t steer = 0;
    for (std::size_t i = 0; i < cached.global.size(); ++i) {
      const Expr& leaf = fed.leaves()[i];
      const Expr feed = apply<Placeholder>({}, {cached.global[i].dtype, cached.global[i].shape, i + 1}, leaf.name());
      if (cached.split[i]) request.placement[feed] = Placement::split(0);
      request.feeds.push_back(feed);
      bindings[leaf] = steers[i] ? scalar(cached.key.steering[steer++] ? 1 : 0, leaf.dtype()) : feed;
    }
    // The learning phase is testing where it is not fed.
    for (const Expr& phase : phases) bindings.try_emplace(phase, scalar(0, DType::kBool));
    return bindings;
  }

  // Replicated, but for the new values of partial variables.
  std::vector<Placement> wanted_placements() const {
    std::vector<Placement> wanted(outputs.size());
    for (const Update& u : updates)
      wanted.push_back(u.target.state().partial() ? Placement::partial() : Placement::replicated());
    return wanted;
  }

  // A scalar feed of a truth value decides branches when the plan is made: each value has its own plan.
  void find_steering() {
    std::vector<Expr> roots = outputs;
    for (const Update& u : updates) roots.push_back(u.value);
    for (const auto& node : nodes_under(roots))
      if (Session::is_learning_phase(Expr(node))) phases.emplace_back(node);
    for (const Expr& input : fed.leaves()) steers.push_back(input.ndim() == 0 && input.dtype() == DType::kBool);
  }

  static std::vector<Array> results_for(const Plan& plan) {
    std::vector<Array> results;
    for (std::size_t i = 0; i < plan.outputs(); ++i)
      results.push_back(Array::uninitialized(plan.output_meta(i).dtype, plan.output_meta(i).shape));
    return results;
  }

  // Outputs are computed where they belong if that can be; the others are copied there. The caller's arrays must not be
  // read meanwhile: a feed that shares memory with an output is copied first.
  void run_plan(Cached& cached, Session& session, std::span<Array> results) {
    if (Distributor* distributor = session.distributor()) share_values(cached.plan.variables(), *distributor);
    pointers.clear();
    std::vector<Array> copies;
    for (const Array* feed : fed.arrays()) {
      const bool shared =
          std::any_of(results.begin(), results.end(), [&](const Array& r) { return overlap(*feed, r); });
      if (shared) copies.push_back(feed->copy());
      pointers.push_back(shared ? copies.back().raw() : feed->raw());
    }
    for (const Array& result : results) pointers.push_back(result.raw());
    Faults* faults = cached.computes_sizes ? nullptr : session.faults();
    try {
      if (faults == nullptr || !faults->before_run(session.steps(), cached.plan.variables()))
        cached.plan.run(session, pointers);
    } catch (...) {  // a rank that goes on shall not meet ranks that are still in this step
      session.count_step({});
      throw;
    }
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const void* value = cached.plan.output(i); value != results[i].raw() && results[i].bytes() > 0)
        std::memcpy(results[i].raw(), value, results[i].bytes());
  }

  // What a plan of sizes has drawn the step draws too: both are the random operations' one run.
  void step(Cached& cached, Session& session, std::span<Array> results) {
    const timeline::Step traced(name, cached.plan.fingerprint(), session.steps());
    run_plan(cached, session, results);
    session.count_step(cached.random_ops);
    if (session.distributor() != nullptr) compare_if_due(cached, session);
  }

  // What was set by hand is rank 0's. The ranks have mostly set the same: a digest tells, and nothing need be sent. A
  // network has hundreds of variables, and each that is sent is a meeting of the ranks.
  static void share_values(std::span<const std::shared_ptr<VariableState>> variables, Distributor& distributor) {
    std::vector<VariableState*> changed;
    std::uint64_t digest = 0, place = 0;
    for (const auto& state : variables) {
      ++place;
      if (!state->changed()) continue;
      Array& value = state->value();
      if (!state->partial()) {
        digest = attrs::mix(attrs::mix(digest, place), kernels::digest(value.raw(), value.bytes()));
        changed.push_back(state.get());
        continue;
      }
      if (distributor.rank() != 0) std::memset(value.raw(), 0, value.bytes());
      state->set_changed(false);
    }
    if (changed.empty()) return;
    const bool equal = all_equal(gather_numbers(distributor, digest, "values set by hand"));
    for (VariableState* state : changed) {
      Array& value = state->value();
      if (!equal) distributor.broadcast("the value set by hand of " + state->name(), value.raw(), value.bytes());
      state->set_changed(false);
    }
  }

  // Every rank does this after the same steps.
  static void compare_if_due(Cached& cached, Session& session) {
    const std::uint64_t every = session.distributor()->check_steps();
    if (every == 0) return;
    UsedVariables& used = session.used_variables();
    if (std::exchange(cached.compared_in, used.round()) != used.round()) used.add(cached.plan.variables());
    if (session.steps() % every == 0) used.compare(session, *session.distributor());
  }

  static bool overlap(const Array& a, const Array& b) {
    return a.raw() < b.raw() + b.bytes() && b.raw() < a.raw() + a.bytes();
  }

  template <class Value>
  void run(std::span<const Value> feeds, std::span<Array> arrays) {
    Session& session = Session::current();
    if (session.faults() != nullptr) session.faults()->before_step(session);
    Cached& cached = plan_for(feeds, session);
    check_outputs(arrays, cached.plan);
    step(cached, session, arrays);
  }

  template <class Value>
  std::vector<Array> call(std::span<const Value> feeds) {
    Session& session = Session::current();
    if (session.faults() != nullptr) session.faults()->before_step(session);
    Cached& cached = plan_for(feeds, session);
    std::vector<Array> results = results_for(cached.plan);
    step(cached, session, results);
    return results;
  }
};

Function::Function(std::vector<Expr> inputs, std::vector<Expr> outputs, std::vector<Update> updates, std::string name)
    : impl_(std::make_unique<Impl>(FedInputs(name, std::move(inputs)))) {
  std::set<const VariableState*> updated;
  for (const Update& u : updates)
    if (!updated.insert(&u.target.state()).second)
      fail<ValueError>(name, ": variable '", u.target.name(), "' is updated twice in one function");
  for (const Expr& output : outputs)
    if (is_sparse(output))
      fail<ValueError>(name, ": output '", output.name(), "' of shape ", output.shape(),
                       " is a sparse tensor; ask for to_dense(x)");
  impl_->pointers.reserve(impl_->fed.leaves().size() + outputs.size());
  impl_->outputs = std::move(outputs);
  impl_->updates = std::move(updates);
  impl_->name = std::move(name);
  impl_->find_steering();
}

Function::~Function() = default;
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&&) noexcept = default;

void Function::run(std::span<const Array> feeds, std::span<Array> outputs) { impl_->run(feeds, outputs); }
void Function::run(std::span<const Feed> feeds, std::span<Array> outputs) { impl_->run(feeds, outputs); }
std::vector<Array> Function::operator()(std::span<const Array> feeds) { return impl_->call(feeds); }
std::vector<Array> Function::operator()(std::span<const Feed> feeds) { return impl_->call(feeds); }

std::string Function::describe(std::span<const Array> feeds) {
  return impl_->plan_for(feeds, Session::current()).plan.describe();
}
std::string Function::describe(std::span<const Feed> feeds) {
  return impl_->plan_for(feeds, Session::current()).plan.describe();
}

const Plan* Function::last_plan() const { return impl_->last_plan; }

std::size_t Function::arena_bytes(std::span<const Array> feeds) {
  return impl_->plan_for(feeds, Session::current()).plan.arena_bytes();
}

Array eval(const Expr& x) { return Function({}, {to_dense(x)}, {}, "eval")({}).front(); }

}  // namespace syncline
