#include "runtime/function.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "base/timeline.h"
#include "ops/attrs.h"
#include "ops/dims.h"
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

  struct Cached {
    std::vector<Meta> metas;                   // of the feeds as handed over
    std::vector<double> steering;              // values of the feeds that steer, in order
    std::uint64_t generation = 0;              // of the session, and the way of its feeds that the plan was made for
    bool own_rows = false;
    RowShares shares;
    Plan plan;
    std::uint64_t arena_moves = 0;  // when the plan was bound
    std::uint64_t compared_in = 0;  // the round of comparing variables that has the plan's
  };

  FedInputs fed;
  std::vector<Expr> outputs;
  std::vector<bool> steers;  // leaves whose values are known when the plan is made
  std::vector<Expr> phases;  // the learning phases that the graph was made with
  std::vector<Update> updates;
  std::string name;
  std::vector<std::unique_ptr<Cached>> plans;  // the one used last comes first
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

  bool fits(const Cached& cached, const Session& session, bool own_rows) const {
    if (cached.generation != session.generation() || cached.own_rows != own_rows) return false;
    std::size_t steer = 0;
    for (std::size_t i = 0; i < fed.leaves().size(); ++i) {
      const Array& feed = *fed.arrays()[i];
      if (cached.metas[i].shape != feed.shape()) return false;
      if (steers[i] && cached.steering[steer++] != feed.item()) return false;
    }
    return true;
  }

  // Where each rank's rows are is asked anew in each step if every rank brings its own, and for a sparse value, whose
  // tensors are made by rank.
  template <class Value>
  Cached& plan_for(std::span<const Value> feeds, Session& session) {
    fed.take(feeds);
    Distributor* distributor = session.distributor();
    const bool own_rows = distributor != nullptr && distributor->feeds_are_local();
    const bool ask = fed.any_sparse() || own_rows;
    if (!ask)
      for (auto it = plans.begin(); it != plans.end(); ++it)
        if (fits(**it, session, own_rows)) return use(it, session);
    std::vector<Meta> metas;  // from here on memory is allocated
    std::vector<bool> split;
    bool local = false;
    RowShares shares = fed.share(distributor, metas, split, local);
    if (ask)
      for (auto it = plans.begin(); it != plans.end(); ++it)
        if ((*it)->shares == shares && fits(**it, session, own_rows)) return use(it, session);
    plans.insert(plans.begin(), make(metas, split, std::move(shares), local, session));
    plans.front()->generation = session.generation();
    plans.front()->own_rows = own_rows;
    constexpr std::size_t kMostPlans = 32;
    if (plans.size() > kMostPlans) plans.pop_back();
    return use(plans.begin(), session);
  }

  Cached& use(std::vector<std::unique_ptr<Cached>>::iterator found, Session& session) {
    std::rotate(plans.begin(), found, found + 1);
    Cached& cached = *plans.front();
    std::byte* arena = session.arena(cached.plan.arena_bytes());
    std::byte* shared = session.shared_memory(cached.plan.shared_bytes());
    if (cached.arena_moves != session.arena_moves()) {
      cached.plan.bind(arena, shared, session.distributor());
      cached.arena_moves = session.arena_moves();
    }
    return cached;
  }

  std::unique_ptr<Cached> make(const std::vector<Meta>& global, const std::vector<bool>& split, RowShares shares,
                               bool local, Session& session) const {
    const timeline::Span traced("plan", "make a plan");
    auto cached = std::make_unique<Cached>();
    CompileRequest request{.name = name,
                           .feeds = {},
                           .local = local,
                           .outputs = {},
                           .in_callers_memory = std::vector<bool>(outputs.size(), true),
                           .wanted = wanted_placements(),
                           .distributor = session.distributor(),
                           .shared_buckets = session.distributor() != nullptr,
                           .fuse = session.passes().fuse};
    Bindings bindings;
    for (std::size_t i = 0; i < global.size(); ++i) {
      const Expr& leaf = fed.leaves()[i];
      const Array& array = *fed.arrays()[i];
      cached->metas.push_back({array.dtype(), array.shape()});
      const Expr feed = apply<Placeholder>({}, {global[i].dtype, global[i].shape, i + 1}, leaf.name());
      if (split[i]) request.placement[feed] = Placement::split(0);
      request.feeds.push_back(feed);
      bindings[leaf] = feed;
      if (steers[i]) {
        cached->steering.push_back(array.item());
        bindings[leaf] = scalar(cached->steering.back(), leaf.dtype());
      }
    }
    // The learning phase is testing where it is not fed.
    for (const Expr& phase : phases) bindings.try_emplace(phase, scalar(0, DType::kBool));
    cached->shares = std::move(shares);
    request.shares = &cached->shares;
    std::vector<Expr> roots = outputs;
    for (const Update& u : updates) roots.push_back(u.value);
    roots = concretize(roots, bindings, session.passes().simplify);
    std::uint64_t fingerprint = 0;
    if (request.distributor != nullptr)
      fingerprint = agree_on_graph(session, *request.distributor, describe_graph(name, roots, updates));
    const auto values = roots.begin() + static_cast<std::ptrdiff_t>(outputs.size());
    request.outputs.assign(roots.begin(), values);
    for (std::size_t i = 0; i < updates.size(); ++i)
      request.updates.push_back({updates[i].target, values[static_cast<std::ptrdiff_t>(i)]});
    cached->plan = compile(std::move(request));
    cached->plan.set_fingerprint(fingerprint);
    if (Distributor* distributor = session.distributor()) agree_on_seeds(*distributor, cached->plan.random_ops());
    return cached;
  }

  // Replicated, but for the new values of partial variables.
  std::vector<Placement> wanted_placements() const {
    std::vector<Placement> wanted(outputs.size());
    for (const Update& u : updates)
      wanted.push_back(u.target.state().partial() ? Placement::partial() : Placement::replicated());
    return wanted;
  }

  // A scalar feed of a truth value decides branches when the plan is made, and an integer that is a size decides
  // shapes: each value has its own plan.
  void find_steering() {
    std::vector<Expr> roots = outputs;
    for (const Update& u : updates) roots.push_back(u.value);
    for (const auto& node : nodes_under(roots))
      if (Session::is_learning_phase(Expr(node))) phases.emplace_back(node);
    const std::vector<Expr> sizes = sizes_fed(roots);
    for (const Expr& input : fed.leaves())
      steers.push_back((input.ndim() == 0 && input.dtype() == DType::kBool) ||
                       std::find(sizes.begin(), sizes.end(), input) != sizes.end());
  }

  // Outputs are computed where they belong if that can be; the others are copied there. The caller's arrays must not be
  // read meanwhile: a feed that shares memory with an output is copied first.
  void step(Cached& cached, Session& session, std::span<Array> results) {
    const timeline::Step traced(name, cached.plan.fingerprint(), session.steps());
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
    Faults* faults = session.faults();
    try {
      if (faults == nullptr || !faults->before_run(session.steps(), cached.plan.variables()))
        cached.plan.run(session, pointers);
    } catch (...) {  // a rank that goes on shall not meet ranks that are still in this step
      session.count_step({});
      throw;
    }
    session.count_step(cached.plan.random_ops());
    if (session.distributor() != nullptr) compare_if_due(cached, session);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (const void* value = cached.plan.output(i); value != results[i].raw() && results[i].bytes() > 0)
        std::memcpy(results[i].raw(), value, results[i].bytes());
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
    std::vector<Array> results;
    for (std::size_t i = 0; i < cached.plan.outputs(); ++i)
      results.push_back(Array::uninitialized(cached.plan.output_meta(i).dtype, cached.plan.output_meta(i).shape));
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

const Plan* Function::last_plan() const { return impl_->plans.empty() ? nullptr : &impl_->plans.front()->plan; }

std::size_t Function::arena_bytes(std::span<const Array> feeds) {
  return impl_->plan_for(feeds, Session::current()).plan.arena_bytes();
}

Array eval(const Expr& x) { return Function({}, {to_dense(x)}, {}, "eval")({}).front(); }

}  // namespace syncline
