// Activations, losses and normalization.
#include "syncline/backend/nn.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/tensor.h"
#include "syncline/backend/math.h"

namespace syncline::python {
namespace {

Expr relu_of(const Expr& x, const Parameter& alpha, const Parameter& max_value, const Parameter& threshold) {
  alpha.check(x.dtype());
  threshold.check(x.dtype());
  const Array largest = max_value.known();
  for (const double x : largest.values<double>())
    if (x < 0) fail<ValueError>("relu: max_value is ", x, "; give 0 or more");
  if (alpha.number && threshold.number && (max_value.number || !max_value.is_given()))
    return relu(x, {.alpha = *alpha.number, .max_value = max_value.number, .threshold = *threshold.number});
  const auto given = [&](const Parameter& p) { return p.number && *p.number == 0 ? Expr{} : p.as(x.dtype()); };
  return relu(x, ReluTensors{.alpha = given(alpha),
                             .max_value = max_value.is_given() ? max_value.as_bound(x.dtype()) : Expr{},
                             .threshold = given(threshold)});
}

void bind_activations(nb::module_& m) {
  m.def(
      "relu",
      [](nb::handle x, nb::handle alpha, nb::handle max_value, nb::handle threshold) {
        return tensor(relu_of(expr_from(x), parameter_from(alpha), optional_parameter_from(max_value),
                              parameter_from(threshold)));
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  m.def("elu", [](nb::handle x, nb::handle alpha) {
    const Expr e = expr_from(x);
    const Parameter slope = parameter_from(alpha);
    if (!is_floating(e.dtype())) return tensor(elu(e));  // throws: an error about x comes before one about alpha
    return tensor(slope.number ? elu(e, *slope.number) : elu(e, slope.as(e.dtype())));
  });
  m.def("softmax", [](nb::handle x, nb::handle axis) { return tensor(softmax(expr_from(x), int_from(axis, "axis"))); });
  const auto activation = [&m](const char* name, Expr (*op)(const Expr&)) {
    m.def(name, [op](nb::handle x) { return tensor(op(expr_from(x))); });
  };
  activation("sigmoid", sigmoid);
  activation("hard_sigmoid", hard_sigmoid);
  activation("tanh", tanh);
  activation("softplus", softplus);
  activation("softsign", softsign);
}

void bind_losses(nb::module_& m) {
  m.def("categorical_crossentropy", [](nb::handle target, nb::handle output, bool from_logits, nb::handle axis) {
    const Operands o = operands_from(target, output);
    return tensor(categorical_crossentropy(o.x, o.y, {.from_logits = from_logits, .axis = int_from(axis, "axis")}));
  });
  m.def("sparse_categorical_crossentropy", [](nb::handle target, nb::handle output, bool from_logits, nb::handle axis) {
    return tensor(sparse_categorical_crossentropy(expr_from(target), expr_from(output),
                                                  {.from_logits = from_logits, .axis = int_from(axis, "axis")}));
  });
  m.def("binary_crossentropy", [](nb::handle target, nb::handle output, bool from_logits) {
    const Operands o = operands_from(target, output);
    return tensor(binary_crossentropy(o.x, o.y, {.from_logits = from_logits}));
  });
  m.def("in_top_k", [](nb::handle predictions, nb::handle targets, nb::handle k) {
    return tensor(in_top_k(expr_from(predictions), expr_from(targets), int_from(k, "k")));
  });
}

}  // namespace

void bind_nn(nb::module_& m) {
  bind_activations(m);
  bind_losses(m);
  m.def(
      "l2_normalize", [](nb::handle x, nb::handle axis) { return tensor(l2_normalize(expr_from(x), axes_from(axis))); },
      nb::arg(), nb::arg().none());
  m.def(
      "batch_normalization",
      [](nb::handle x, nb::handle mean, nb::handle var, nb::handle beta, nb::handle gamma, nb::handle axis,
         nb::handle epsilon) {
        const Parameter added = parameter_from(epsilon);
        Expr variance = expr_from(var);
        if (!added.number) variance = add(variance, added.as(variance.dtype()));
        return tensor(batch_normalization(expr_from(x), expr_from(mean), variance, optional_expr_from(beta),
                                          optional_expr_from(gamma), int_from(axis, "axis"), added.number.value_or(0)));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());
  m.def(
      "normalize_batch_in_training",
      [](nb::handle x, nb::handle gamma, nb::handle beta, nb::handle reduction_axes, double epsilon) {
        const NormalizedBatch batch = normalize_batch_in_training(
            expr_from(x), optional_expr_from(gamma), optional_expr_from(beta), axes_from(reduction_axes), epsilon);
        return nb::make_tuple(tensor(batch.normalized), tensor(batch.mean), tensor(batch.variance));
      },
      nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg());
}

}  // namespace syncline::python
