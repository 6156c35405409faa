// Variables, constants, placeholders and updates.
#include "syncline/backend/variable.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "ops/graph/leaf.h"
#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/running.h"
#include "python/binding/tensor.h"
#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/backend/sparse_variable.h"

namespace syncline::python {
namespace {

nb::object make_variable(nb::handle value, nb::handle dtype, const std::string& name) {
  const DType type = dtype_from(dtype);
  const VariableOptions options{.dtype = type, .name = name};
  if (is_scipy_sparse(value)) return nb::cast(SparseVariableTensor(variable(sparse_from(value).cast(type), options)));
  if (!nb::isinstance<Tensor>(value)) return nb::cast(VariableTensor(variable(array_from(value, type).array, options)));
  const Expr initial = cast(expr_from(value), type);
  return nb::cast(VariableTensor(run_alone([&] { return variable(initial, options); })));
}

Expr make_constant(nb::handle value, nb::handle dtype, nb::handle shape, const std::string& name) {
  const DType type = dtype_from(dtype);
  std::optional<Shape> wanted;
  if (!shape.is_none()) wanted = Shape(integers_from(shape));
  return constant(array_from(value, type).array, type, wanted, name);
}

// Zeros or ones: a variable, or a tensor if a size is not known yet, because a variable's shape is fixed.
nb::object filled(double value, nb::handle shape, nb::handle dtype, const std::string& name) {
  const Dims dims = dims_from(shape);
  const DType type = dtype_from(dtype);
  if (dims.has_tensors() || !dims.numbers().is_known()) return nb::cast(tensor(fill(dims, value, type)));
  const VariableOptions options{.dtype = type, .name = name};
  return nb::cast(VariableTensor(value == 0 ? zeros(dims.numbers(), options) : ones(dims.numbers(), options)));
}

Tensor make_placeholder(nb::handle shape, nb::handle ndim, nb::handle dtype, bool sparse, const std::string& name) {
  PlaceholderOptions options{.dtype = dtype_from(dtype), .sparse = sparse, .name = name};
  if (!shape.is_none()) options.shape = shape_from(shape);
  else if (!ndim.is_none()) options.ndim = int_from(ndim, "ndim");
  return tensor(placeholder(std::move(options)));
}

void set_one(nb::handle x, nb::handle value) {
  if (SparseVariableTensor* sparse = nullptr; nb::try_cast(x, sparse) && sparse != nullptr) {
    const SparseArray matrix =
        is_scipy_sparse(value) ? sparse_from(value) : SparseArray::from_dense(array_from(value).array);
    const Alone alone;
    return set_value(sparse->variable, matrix.cast(sparse->variable.dtype()));
  }
  const Variable& variable = variable_of(x, "set_value");
  const HeldArray held = array_from(value, variable.dtype());
  const Alone alone;
  set_value(variable, Value(held.array));
}

void set_all(nb::handle pairs) {
  std::vector<std::pair<Variable, Value>> values;
  std::vector<nb::object> keepers;
  for (nb::handle entry : nb::iter(pairs)) {
    if (!is_sequence(entry) || nb::len(entry) != 2)
      fail<DTypeError>("batch_set_value: the entry ", repr_of(entry), " is not a pair (variable, value)");
    const nb::object pair = nb::borrow(entry);
    const Variable& variable = variable_of(pair[0], "batch_set_value");
    HeldArray held = array_from(pair[1], variable.dtype());
    // One number fills the variable, as NumPy assigns it.
    if (held.array.shape().ndim() == 0 && variable.shape().ndim() > 0) {
      Array full = Array::uninitialized(variable.dtype(), variable.shape());
      with_stored_dtype(full.dtype(),
                        [&]<class T>(T) { std::fill_n(full.data<T>(), full.size(), *held.array.data<T>()); });
      held.array = std::move(full);
    }
    keepers.push_back(held.keeper);
    values.emplace_back(variable, Value(held.array));
  }
  const Alone alone;
  batch_set_value(values);
}

std::vector<Variable> variables_in(nb::handle xs, const char* caller) {
  std::vector<Variable> variables;
  for (nb::handle x : nb::iter(xs)) variables.push_back(variable_of(x, caller));
  return variables;
}

// Reads all values while it holds the session, so no step runs in between. Dense ones first: `purpose` is theirs.
nb::list get_all(nb::handle xs, const std::string& purpose) {
  std::vector<Variable> dense;
  std::vector<std::optional<SparseVariable>> variables;  // empty: the next one of `dense`
  for (nb::handle x : nb::iter(xs)) {
    SparseVariableTensor* sparse = nullptr;
    if (nb::try_cast(x, sparse) && sparse != nullptr) variables.emplace_back(sparse->variable);
    else variables.emplace_back(), dense.push_back(variable_of(x, "get_value"));
  }
  std::vector<Array> arrays;
  std::vector<SparseArray> matrices;
  {
    const Alone alone;
    arrays = batch_get_value(dense, purpose);
    for (const auto& variable : variables)
      if (variable) matrices.push_back(get_value(*variable));
  }
  nb::list result;
  auto array = arrays.begin();
  auto matrix = matrices.begin();
  for (const auto& variable : variables)
    if (variable) result.append(sparse_to(*matrix++));
    else result.append(array_to(std::move(*array++)));
  return result;
}

// Whether reading these variables takes all ranks because their rows are split between nodes.
bool are_split(nb::handle xs) {
  bool split = false;
  for (nb::handle x : nb::iter(xs))
    if (!nb::isinstance<SparseVariableTensor>(x)) {
      const VariableState& state = variable_of(x, "get_value").state();
      split = split || (state.is_split() && state.whole() == nullptr);
    }
  return split;
}

void bind_updates(nb::module_& m) {
  m.def("update", [](nb::handle x, nb::handle new_x) {
    const Variable& v = variable_of(x, "update");
    return UpdateTensor(update(v, new_value_from(v, new_x)));
  });
  m.def("update_add", [](nb::handle x, nb::handle increment) {
    const Variable& v = variable_of(x, "update_add");
    return UpdateTensor(update_add(v, new_value_from(v, increment)));
  });
  m.def("update_sub", [](nb::handle x, nb::handle decrement) {
    const Variable& v = variable_of(x, "update_sub");
    return UpdateTensor(update_sub(v, new_value_from(v, decrement)));
  });
  m.def("moving_average_update", [](nb::handle x, nb::handle value, nb::handle momentum) {
    const Variable& v = variable_of(x, "moving_average_update");
    const Parameter kept = parameter_from(momentum);
    kept.check(v.dtype());
    const Expr e = new_value_from(v, value);
    return UpdateTensor(kept.number ? moving_average_update(v, e, *kept.number)
                                    : moving_average_update(v, e, kept.as(v.dtype())));
  });
}

}  // namespace

void bind_variables(nb::module_& m) {
  m.def("variable", &make_variable, nb::arg(), nb::arg().none(), nb::arg());
  m.def(
      "constant",
      [](nb::handle value, nb::handle dtype, nb::handle shape, const std::string& name) {
        return tensor(make_constant(value, dtype, shape, name));
      },
      nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg());
  m.def("filled", &filled, nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def(
      "eye",
      [](nb::handle size, nb::handle dtype, const std::string& name) {
        return VariableTensor(eye(Shape(integers_from(size)), {.dtype = dtype_from(dtype), .name = name}));
      },
      nb::arg(), nb::arg().none(), nb::arg());
  m.def("placeholder", &make_placeholder, nb::arg().none(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());
  m.def("is_placeholder", [](nb::handle x) {
    Tensor* found = nullptr;
    return nb::try_cast(x, found) && found != nullptr && is_placeholder(found->expr);
  });
  m.def("batch_get_value", &get_all, nb::arg(), nb::arg() = "");
  m.def("are_split", &are_split);
  m.def("hold_values", [](nb::handle xs, bool keep) {
    const std::vector<Variable> variables = variables_in(xs, "hold_values");
    const Alone alone;
    hold_values(variables, keep);
  });
  m.def("release_values", [](nb::handle xs) {
    const std::vector<Variable> variables = variables_in(xs, "release_values");
    const Alone alone;
    release_values(variables);
  });
  m.def("set_value", &set_one);
  m.def("batch_set_value", &set_all);
  bind_updates(m);
}

}  // namespace syncline::python
