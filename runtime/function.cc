#include "runtime/function.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "ops/dims.h"
#include "ops/leaf.h"
#include "ops/op.h"
#include "runtime/concretize.h"
#include "runtime/distributor.h"
#include "runtime/plan.h"
#include "runtime/session.h"

namespace syncline {
namespace {

std::uint64_t next_placeholder_key() {
  // Tells placeholders of one thread's graphs apart; ranks as threads count alike.
  thread_local std::uint64_t key = 0;
  return ++key;
}

}  // namespace

Expr placeholder(PlaceholderOptions options) {
  std::string name = Session::current().unique_name(options.name.empty() ? "placeholder" : options.name);
  return apply<Placeholder>({}, {options.dtype, std::move(options.shape), next_placeholder_key()}, std::move(name));
}

bool is_placeholder(const Expr& x) { return x.is<Placeholder>(); }

Expr constant(const Array& value, std::string name) { return constant_of(value.copy(), std::move(name)); }
Expr constant(double value, DType dtype, Shape shape, std::string) { return fill(std::move(shape), value, dtype); }

Expr learning_phase() { return Session::current().learning_phase(); }
void set_learning_phase(bool training) { Session::current().set_learning_phase(training); }
Expr in_train_phase(const Expr& x, const Expr& alt, const Expr& training) {
  return in_phase(training ? training : learning_phase(), x, alt);
}
Expr in_test_phase(const Expr& x, const Expr& alt, const Expr& training) { return in_train_phase(alt, x, training); }

struct Function::Impl {
  struct Cached {
    std::vector<Meta> metas;       // of the feeds as handed over
    std::vector<double> steering;  // values of the feeds that steer, in order
    RowShares shares;
    Plan plan;
    std::uint64_t arena_moves = 0;  // when the plan was bound
  };

  std::vector<Expr> inputs, outputs;
  std::vector<bool> steers;  // inputs whose values are known when the plan is made
  std::vector<Update> updates;
  std::string name;
  std::vector<std::unique_ptr<Cached>> plans;  // the one used last comes first
  std::vector<const void*> pointers;

  void check(std::span<const Array> feeds) const {
    if (feeds.size() != inputs.size())
      fail<ValueError>(name, ": ", feeds.size(), " values for ", inputs.size(), " inputs");
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      if (feeds[i].dtype() != inputs[i].dtype())
        fail<DTypeError>(name, ": input '", inputs[i].name(), "' takes ", inputs[i].dtype(), ", but was fed ",
                         feeds[i].dtype(), "; cast the value");
      if (!accepts(inputs[i].shape(), feeds[i].shape()))
        fail<ShapeError>(name, ": input '", inputs[i].name(), "' takes the shape ", inputs[i].shape(), ", but was fed ",
                         feeds[i].shape());
    }
  }

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

  bool fits(const Cached& cached, std::span<const Array> feeds) const {
    std::size_t steer = 0;
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      if (cached.metas[i].shape != feeds[i].shape()) return false;
      if (steers[i] && cached.steering[steer++] != feeds[i].item()) return false;
    }
    return true;
  }

  // Where each rank's rows are is asked anew in each step if every rank brings its own.
  Cached& plan_for(std::span<const Array> feeds, Session& session) {
    check(feeds);
    Distributor* distributor = session.distributor();
    const bool ask = distributor != nullptr && distributor->feeds_are_local();
    if (!ask)
      for (auto it = plans.begin(); it != plans.end(); ++it)
        if (fits(**it, feeds)) return use(it, session);
    std::vector<Meta> metas;  // from here on memory is allocated
    std::vector<bool> split(feeds.size(), false);
    RowShares shares;
    bool local = false;
    for (const Array& feed : feeds) metas.push_back({feed.dtype(), feed.shape()});
    if (distributor != nullptr) shares = distributor->share(metas, split, local);
    if (ask)
      for (auto it = plans.begin(); it != plans.end(); ++it)
        if ((*it)->shares == shares && fits(**it, feeds)) return use(it, session);
    plans.insert(plans.begin(), make(feeds, metas, split, std::move(shares), local, session));
    constexpr std::size_t kMostPlans = 32;
    if (plans.size() > kMostPlans) plans.pop_back();
    return use(plans.begin(), session);
  }

  Cached& use(std::vector<std::unique_ptr<Cached>>::iterator found, Session& session) {
    std::rotate(plans.begin(), found, found + 1);
    Cached& cached = *plans.front();
    std::byte* arena = session.arena(cached.plan.arena_bytes());
    if (cached.arena_moves != session.arena_moves()) {
      cached.plan.bind(arena);
      cached.arena_moves = session.arena_moves();
    }
    return cached;
  }

  std::unique_ptr<Cached> make(std::span<const Array> feeds, const std::vector<Meta>& global,
                               const std::vector<bool>& split, RowShares shares, bool local, Session& session) const {
    auto cached = std::make_unique<Cached>();
    LowerRequest request;
    Bindings bindings;
    PlacementMap placement;
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      cached->metas.push_back({feeds[i].dtype(), feeds[i].shape()});
      const Expr feed = apply<Placeholder>({}, {global[i].dtype, global[i].shape, i + 1}, inputs[i].name());
      if (split[i]) placement[feed] = Placement::split(0);
      request.feeds.push_back(feed);
      bindings[inputs[i]] = feed;
      if (steers[i]) {
        cached->steering.push_back(feeds[i].item());
        bindings[inputs[i]] = scalar(cached->steering.back(), inputs[i].dtype());
      }
    }
    cached->shares = std::move(shares);
    std::vector<Expr> roots = outputs;
    for (const Update& u : updates) roots.push_back(u.value);
    roots = concretize(roots, bindings);
    std::uint64_t fingerprint = 0;
    if (Distributor* distributor = session.distributor()) {
      fingerprint = distributor->agree(describe_graph(roots));
      PlacedGraph graph = distributor->place(roots, placement, cached->shares);
      roots = std::move(graph.roots);
      placement = std::move(graph.placement);
    }
    const auto values = roots.begin() + static_cast<std::ptrdiff_t>(outputs.size());
    request.outputs.assign(roots.begin(), values);
    for (std::size_t i = 0; i < updates.size(); ++i)
      request.updates.push_back({updates[i].target, values[static_cast<std::ptrdiff_t>(i)]});
    request.local = local;
    request.placement = &placement;
    request.shares = &cached->shares;
    request.distributor = session.distributor();
    request.random_step = session.random_step_address();
    cached->plan = lower(request);
    cached->plan.set_fingerprint(fingerprint);
    return cached;
  }

  // A scalar feed of a truth value decides branches when the plan is made, and an integer that is a size decides
  // shapes: each value has its own plan.
  void find_steering() {
    std::vector<Expr> roots = outputs;
    for (const Update& u : updates) roots.push_back(u.value);
    const std::vector<Expr> sizes = sizes_fed(roots);
    for (const Expr& input : inputs)
      steers.push_back((input.ndim() == 0 && input.dtype() == DType::kBool) ||
                       std::find(sizes.begin(), sizes.end(), input) != sizes.end());
  }

  // What ranks must agree on: operations, attributes, shapes, dtypes and names, in order.
  std::string describe_graph(const std::vector<Expr>& roots) const {
    std::string text = name + '\n';
    std::unordered_map<const Node*, std::size_t> number;
    for (const auto& node : nodes_under(roots)) {
      const std::size_t n = number.size();
      number[node.get()] = n;
      text += join_text('%', n, " = ", node->op->name, '(', node->op->print(node->attrs.get()), ')');
      for (const Expr& input : node->inputs) text += join_text(" %", number.at(&input.node()), '.', input.output());
      for (const Meta& meta : node->outputs) text += join_text(" : ", meta);
      if (!node->name.empty()) text += " '" + node->name + '\'';
      text += '\n';
    }
    for (std::size_t i = 0; i < roots.size(); ++i) {
      text += join_text(i < outputs.size() ? "output" : "update", " %", number.at(&roots[i].node()));
      if (i >= outputs.size()) text += " of '" + updates[i - outputs.size()].target.name() + '\'';
      text += '\n';
    }
    return text;
  }

  void step(std::span<const Array> feeds, Cached& cached, Session& session) {
    if (Distributor* distributor = session.distributor())
      for (const auto& state : cached.plan.variables())
        if (state->changed()) {
          distributor->broadcast(state->value().raw(), state->value().bytes());
          state->set_changed(false);
        }
    pointers.clear();
    for (const Array& feed : feeds) pointers.push_back(feed.raw());
    cached.plan.run(session, pointers);
    session.count_step(cached.plan.random());
  }
};

Function::Function(std::vector<Expr> inputs, std::vector<Expr> outputs, std::vector<Update> updates, std::string name)
    : impl_(std::make_unique<Impl>()) {
  for (const Expr& input : inputs)
    if (!is_placeholder(input))
      fail<ValueError>(name, ": input '", input.name(), "' (", input.op().name, ") is not a placeholder");
  std::set<const VariableState*> updated;
  for (const Update& u : updates)
    if (!updated.insert(&u.target.state()).second)
      fail<ValueError>(name, ": variable '", u.target.name(), "' is updated twice in one function");
  impl_->pointers.reserve(inputs.size());
  impl_->inputs = std::move(inputs);
  impl_->outputs = std::move(outputs);
  impl_->updates = std::move(updates);
  impl_->name = std::move(name);
  impl_->find_steering();
}

Function::~Function() = default;
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&&) noexcept = default;

void Function::run(std::span<const Array> feeds, std::span<Array> outputs) {
  Session& session = Session::current();
  Impl::Cached& cached = impl_->plan_for(feeds, session);
  impl_->check_outputs(outputs, cached.plan);
  impl_->step(feeds, cached, session);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].bytes() > 0) std::memcpy(outputs[i].raw(), cached.plan.output(i), outputs[i].bytes());
}

std::vector<Array> Function::operator()(std::span<const Array> feeds) {
  Session& session = Session::current();
  Impl::Cached& cached = impl_->plan_for(feeds, session);
  impl_->step(feeds, cached, session);
  std::vector<Array> results;
  for (std::size_t i = 0; i < cached.plan.outputs(); ++i) {
    results.emplace_back(cached.plan.output_meta(i).dtype, cached.plan.output_meta(i).shape);
    if (results.back().bytes() > 0) std::memcpy(results.back().raw(), cached.plan.output(i), results.back().bytes());
  }
  return results;
}

std::string Function::describe(std::span<const Array> feeds) {
  return impl_->plan_for(feeds, Session::current()).plan.describe();
}

std::size_t Function::arena_bytes(std::span<const Array> feeds) {
  return impl_->plan_for(feeds, Session::current()).plan.arena_bytes();
}

Array eval(const Expr& x) { return Function({}, {x}, {}, "eval")({}).front(); }

}  // namespace syncline
