// Elementwise functions, reductions and products.
#include "syncline/backend/math.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/tensor.h"
#include "syncline/backend/core.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/reduce.h"

namespace syncline::python {
namespace {

void unary(nb::module_& m, const char* name, Expr (*op)(const Expr&)) {
  m.def(name, [op](nb::handle x) { return tensor(op(expr_from(x))); });
}

void binary(nb::module_& m, const char* name, Expr (*op)(const Expr&, const Expr&)) {
  m.def(name, [op](nb::handle x, nb::handle y) {
    const Operands o = operands_from(x, y);
    return tensor(op(o.x, o.y));
  });
}

void reduction(nb::module_& m, const char* name, Expr (*op)(const Expr&, Axes, bool)) {
  m.def(
      name,
      [op](nb::handle x, nb::handle axis, bool keepdims) {
        return tensor(op(expr_from(x), axes_from(axis), keepdims));
      },
      nb::arg(), nb::arg().none(), nb::arg());
}

std::array<int, 2> two_axes(nb::handle axes) {
  const std::vector<int> given = axes_from(axes).of(0);
  if (given.size() == 1) return {given[0], given[0]};
  if (given.size() != 2) fail<ValueError>("batch_dot: axes holds ", given.size(), " numbers; give one or two");
  return {given[0], given[1]};
}

Expr clip_to(const Expr& x, const Parameter& low, const Parameter& high) {
  low.check_whole(x.dtype());
  high.check_whole(x.dtype());
  const bool numbers = (low.number || !low.is_given()) && (high.number || !high.is_given());
  if (numbers) return clip(x, low.number, high.number);
  Expr y = x;
  if (high.is_given()) y = high.number ? clip(y, {}, high.number) : minimum(y, high.as_bound(x.dtype()));
  if (low.is_given()) y = low.number ? clip(y, low.number, {}) : maximum(y, low.as_bound(x.dtype()));
  return y;
}

void bind_elementwise(nb::module_& m) {
  unary(m, "square", square);
  unary(m, "abs", abs);
  unary(m, "sqrt", sqrt);
  unary(m, "exp", exp);
  unary(m, "log", log);
  unary(m, "round", round);
  unary(m, "sign", sign);
  unary(m, "sin", sin);
  unary(m, "cos", cos);
  binary(m, "pow", pow);
  binary(m, "equal", equal);
  binary(m, "not_equal", not_equal);
  binary(m, "greater", greater);
  binary(m, "greater_equal", greater_equal);
  binary(m, "less", less);
  binary(m, "less_equal", less_equal);
  binary(m, "maximum", maximum);
  binary(m, "minimum", minimum);
  m.def(
      "clip",
      [](nb::handle x, nb::handle min_value, nb::handle max_value) {
        return tensor(clip_to(expr_from(x), optional_parameter_from(min_value), optional_parameter_from(max_value)));
      },
      nb::arg(), nb::arg().none(), nb::arg().none());
  m.def("cast", [](nb::handle x, nb::handle dtype) { return tensor(cast(expr_from(x), dtype_from(dtype))); });
}

void bind_reductions(nb::module_& m) {
  reduction(m, "sum", sum);
  reduction(m, "prod", prod);
  reduction(m, "max", max);
  reduction(m, "min", min);
  reduction(m, "any", any);
  reduction(m, "all", all);
  reduction(m, "mean", mean);
  reduction(m, "var", var);
  reduction(m, "std", std);
  reduction(m, "logsumexp", logsumexp);
  const auto arg = [&m](const char* name, Expr (*op)(const Expr&, int)) {
    m.def(
        name,
        [op](nb::handle x, nb::handle axis) {  // None: the first axis, as in TensorFlow
          return tensor(op(expr_from(x), axis.is_none() ? 0 : int_from(axis, "axis")));
        },
        nb::arg(), nb::arg().none());
  };
  arg("argmax", argmax);
  arg("argmin", argmin);
  m.def("cumsum", [](nb::handle x, nb::handle axis) { return tensor(cumsum(expr_from(x), int_from(axis, "axis"))); });
  m.def("cumprod", [](nb::handle x, nb::handle axis) { return tensor(cumprod(expr_from(x), int_from(axis, "axis"))); });
}

void bind_products(nb::module_& m) {
  binary(m, "dot", dot);
  m.def(
      "batch_dot",
      [](nb::handle x, nb::handle y, nb::handle axes) {
        const Operands o = operands_from(x, y);
        return tensor(axes.is_none() ? batch_dot(o.x, o.y) : batch_dot(o.x, o.y, two_axes(axes)));
      },
      nb::arg(), nb::arg(), nb::arg().none());
  m.def("gather", [](nb::handle reference, nb::handle indices) {
    return tensor(gather(expr_from(reference), expr_from(indices)));
  });
}

}  // namespace

void bind_math(nb::module_& m) {
  bind_elementwise(m);
  bind_reductions(m);
  bind_products(m);
}

}  // namespace syncline::python
