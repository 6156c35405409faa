// Op cases of switch_ (with tensors and with functions) and of print_tensor.
#include <cmath>

#include "ops/graph/leaf.h"
#include "syncline/backend/control.h"
#include "syncline/backend/core.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

InputSpec flag(double value, DType dtype = DType::kInt32) { return {.shape = {}, .dtype = dtype, .values = {value}}; }

// The reference x if the input `condition` is not 0, else alt.
Reference either(std::size_t condition, const Reference& x, const Reference& alt) {
  return [=](std::span<const Tensor> in) { return in[condition].values[0] != 0 ? x(in) : alt(in); };
}

Reference element_of_input(std::size_t i, double (*f)(double)) {
  return [=](std::span<const Tensor> in) {
    Tensor y = in[i];
    for (double& value : y.values) value = f(value);
    return y;
  };
}

OpCase tensors_row(const std::string& name, const InputSpec& condition) {
  return {.name = name,
          .inputs = {condition, {.shape = {5, 3}}, {.shape = {5, 3}}},
          .build = [](const Exprs& x) { return switch_(x[0], x[1], x[2]); },
          .reference = [](std::span<const Tensor> in) { return in[in[0].values[0] != 0 ? 1 : 2]; },
          .second_gradient = true};
}

// exp(x) + w if the condition holds, else w * w.
OpCase functions_row(const std::string& name, const InputSpec& condition) {
  return {.name = name,
          .inputs = {condition, {.shape = {5, 3}}, {.shape = {5, 3}}},
          .build =
              [](const Exprs& x) {
                return switch_(
                    x[0], [&] { return exp(x[1]) + x[2]; }, [&] { return x[2] * x[2]; });
              },
          .reference =
              [](std::span<const Tensor> in) {
                Tensor y = in[2];
                for (std::size_t i = 0; i < y.values.size(); ++i)
                  y.values[i] =
                      in[0].values[0] != 0 ? std::exp(in[1].values[i]) + y.values[i] : y.values[i] * y.values[i];
                return y;
              },
          .second_gradient = true};
}

// The condition is a sum over the batch. The sum over ranks must be complete before a rank takes a side.
OpCase data_row(const std::string& name, double low, double high) {
  return {.name = name,
          .inputs = {{.shape = {5, 3}, .low = low, .high = high}, {.shape = {3, 2}}, {.shape = {5, 2}}},
          .build =
              [](const Exprs& x) {
                const auto product = [&] { return tanh(dot(x[0], x[1])); };
                return switch_(greater(sum(x[0]), scalar_like(0, x[0])), product, x[2]) * x[2];
              },
          .reference =
              [](std::span<const Tensor> in) {
                double total = 0;
                for (const double value : in[0].values) total += value;
                return tabulate({5, 2}, [&](const Index& i) {
                  double z = 0;
                  for (std::int64_t k = 0; k < 3; ++k) z += at(in[0], {i[0], k}) * at(in[1], {k, i[1]});
                  return (total > 0 ? std::tanh(z) : at(in[2], i)) * at(in[2], i);
                });
              },
          .second_gradient = true};
}

// The taken side sums over the batch. Its gradient distributes the gradient of the sum to the rows.
OpCase mixing_row() {
  return {.name = "switch_of_functions_that_mix_rows",
          .inputs = {flag(1), {.shape = {5, 3}}, {.shape = {3}}},
          .build =
              [](const Exprs& x) {
                return switch_(
                    x[0], [&] { return sum(x[1] * x[1], {0}) * x[2]; }, [&] { return x[2]; });
              },
          .reference =
              [](std::span<const Tensor> in) {
                return tabulate({3}, [&](const Index& j) {
                  double total = 0;
                  for (std::int64_t i = 0; i < 5; ++i) total += at(in[1], {i, j[0]}) * at(in[1], {i, j[0]});
                  return total * at(in[2], j);
                });
              },
          .second_gradient = true};
}

OpCase nested_row(double outer, double inner) {
  return {.name = "switch_nested_" + std::to_string(static_cast<int>(2 * outer + inner)),
          .inputs = {flag(outer), flag(inner, DType::kFloat32), {.shape = {5, 3}}},
          .build =
              [](const Exprs& x) {
                const auto of_inner = [&] {
                  return switch_(
                      x[1] + 0.0, [&] { return exp(x[2]); }, [&] { return sin(x[2]); });
                };
                return switch_(x[0], of_inner, [&] { return square(x[2]); });
              },
          .reference = either(0, either(1, element_of_input(2, &std::exp), element_of_input(2, &std::sin)),
                              element_of_input(2, [](double x) { return x * x; })),
          .gradient = true,
          .second_gradient = true};
}

std::vector<OpCase> scalar_rows() {
  return {tensors_row("switch", flag(1)),
          tensors_row("switch_of_bool", flag(0, DType::kBool)),
          tensors_row("switch_of_float", flag(0.5, DType::kFloat32)),
          functions_row("switch_of_functions", flag(1)),
          functions_row("switch_of_functions_else", flag(0)),
          functions_row("switch_of_functions_known", flag(1, DType::kBool)),
          data_row("switch_by_data", 0, 1),
          data_row("switch_by_data_else", -1, 0),
          mixing_row(),
          nested_row(1, 1),
          nested_row(1, 0),
          nested_row(0, 1),
          {.name = "switch_that_is_known",
           .inputs = {{.shape = {5, 3}}, {.shape = {5, 3}}},
           .build = [](const Exprs& x) { return switch_(scalar(0, DType::kBool), x[0], x[1]); },
           .reference = [](std::span<const Tensor> in) { return in[1]; }}};
}

OpCase elements_row(const std::string& name, const Shape& condition, const Shape& shape, DType dtype) {
  return {.name = name,
          .inputs = {{.shape = condition, .dtype = dtype, .low = 0, .high = 1}, {.shape = shape}, {.shape = shape}},
          .build =
              [](const Exprs& x) {
                return switch_(
                    x[0], [&] { return x[1] * 2.0; }, x[2]);
              },
          .reference =
              [=](std::span<const Tensor> in) {
                return tabulate(shape, [&](const Index& index) {
                  std::size_t place = 0;
                  for (int axis = 0; axis < condition.ndim(); ++axis) {
                    const std::int64_t i = condition[axis] == 1 ? 0 : index[static_cast<std::size_t>(axis)];
                    place = place * static_cast<std::size_t>(condition[axis]) + static_cast<std::size_t>(i);
                  }
                  return in[0].values[place] != 0 ? 2 * at(in[1], index) : at(in[2], index);
                });
              },
          .second_gradient = true};
}

std::vector<OpCase> element_rows() {
  return {elements_row("switch_elements", {5, 3}, {5, 3}, DType::kBool),
          elements_row("switch_rows", {5}, {5, 3}, DType::kInt32),
          elements_row("switch_columns", {1, 3}, {5, 3, 2}, DType::kBool),
          elements_row("switch_expanded", {5, 2}, {5, 2, 3}, DType::kUint8)};
}

// A choice in each iteration, by the iteration's input; a loop on one side of a choice.
std::vector<OpCase> loop_rows() {
  const RnnStep choosing = [](const Expr& e, const Exprs& s) {
    const Expr h = switch_(
        greater(sum(e), scalar_like(0, e)), [&] { return tanh(s[0] + e); }, [&] { return s[0] * 0.5; });
    return std::pair{h, Exprs{h}};
  };
  const RnnStep adding = [](const Expr& e, const Exprs& s) { return std::pair{s[0] * e, Exprs{tanh(s[0] + e)}}; };
  return {{.name = "switch_in_rnn",
           .inputs = {{.shape = {5, 6, 2}}, {.shape = {5, 2}}},
           .build = [=](const Exprs& x) { return batch_flatten(rnn(choosing, x[0], {x[1]}).outputs); },
           .reference =
               [](std::span<const Tensor> in) {
                 Tensor y{{5, 12}, std::vector<double>(60)}, h = in[1];
                 for (std::int64_t t = 0; t < 6; ++t) {
                   double total = 0;
                   for (std::int64_t i = 0; i < 10; ++i) total += at(in[0], {i / 2, t, i % 2});
                   for (std::int64_t i = 0; i < 10; ++i) {
                     double& value = h.values[static_cast<std::size_t>(i)];
                     value = total > 0 ? std::tanh(value + at(in[0], {i / 2, t, i % 2})) : value * 0.5;
                     y.values[static_cast<std::size_t>(i / 2 * 12 + t * 2 + i % 2)] = value;
                   }
                 }
                 return y;
               },
           .second_gradient = true},
          {.name = "rnn_in_switch",
           .inputs = {flag(1), {.shape = {5, 3, 2}}, {.shape = {5, 2}}},
           .build =
               [=](const Exprs& x) {
                 return switch_(
                     x[0], [&] { return rnn(adding, x[1], {x[2]}).last_output; }, [&] { return x[2]; });
               },
           .no_reference = "the rows of rnn cover the arithmetic; this is about gradients and placement"}};
}

std::vector<OpCase> print_rows() {
  return {{.name = "print_tensor",
           .inputs = {{.shape = {5, 2}}},
           .build = [](const Exprs& x) { return print_tensor(x[0], "x ="); },
           .reference = [](std::span<const Tensor> in) { return in[0]; }}};
}

SYNCLINE_OP_CASES(scalar_rows)
SYNCLINE_OP_CASES(element_rows)
SYNCLINE_OP_CASES(loop_rows)
SYNCLINE_OP_CASES(print_rows)

}  // namespace
}  // namespace syncline::testing
