#include "syncline/backend/function.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "ops/sparse/tensor.h"
#include "runtime/execution/function_plans.h"
#include "runtime/placement/agreement.h"
#include "runtime/placement/faults.h"
#include "runtime/placement/strategy.h"
#include "runtime/plan/plan.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/sparse.h"
#include "syncline/session.h"
#include "syncline/timeline.h"

namespace syncline {
namespace {

std::uint64_t next_placeholder_key() {
  // Distinguishes the placeholders of one thread. Per thread, so that ranks that are threads get equal keys.
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
    fail<ValueError>("placeholder: the shape ", options.shape, " does not have ", *options.ndim,
                     " dimensions; give either shape or ndim");
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
                     "; give as many elements as the shape has, or one");
  return constant_of(own.reshaped(*shape), std::move(name));
}
Expr constant(double value, DType dtype, const Shape& shape, std::string name) {
  const Expr filled = fill(shape, value, dtype);
  return name.empty() ? filled : identity(filled, std::move(name));
}

Expr learning_phase() { return Session::current().learning_phase(); }
void set_learning_phase(int value) {
  if (value != 0 && value != 1)
    fail<ValueError>("set_learning_phase: the phase is ", value, "; give 0 (testing) or 1 (training)");
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
  FunctionPlans plans;
  using Planned = FunctionPlans::Planned;

  void check_outputs(std::span<const Array> arrays, const Plan& plan) const {
    if (arrays.size() != plan.outputs())
      fail<ValueError>(plans.name(), ": ", arrays.size(), " arrays are given for ", plan.outputs(), " outputs");
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const Meta& meta = plan.output_meta(i);
      if (arrays[i].dtype() != meta.dtype)
        fail<DTypeError>(plans.name(), ": output ", i, " is ", meta, ", but the array for it holds ",
                         arrays[i].dtype());
      if (arrays[i].shape() != meta.shape)
        fail<ShapeError>(plans.name(), ": output ", i, " is ", meta, ", but the array for it has the shape ",
                         arrays[i].shape());
    }
  }

  // A plan of sizes and its step draw the same random numbers: together they count as one run of each random op.
  void step(Planned& planned, Session& session, std::span<Array> results) {
    const timeline::Step traced(plans.name(), planned.plan.fingerprint(), session.steps());
    plans.run(planned, session, results);
    session.count_step(planned.random_ops);
    if (session.strategy() != nullptr) compare_if_due(planned, session);
  }

  // Collective: every rank compares after the same steps.
  static void compare_if_due(Planned& planned, Session& session) {
    const std::uint64_t every = session.strategy()->check_steps();
    if (every == 0) return;
    UsedVariables& used = session.used_variables();
    if (std::exchange(planned.compared_in, used.round()) != used.round()) used.add(planned.plan.variables());
    if (session.steps() % every == 0) used.compare(session, *session.strategy());
  }

  template <class Value>
  void run(std::span<const Value> feeds, std::span<Array> arrays) {
    Session& session = Session::current();
    if (session.faults() != nullptr) session.faults()->before_step(session);
    Planned& planned = plans.find(feeds, session);
    check_outputs(arrays, planned.plan);
    step(planned, session, arrays);
  }

  template <class Value>
  std::vector<Array> call(std::span<const Value> feeds) {
    Session& session = Session::current();
    if (session.faults() != nullptr) session.faults()->before_step(session);
    Planned& planned = plans.find(feeds, session);
    std::vector<Array> results = results_for(planned.plan);
    step(planned, session, results);
    return results;
  }
};

Function::Function(std::vector<Expr> inputs, std::vector<Expr> outputs, std::vector<Update> updates, std::string name) {
  std::set<const VariableState*> updated;
  for (const Update& u : updates)
    if (!updated.insert(&u.target.state()).second)
      fail<ValueError>(name, ": variable '", u.target.name(), "' is updated twice in one function");
  for (const Expr& output : outputs)
    if (is_sparse(output))
      fail<ValueError>(name, ": output '", output.name(), "' of shape ", output.shape(),
                       " is a sparse tensor; use to_dense(x)");
  impl_ = std::make_unique<Impl>(
      Impl{FunctionPlans(std::move(name), std::move(inputs), std::move(outputs), std::move(updates))});
}

Function::~Function() = default;
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&&) noexcept = default;

void Function::run(std::span<const Array> feeds, std::span<Array> outputs) { impl_->run(feeds, outputs); }
void Function::run(std::span<const Feed> feeds, std::span<Array> outputs) { impl_->run(feeds, outputs); }
std::vector<Array> Function::operator()(std::span<const Array> feeds) { return impl_->call(feeds); }
std::vector<Array> Function::operator()(std::span<const Feed> feeds) { return impl_->call(feeds); }

std::string Function::describe(std::span<const Array> feeds) {
  return impl_->plans.find(feeds, Session::current()).plan.describe();
}
std::string Function::describe(std::span<const Feed> feeds) {
  return impl_->plans.find(feeds, Session::current()).plan.describe();
}

const Plan* Function::last_plan() const { return impl_->plans.last(); }

std::size_t Function::arena_bytes(std::span<const Array> feeds) {
  return impl_->plans.find(feeds, Session::current()).plan.arena_bytes();
}

Array eval(const Expr& x) { return Function({}, {to_dense(x)}, {}, "eval")({}).front(); }

}  // namespace syncline
