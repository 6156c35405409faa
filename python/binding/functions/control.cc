// Control flow. Python functions are called while the graph is built, with the GIL held, and are not stored.
#include "syncline/backend/control.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/running.h"
#include "python/binding/tensor.h"
#include "syncline/backend/function.h"

namespace syncline::python {
namespace {

bool is_function(nb::handle value) { return !nb::isinstance<Tensor>(value) && PyCallable_Check(value.ptr()) != 0; }

TensorOrFunction side_from(nb::handle value, std::optional<DType> dtype) {
  if (!is_function(value)) return expr_from(value, dtype);
  return std::function<Expr()>([value, dtype] { return expr_from(value(), dtype); });
}

// A side that is not a tensor takes the dtype of the other side.
std::optional<DType> dtype_of_side(nb::handle value) {
  if (!nb::isinstance<Tensor>(value)) return {};
  return nb::cast<Tensor&>(value).expr.dtype();
}

nb::list list_of(const std::vector<Expr>& exprs) {
  nb::list result;
  for (const Expr& e : exprs) result.append(tensor(e));
  return result;
}

// For a scalar condition. Sides that are lists give a list, or a tensor if it has one value, as TensorFlow's cond.
nb::object choose_side(const Expr& condition, nb::handle then_expression, nb::handle else_expression) {
  const auto values_of = [](nb::handle side, nb::handle other) -> SeveralValues {
    return [side, other] {
      const nb::object value = is_function(side) ? side() : nb::borrow(side);
      return is_sequence(value) ? exprs_from(value) : std::vector<Expr>{expr_from(value, dtype_of_side(other))};
    };
  };
  const std::vector<Expr> values =
      switch_(condition, values_of(then_expression, else_expression), values_of(else_expression, then_expression));
  return values.size() == 1 ? nb::cast(tensor(values[0])) : nb::object(list_of(values));
}

nb::object choose(nb::handle condition, nb::handle then_expression, nb::handle else_expression) {
  const Expr c = expr_from(condition);
  const auto is_tensors = [](nb::handle side) { return !is_function(side) && !is_sequence(side); };
  if (c.ndim() == 0 && !(is_tensors(then_expression) && is_tensors(else_expression)))
    return choose_side(c, then_expression, else_expression);
  return nb::cast(tensor(switch_(c, side_from(then_expression, dtype_of_side(else_expression)),
                                 side_from(else_expression, dtype_of_side(then_expression)))));
}

nb::tuple recur(nb::callable step, nb::handle inputs, nb::handle initial_states, bool go_backwards, nb::handle mask,
                nb::handle constants, bool unroll, nb::handle input_length) {
  std::optional<std::int64_t> length;
  if (!input_length.is_none()) length = int64_from(input_length);
  const RnnStep iteration = [step](const Expr& x, const std::vector<Expr>& states) {
    const nb::object result = step(tensor(x), list_of(states));
    return std::pair{expr_from(result[0]), exprs_from(result[1])};
  };
  const RnnResult result = rnn(iteration, expr_from(inputs), exprs_from(initial_states),
                               {.go_backwards = go_backwards,
                                .mask = optional_expr_from(mask),
                                .constants = constants.is_none() ? std::vector<Expr>{} : exprs_from(constants),
                                .unroll = unroll,
                                .input_length = length});
  return nb::make_tuple(tensor(result.last_output), tensor(result.outputs), list_of(result.new_states));
}

nb::object map_over(nb::callable fn, nb::handle elems, nb::handle dtype) {
  const bool one = !is_sequence(elems);
  bool single = false;
  const MapFunctionOfMany f = [fn, one, &single](const std::vector<Expr>& elements) {
    const nb::object result = one ? fn(tensor(elements[0])) : fn(list_of(elements));
    single = !is_sequence(result);
    return single ? std::vector<Expr>{expr_from(result)} : exprs_from(result);
  };
  std::vector<DType> dtypes;
  if (is_sequence(dtype))
    for (nb::handle d : nb::iter(dtype)) dtypes.push_back(dtype_from(d));
  else if (!dtype.is_none()) dtypes.push_back(dtype_from(dtype));
  const std::vector<Expr> e = one ? std::vector<Expr>{expr_from(elems)} : exprs_from(elems);
  const nb::list results = list_of(map_fn(f, e, dtypes));
  return single ? nb::object(results[0]) : nb::object(results);
}

nb::object fold_over(nb::callable fn, nb::handle elems, nb::handle initializer, bool from_right) {
  const bool one = !is_sequence(elems);
  const auto given = [](const std::vector<Expr>& values, bool alone) {
    return alone ? nb::cast(tensor(values[0])) : nb::object(list_of(values));
  };
  const FoldFunctionOfMany f = [=](const std::vector<Expr>& accumulators, const std::vector<Expr>& elements) {
    const nb::object result = fn(given(accumulators, accumulators.size() == 1), given(elements, one));
    const bool several = is_sequence(result) && !(one && accumulators.size() == 1);
    return several ? exprs_from(result) : std::vector<Expr>{expr_from(result)};
  };
  // If elems is one tensor, a list of numbers is a vector.
  std::vector<Expr> first;
  if (is_sequence(initializer) && (!one || holds_tensors(initializer))) first = exprs_from(initializer);
  else if (!initializer.is_none()) first = {expr_from(initializer)};
  const std::vector<Expr> e = one ? std::vector<Expr>{expr_from(elems)} : exprs_from(elems);
  const nb::list results = list_of(from_right ? foldr(f, e, first) : foldl(f, e, first));
  return nb::len(results) == 1 ? nb::object(results[0]) : nb::object(results);
}

}  // namespace

void bind_control(nb::module_& m) {
  m.def("switch", [](nb::handle condition, nb::handle then_expression, nb::handle else_expression) {
    return choose(condition, then_expression, else_expression);
  });
  m.def("rnn", &recur, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(),
        nb::arg().none());
  m.def("map_fn", &map_over, nb::arg(), nb::arg(), nb::arg().none());
  m.def("fold", &fold_over, nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  print_to(&keep_text);
  m.def("print_tensor",
        [](nb::handle x, const std::string& message) { return tensor(print_tensor(expr_from(x), message)); });
}

}  // namespace syncline::python
