// Op cases of sparse tensors. A sparse operand consists of three inputs: values, columns and spans
// (ops/sparse/tensor.h). Each row has its own slots for entries.
#include "syncline/backend/sparse.h"

#include "ops/graph/leaf.h"
#include "ops/sparse/tensor.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

// Row i has (i * step) % (slots + 1) entries, in its last slots.
InputSpec spans_of(std::int64_t rows, std::int64_t slots, std::int64_t step) {
  InputSpec spec{.shape = {rows, 2}, .dtype = DType::kInt64};
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t entries = i * step % (slots + 1);
    spec.values.push_back(static_cast<double>(slots - entries));
    spec.values.push_back(static_cast<double>(entries));
  }
  return spec;
}

// The inputs of a sparse matrix of `rows` rows and `width` columns.
std::vector<InputSpec> parts(std::int64_t rows, std::int64_t slots, std::int64_t width, std::int64_t step = 2,
                             DType dtype = DType::kFloat32) {
  return {{.shape = {rows, slots}, .dtype = dtype},
          {.shape = {rows, slots}, .dtype = DType::kInt32, .low = 0, .high = static_cast<double>(width - 1)},
          spans_of(rows, slots, step)};
}

std::vector<InputSpec> joined(std::vector<InputSpec> a, const std::vector<InputSpec>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Expr sparse_of(const Exprs& x, std::size_t first, std::int64_t width) {
  return sparse_tensor({x[first], x[first + 1], x[first + 2], constant_of(Array(DType::kBool, Shape{0, width}))});
}

Tensor dense_of(std::span<const Tensor> in, std::int64_t width) {
  const std::int64_t rows = in[0].shape[0], slots = in[0].shape[1];
  Tensor dense{{rows, width}, std::vector<double>(static_cast<std::size_t>(rows * width))};
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto span = static_cast<std::size_t>(2 * i);
    const auto begin = i * slots + static_cast<std::int64_t>(in[2].values[span]);
    for (std::int64_t e = begin; e < begin + static_cast<std::int64_t>(in[2].values[span + 1]); ++e) {
      const auto entry = static_cast<std::size_t>(e);
      dense.values[static_cast<std::size_t>(i * width) + static_cast<std::size_t>(in[1].values[entry])] +=
          in[0].values[entry];
    }
  }
  return dense;
}

Tensor product(const Tensor& x, const Tensor& y) {
  return tabulate({x.shape[0], y.shape[1]}, [&](const Index& i) {
    double total = 0;
    for (std::int64_t k = 0; k < x.shape[1]; ++k) total += at(x, {i[0], k}) * at(y, {k, i[1]});
    return total;
  });
}

OpCase dense_case(std::string name, std::int64_t width, std::vector<InputSpec> inputs) {
  return {.name = std::move(name),
          .inputs = std::move(inputs),
          .build = [width](const Exprs& x) { return to_dense(sparse_of(x, 0, width)); },
          .reference = [width](std::span<const Tensor> in) { return dense_of(in, width); },
          .large = parts(4000, 16, width, 5),
          .second_gradient = true};
}

OpCase dot_case(std::string name, std::int64_t rows, std::int64_t slots, std::int64_t width, std::int64_t n) {
  return {.name = std::move(name),
          .inputs = joined(parts(rows, slots, width), {{.shape = {width, n}}}),
          .build = [](const Exprs& x) { return dot(sparse_of(x, 0, x[3].shape()[0]), x[3]); },
          .reference = [width](std::span<const Tensor> in) { return product(dense_of(in, width), in[3]); },
          .large = joined(parts(400, 16, 300, 5), {{.shape = {300, 70}}}),
          .open_batch = false,
          .second_gradient = true};
}

// The gradients of products as outputs. The large inputs suffice for several threads.
std::vector<OpCase> gradient_rows() {
  const auto inputs = joined(parts(5, 3, 6), {{.shape = {6, 4}}, {.shape = {5, 4}}});
  const auto large = joined(parts(400, 16, 300, 5), {{.shape = {300, 70}}, {.shape = {400, 70}}});
  auto gradient_of_dot = [](const Exprs& x, std::size_t wrt) {
    const Expr y = dot(sparse_of(x, 0, x[3].shape()[0]), x[3]);
    return gradients(y * x[4], {x[wrt]})[0];
  };
  return {
      {.name = "sparse_dot_transposed",
       .inputs = inputs,
       .build = [=](const Exprs& x) { return gradient_of_dot(x, 3); },
       .reference =
           [](std::span<const Tensor> in) {
             const Tensor x = dense_of(in, 6);
             return product(tabulate({6, 5}, [&](const Index& i) { return at(x, {i[1], i[0]}); }), in[4]);
           },
       .large = large,
       .open_batch = false},
      {.name = "sparse_dot_values",
       .inputs = inputs,
       .build = [=](const Exprs& x) { return gradient_of_dot(x, 0); },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate(in[0].shape, [&](const Index& i) {
               const double begin = at(in[2], {i[0], 0});
               if (static_cast<double>(i[1]) < begin) return 0.0;
               const auto column = static_cast<std::int64_t>(at(in[1], i));
               double total = 0;
               for (std::int64_t j = 0; j < 4; ++j) total += at(in[4], {i[0], j}) * at(in[3], {column, j});
               return total;
             });
           },
       .large = large,
       .open_batch = false},
  };
}

OpCase concatenate_case(std::string name, int axis, std::vector<InputSpec> first, std::vector<InputSpec> second) {
  constexpr std::int64_t kWidth = 5;
  return {.name = std::move(name),
          .inputs = joined(std::move(first), second),
          .build =
              [axis](const Exprs& x) {
                const Expr a = sparse_of(x, 0, kWidth), b = sparse_of(x, 3, kWidth);
                return to_dense(concatenate({a, b, cast(a, a.dtype())}, axis));
              },
          .reference =
              [axis](std::span<const Tensor> in) {
                const Tensor a = dense_of(in, kWidth), b = dense_of(in.subspan(3), kWidth);
                Shape shape = a.shape;
                const int joined_axis = axis < 0 ? axis + 2 : axis;
                shape[joined_axis] = 2 * a.shape[joined_axis] + b.shape[joined_axis];
                return tabulate(shape, [&](Index i) {
                  auto& along = i[static_cast<std::size_t>(joined_axis)];
                  if (along < a.shape[joined_axis]) return at(a, i);
                  along -= a.shape[joined_axis];
                  if (along < b.shape[joined_axis]) return at(b, i);
                  along -= b.shape[joined_axis];
                  return at(a, i);
                });
              },
          .second_gradient = true};
}

std::vector<OpCase> sparse_rows() {
  std::vector<OpCase> rows{
      dense_case("to_dense", 6, parts(5, 3, 6)),
      dense_case("to_dense_of_columns_named_twice", 2, parts(5, 6, 2, 3)),
      dense_case("to_dense_int64", 6, parts(5, 3, 6, 2, DType::kInt64)),
      dot_case("sparse_dot", 5, 3, 6, 4),
      dot_case("sparse_dot_wide", 3, 2, 4, 37),
      dot_case("sparse_dot_narrow", 6, 4, 3, 1),
      concatenate_case("sparse_concatenate_columns", -1, parts(5, 3, 5), parts(5, 2, 5, 1)),
      concatenate_case("sparse_concatenate_rows", 0, parts(5, 3, 5), parts(5, 2, 5, 1)),
  };
  rows.push_back({.name = "sparse_dot_vector",
                  .inputs = joined(parts(5, 3, 6), {{.shape = {6}}}),
                  .build = [](const Exprs& x) { return dot(sparse_of(x, 0, 6), x[3]); },
                  .reference =
                      [](std::span<const Tensor> in) {
                        const Tensor y = product(dense_of(in, 6), {{6, 1}, in[3].values});
                        return Tensor{{5}, y.values};
                      },
                  .open_batch = false});
  rows.push_back({.name = "sparse_cast",
                  .inputs = parts(5, 3, 6),
                  .build = [](const Exprs& x) { return to_dense(cast(sparse_of(x, 0, 6), DType::kFloat64)); },
                  .reference = [](std::span<const Tensor> in) { return dense_of(in, 6); },
                  .second_gradient = true});
  rows.push_back({.name = "sparse_with_dense_concatenate",
                  .inputs = joined(parts(5, 3, 2), {{.shape = {5, 1}}}),
                  .build =
                      [](const Exprs& x) {
                        return concatenate({x[3], sparse_of(x, 0, 2)}, 1);
                      },
                  .reference =
                      [](std::span<const Tensor> in) {
                        const Tensor x = dense_of(in, 2);
                        return tabulate({5, 3}, [&](const Index& i) {
                          return i[1] == 0 ? at(in[3], i) : at(x, {i[0], i[1] - 1});
                        });
                      }});
  return rows;
}

SYNCLINE_OP_CASES(sparse_rows)
SYNCLINE_OP_CASES(gradient_rows)

}  // namespace
}  // namespace syncline::testing
