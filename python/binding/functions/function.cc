// Functions, their values, and gradients.
#include "syncline/backend/function.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "ops/control/body.h"
#include "ops/graph/leaf.h"
#include "ops/graph/substitute.h"
#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/running.h"
#include "python/binding/tensor.h"
#include "runtime/plan/plan.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/random.h"
#include "syncline/backend/sparse.h"
#include "syncline/session.h"

namespace syncline::python {
namespace {

// The updates of a function, one for each variable. All read the values from before the step. Of several updates that
// set a variable the last one applies: a weight that occurs twice in an optimizer's list makes one step. Several
// updates that move a variable (running statistics) apply in order, each to the result of the one before.
class Updates {
 public:
  // Adds an Update, a pair (variable, new value), or a sequence of these. Ignores None.
  void add(nb::handle item) {
    if (item.is_none()) return;
    if (UpdateTensor* update = nullptr; nb::try_cast(item, update) && update != nullptr) return add(update->update);
    VariableTensor* variable = nullptr;
    if (PyTuple_Check(item.ptr()) && nb::len(item) == 2 && nb::try_cast(item[0], variable) && variable != nullptr) {
      return add(update(variable->variable, new_value_from(variable->variable, item[1])));
    }
    if (is_sequence(item)) {
      for (nb::handle entry : nb::iter(item)) add(entry);
      return;
    }
    fail<ValueError>("function: the update ", nb::cast<std::string>(nb::str(nb::repr(item))),
                     " is neither a result of update(...) nor a pair (variable, new value)");
  }

  // Adds the updates that computing a value applies: an Update itself, or those in force when the tensor was made.
  void add_of(nb::handle value) {
    if (nb::isinstance<UpdateTensor>(value)) return add(value);
    const Tensor* x = nullptr;
    if (!nb::try_cast(value, x) || x == nullptr || x->after == nullptr) return;
    for (const Update& u : *x->after) add(u);
  }

  std::vector<Update> take() { return std::move(updates_); }

 private:
  void add(const Update& u) {
    for (const auto& [state, value] : given_)
      if (state == &u.target.state() && value == u.value) return;
    given_.emplace_back(&u.target.state(), u.value);
    for (Update& earlier : updates_)
      if (&earlier.target.state() == &u.target.state()) {
        const Replacements first{{u.target.expr(), earlier.value}};
        earlier.value = u.moves ? substitute(std::span(&u.value, 1), first).front() : u.value;
        return;
      }
    updates_.push_back(u);
  }

  std::vector<Update> updates_;
  std::vector<std::pair<const VariableState*, Expr>> given_;
};

nb::list described(std::span<const StepValue> values) {
  nb::list list;
  for (const StepValue& v : values) {
    const Meta& meta = v.value.meta();
    const std::string at = v.at.is_replicated() ? "" : join_text(v.at);
    list.append(nb::make_tuple(join_text(v.value.node().id, '.', v.value.output()), name_of(tensor(v.value)),
                               name_of_dtype(meta.dtype), shape_to(meta.shape), at,
                               v.assigned == nullptr ? "" : *v.assigned));
  }
  return list;
}

nb::list steps_of(const Plan& plan) {
  static constexpr const char* kKinds[] = {"kernel", "part_sum", "fused", "reduce", "start", "wait", "loop", "guard"};
  nb::list list;
  for (const Step& step : plan.steps()) {
    nb::dict row;
    row["label"] = step.label;
    row["kind"] = kKinds[step.kind];
    row["reads"] = described(step.reads);
    row["writes"] = described(step.writes);
    list.append(row);
  }
  return list;
}

class FunctionObject {
 public:
  // `pack` converts the list of results to the return value of a call; None: the list is returned.
  FunctionObject(nb::handle inputs, nb::handle outputs, nb::handle updates, const std::string& name, nb::object pack)
      : function_(make(inputs, outputs, updates, name, inputs_, roots_)), pack_(std::move(pack)), name_(name) {}

  nb::object call(nb::handle values) {
    Fed fed = feeds_from(values);
    std::vector<Array> results = run_alone([&] { return function_(std::span<const Feed>(fed.feeds)); });
    converted_ = std::move(fed.converted);
    nb::list list;
    for (Array& result : results) list.append(array_to(std::move(result)));
    return pack_.is_none() ? nb::object(list) : pack_(list);
  }

  nb::list steps() const {
    const Plan* plan = function_.last_plan();
    return plan == nullptr ? nb::list() : steps_of(*plan);
  }

  std::string describe(nb::handle values) {
    const Fed fed = feeds_from(values);
    return run_alone([&] { return function_.describe(std::span<const Feed>(fed.feeds)); });
  }

  nb::list random_ops() const {
    nb::list list;
    for (const RandomOp* op : random_ops_under(roots_)) list.append(nb::make_tuple(op->seed, op->op, op->runs));
    return list;
  }

  bool set_random_ops(const std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>& states) {
    const Alone alone;
    const std::vector<RandomOp*> ops = random_ops_under(roots_);
    if (ops.size() != states.size()) return false;
    for (std::size_t i = 0; i < ops.size(); ++i) std::tie(ops[i]->seed, ops[i]->op, ops[i]->runs) = states[i];
    return true;
  }

 private:
  // Sets `fed` to the inputs, with a new placeholder for each input that is not one. In the graph the placeholder
  // replaces that tensor. Sets `roots` to the outputs and the new values of the updates.
  static Function make(nb::handle inputs, nb::handle outputs, nb::handle updates, const std::string& name,
                       std::vector<Expr>& fed, std::vector<Expr>& roots) {
    Replacements replaced;
    for (nb::handle input : nb::iter(inputs)) {
      if (!nb::isinstance<Tensor>(input))
        fail<DTypeError>(name, ": the input ", repr_of(input), " is not a tensor; give a placeholder");
      if (nb::isinstance<VariableTensor>(input))
        fail<ValueError>(name, ": the input ", nb::cast<std::string>(nb::str(nb::repr(input))),
                         " cannot be fed; give a placeholder, or a tensor that is computed from one");
      const Expr e = expr_from(input);
      fed.push_back(is_placeholder(e) ? e : placeholder({.shape = e.shape(), .dtype = e.dtype()}));
      if (!(fed.back() == e)) replaced[e] = fed.back();
    }
    Updates collected;
    std::vector<Expr> values;
    for (nb::handle output : nb::iter(outputs)) {
      collected.add_of(output);
      values.push_back(to_dense(expr_from(output)));
    }
    collected.add(updates);
    std::vector<Update> changes = collected.take();
    if (!replaced.empty()) {
      values = substitute(values, replaced);
      for (Update& u : changes) u.value = substitute(std::span(&u.value, 1), replaced).front();
    }
    roots = values;
    for (const Update& u : changes) roots.push_back(u.value);
    return Function(fed, std::move(values), std::move(changes), name);
  }

  // The feeds of one call, and the owners of their memory.
  struct Fed {
    std::vector<Feed> feeds;
    std::vector<nb::object> keepers;  // owners of the arrays that are used in place
    std::vector<Array> converted;     // for each input: its value, if it was converted
  };

  // The number of axes of a value, which may be a list of lists.
  static int axes_of(nb::handle value) {
    if (is_sequence(value)) return 1 + (nb::len(value) == 0 ? 0 : axes_of(value[0]));
    const nb::object ndim = nb::getattr(value, "ndim", nb::none());
    return ndim.is_none() ? 0 : nb::cast<int>(ndim);
  }

  // Lists one value for each input. As in TensorFlow, nested lists are flattened and surplus values ignored. But a list
  // with at most as many axes as the input is one value, and a function of one input also takes a value without a list.
  void flatten(nb::handle values, std::vector<nb::object>& flat) const {
    if (PyDict_Check(values.ptr()))
      fail<ValueError>(name_, ": the inputs are a dict; give a list of ", inputs_.size(),
                       " values in the order of inputs");
    if (inputs_.size() == 1 && !is_sequence(values)) return flat.push_back(nb::borrow(values));
    for (nb::handle value : nb::iter(values)) {
      if (flat.size() == inputs_.size()) return;
      add_flat(value, flat);
    }
  }

  void add_flat(nb::handle value, std::vector<nb::object>& flat) const {
    const std::size_t first = flat.size();
    if (!is_sequence(value) || axes_of(value) <= inputs_[first].ndim()) return flat.push_back(nb::borrow(value));
    for (nb::handle entry : nb::iter(value)) {
      // The values to be ignored in a nested list would be rows of the input.
      if (flat.size() == inputs_.size())
        fail<ValueError>(name_, ": input ", first, " of shape ", inputs_[first].shape(), " is fed a list of ",
                         axes_of(value), " axes, of which only ", inputs_.size() - first, " of ", nb::len(value),
                         " entries would be used; give one value of ", inputs_[first].ndim(), " axes for each input");
      add_flat(entry, flat);
    }
  }

  // Takes the converted arrays of the last call as memory. A simultaneous call of another thread allocates new ones.
  Fed feeds_from(nb::handle values) {
    Fed fed;
    fed.converted = std::move(converted_);
    std::vector<Feed>& feeds = fed.feeds;
    fed.converted.resize(inputs_.size());
    std::vector<nb::object> flat;
    flatten(values, flat);
    for (const nb::object& value : flat) {
      const DType dtype = inputs_[feeds.size()].dtype();
      if (is_scipy_sparse(value)) {
        feeds.emplace_back(sparse_from(value).cast(dtype));
        continue;
      }
      Array& memory = fed.converted[feeds.size()];
      HeldArray held = feed_from(value, dtype, std::exchange(memory, Array()));  // a moved-from array has no memory
      if (held.keeper.is_valid()) fed.keepers.push_back(std::move(held.keeper));
      else memory = held.array;
      feeds.emplace_back(std::move(held.array));
    }
    // Keras passes no learning phase after set_learning_phase; a function built before that runs as in testing.
    while (feeds.size() < inputs_.size() && Session::is_learning_phase(inputs_[feeds.size()]))
      feeds.emplace_back(Array(inputs_[feeds.size()].dtype(), Shape{}));
    return fed;
  }

  std::vector<Expr> inputs_, roots_;
  Function function_;
  nb::object pack_;
  std::string name_;
  std::vector<Array> converted_;  // for each input: memory in which the next call may convert its value
};

nb::object evaluate(nb::handle x) {
  Updates updates;
  updates.add_of(x);
  const Expr value = expr_from(x);
  const std::vector<Update> stored = updates.take();
  return array_to(
      run_alone([&] { return stored.empty() ? eval(value) : Function({}, {value}, stored, "eval")({}).front(); }));
}

nb::list gradients_of(nb::handle loss, nb::handle variables) {
  std::vector<Expr> wrt;
  for (nb::handle v : nb::iter(variables)) wrt.push_back(tensor_of(v, "gradients"));
  nb::list result;
  for (Expr& gradient : gradients(expr_from(loss), wrt)) {
    if (gradient) result.append(tensor(std::move(gradient)));
    else result.append(nb::none());
  }
  return result;
}

}  // namespace

void bind_function(nb::module_& m) {
  nb::class_<FunctionObject>(m, "Function", "A function of placeholders: call it with a list of values.")
      .def(nb::init<nb::handle, nb::handle, nb::handle, const std::string&, nb::object>(), nb::arg("inputs"),
           nb::arg("outputs"), nb::arg("updates").none(), nb::arg("name"), nb::arg("pack") = nb::none())
      .def("__call__", &FunctionObject::call, nb::arg("inputs"),
           "Takes one value for each input. Returns a list with a NumPy value for each output.")
      .def("steps", &FunctionObject::steps,
           "The steps of the last used plan, as dicts: 'label', 'kind', and 'reads' and 'writes', lists of\n"
           "(number, name, dtype, shape, placement, assigned variable). Empty before the first call.")
      .def("describe", &FunctionObject::describe, nb::arg("inputs"),
           "The plan for values of these shapes, one line per step.")
      .def(
          "random_ops", &FunctionObject::random_ops,
          "(seed, stream of the seed, finished runs) of each random operation of the graph, in the order of the graph.")
      .def("set_random_ops", &FunctionObject::set_random_ops, nb::arg("states"),
           "Sets what random_ops returned. Changes nothing and returns False if the graph has another number of them.");
  m.def("eval", &evaluate);
  m.def("gradients", &gradients_of);
}

}  // namespace syncline::python
