#include "python/binding/tensor.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "python/binding/conversion.h"
#include "syncline/backend/function.h"
#include "syncline/backend/sparse.h"

namespace syncline::python {
namespace {

// A stack of nested blocks. The updates of a block follow those of the enclosing blocks; the last update of a variable
// applies.
std::vector<std::shared_ptr<const std::vector<Update>>>& updates_in_force() {
  thread_local std::vector<std::shared_ptr<const std::vector<Update>>> blocks;
  return blocks;
}

nb::object shape_of(const Tensor& x) {
  static nb::object& type =
      *new nb::object(nb::module_::import_("syncline.keras_support.tensor_shape").attr("TensorShape"));
  return type(shape_to(x.expr.shape()));
}

std::string shape_text(const Tensor& x) { return join_text(x.expr.shape()); }

auto assigning(Update (*make)(const Variable&, const Expr&)) {
  return [make](const VariableTensor& x, nb::handle value) {
    return UpdateTensor(make(x.variable, new_value_from(x.variable, value)));
  };
}

std::string describe(const Tensor& x, const char* kind) {
  return join_text('<', kind, " '", name_of(x), "' shape=", shape_text(x), " dtype=", x.expr.dtype(), '>');
}

std::string repr(const Tensor& x) {
  if (is_sparse(x.expr)) return describe(x, "SparseTensor");
  const Expr& e = x.expr;
  std::string text = describe(x, is_placeholder(e) ? "Placeholder" : "Tensor");
  if (e.node().inputs.empty()) return text;
  text.pop_back();
  text += join_text(" = ", e.op().name, '(');
  const std::vector<Expr>& inputs = e.node().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i == 4) {
      text += ", ...";
      break;
    }
    text += join_text(i == 0 ? "" : ", ", name_of(tensor(inputs[i])));
  }
  return text + ")>";
}

}  // namespace

std::string name_of(const Tensor& x) {
  const std::string& name = x.expr.name();
  if (!name.empty()) return join_text(name, ':', x.expr.output());
  return join_text(x.expr.op().name, '_', x.expr.node().id, ':', x.expr.output());
}

Tensor tensor(Expr expr) {
  const auto& blocks = updates_in_force();
  if (blocks.empty() || blocks.back()->empty()) return Tensor{std::move(expr), {}};
  return Tensor{std::move(expr), blocks.back()};
}

void push_updates(std::vector<Update> updates) {
  auto& blocks = updates_in_force();
  if (!blocks.empty()) updates.insert(updates.begin(), blocks.back()->begin(), blocks.back()->end());
  blocks.push_back(std::make_shared<const std::vector<Update>>(std::move(updates)));
}

void pop_updates() { updates_in_force().pop_back(); }

Expr read(const VariableTensor& x) {
  const auto& blocks = updates_in_force();
  if (blocks.empty()) return x.expr;
  for (auto u = blocks.back()->rbegin(); u != blocks.back()->rend(); ++u)
    if (&u->target.state() == &x.variable.state()) return u->value;
  return x.expr;
}

void bind_tensors(nb::module_& m) {
  nb::class_<Tensor> tensor_class(m, "Tensor", nb::dynamic_attr(), nb::is_weak_referenceable());
  tensor_class.doc() =
      "A symbolic value of the graph, computed by a step of a function. Compared and hashed by identity; equal(x, y)\n"
      "compares elements. Any attribute can be set on it.";
  tensor_class.def_prop_ro("name", &name_of)
      .def_prop_ro(
          "dtype", [](const Tensor& x) { return name_of_dtype(x.expr.dtype()); },
          "Name of the NumPy dtype, for example 'float32'.")
      .def_prop_ro("shape", &shape_of, "A tuple of sizes; None for a size that is fed.")
      .def("get_shape", &shape_of, "The shape.")
      .def_prop_ro("ndim", [](const Tensor& x) { return x.expr.ndim(); })
      .def("__repr__", &repr);
  bind_operators(tensor_class);

  nb::class_<VariableTensor, Tensor>(m, "Variable", nb::dynamic_attr(),
                                     "A tensor whose value persists between steps; equal on all ranks.")
      .def_prop_ro("name", [](const VariableTensor& x) { return x.variable.name() + ":0"; })
      .def("assign", assigning(&update), nb::arg("value"), "An update that gives it a new value.")
      .def("assign_add", assigning(&update_add), nb::arg("delta"), "An update that adds to it.")
      .def("assign_sub", assigning(&update_sub), nb::arg("delta"), "An update that subtracts from it.")
      .def("__repr__", [](const VariableTensor& x) {
        return join_text("<Variable '", x.variable.name(), ":0' shape=", shape_text(x), " dtype=", x.expr.dtype(), '>');
      });
  nb::class_<SparseVariableTensor, Tensor>(m, "SparseVariable", nb::dynamic_attr(),
                                           "A sparse matrix whose value persists between steps.");
  nb::class_<UpdateTensor, Tensor>(m, "Update", nb::dynamic_attr(),
                                   "A variable's new value. A function with it among its updates or outputs stores\n"
                                   "it, and so does eval.")
      .def("__repr__", [](const UpdateTensor& x) {
        return join_text("<Update of '", x.update.target.name(), ":0' shape=", shape_text(x), '>');
      });
  m.def("push_updates", [](const std::vector<nb::object>& updates) {
    std::vector<Update> found;
    for (const nb::object& u : updates) found.push_back(nb::cast<UpdateTensor&>(u).update);
    push_updates(std::move(found));
  });
  m.def("pop_updates", &pop_updates);
}

}  // namespace syncline::python
