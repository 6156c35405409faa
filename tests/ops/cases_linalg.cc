// Op cases of products, of gathered and scattered rows, and of the plan's rewrites of gradients by rows.
#include "syncline/backend/linalg.h"

#include "ops/graph/leaf.h"
#include "ops/linalg/packed.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

// Sums products over the last axis of x and the axis `summed` of y. The other axes of y follow those of x.
Tensor contract(const Tensor& x, const Tensor& y, int summed) {
  Shape shape = x.shape;
  shape.erase(shape.ndim() - 1);
  for (int axis = 0; axis < y.shape.ndim(); ++axis)
    if (axis != summed) shape.push_back(y.shape[axis]);
  return tabulate(shape, [&](const Index& index) {
    const auto lead = index.begin() + (x.shape.ndim() - 1);
    double total = 0;
    for (std::int64_t k = 0; k < x.shape.back(); ++k) {
      Index in_x(index.begin(), lead), in_y(lead, index.end());
      in_x.push_back(k);
      in_y.insert(in_y.begin() + summed, k);
      total += at(x, in_x) * at(y, in_y);
    }
    return total;
  });
}

OpCase product(std::string name, Shape x, Shape y) {
  const int summed = std::max(0, y.ndim() - 2);
  return {.name = std::move(name),
          .inputs = {{.shape = std::move(x)}, {.shape = std::move(y)}},
          .build = [](const Exprs& e) { return dot(e[0], e[1]); },
          .reference = [summed](std::span<const Tensor> in) { return contract(in[0], in[1], summed); },
          .second_gradient = true};
}

std::vector<OpCase> product_rows() {
  std::vector<OpCase> rows{
      product("dot", {5, 3}, {3, 4}),        product("dot_of_sequences", {5, 2, 3}, {3, 4}),
      product("dot_of_vector", {3}, {3, 4}), product("dot_with_vector", {5, 3}, {3}),
      product("dot_of_vectors", {5}, {5}),   product("dot_with_many_axes", {2, 3}, {4, 3, 5}),
      product("dot_square", {5, 5}, {5, 5}),
  };
  rows[0].large = {{.shape = {128, 784}}, {.shape = {784, 512}}};
  rows.push_back({.name = "dot_transposed",
                  .inputs = {{.shape = {5, 3}}, {.shape = {4, 3}}},
                  .build = [](const Exprs& x) { return dot_transposed(x[0], x[1]); },
                  .reference = [](std::span<const Tensor> in) { return contract(in[0], in[1], 1); },
                  .large = {{.shape = {128, 512}}, {.shape = {784, 512}}},
                  .second_gradient = true});
  for (const bool transpose : {false, true})
    rows.push_back({.name = transpose ? "dot_packed_transposed" : "dot_packed",
                    .inputs = {{.shape = {11, 7}}, {.shape = transpose ? Shape{37, 7} : Shape{7, 37}}},
                    .build = [=](const Exprs& x) { return dot_packed(x[0], pack_matrix(x[1], transpose), 37); },
                    .reference = [=](std::span<const Tensor> in) { return contract(in[0], in[1], transpose ? 1 : 0); },
                    .large = {{.shape = {300, 1024}}, {.shape = transpose ? Shape{37, 1024} : Shape{1024, 37}}},
                    .open_batch = false,
                    .gradient = false});
  rows.push_back({.name = "dot_kernel_grad",
                  .inputs = {{.shape = {5, 2, 3}}, {.shape = {5, 2, 4}}},
                  .build = [](const Exprs& x) { return dot_kernel_grad(x[0], x[1]); },
                  .reference =
                      [](std::span<const Tensor> in) {
                        return tabulate({3, 4}, [&](const Index& i) {
                          double total = 0;
                          for (std::int64_t a = 0; a < 5; ++a)
                            for (std::int64_t b = 0; b < 2; ++b)
                              total += at(in[0], {a, b, i[0]}) * at(in[1], {a, b, i[1]});
                          return total;
                        });
                      },
                  .large = {{.shape = {128, 784}}, {.shape = {128, 512}}},
                  .second_gradient = true});
  return rows;
}

Reference gathered_rows() {
  return [](std::span<const Tensor> in) {
    Shape shape = in[1].shape;
    for (int axis = 1; axis < in[0].shape.ndim(); ++axis) shape.push_back(in[0].shape[axis]);
    return tabulate(shape, [&](const Index& index) {
      const auto lead = index.begin() + in[1].shape.ndim();
      Index from(lead, index.end());
      from.insert(from.begin(), static_cast<std::int64_t>(at(in[1], Index(index.begin(), lead))));
      return at(in[0], from);
    });
  };
}

// The table with factor * values[i] added to the row indices[i].
Tensor with_rows(Tensor table, const Tensor& values, const Tensor& indices, double factor) {
  const auto width = static_cast<std::size_t>(table.shape.product(1, table.shape.ndim()));
  for (std::size_t i = 0; i < indices.values.size(); ++i)
    for (std::size_t j = 0; j < width; ++j)
      table.values[static_cast<std::size_t>(indices.values[i]) * width + j] += factor * values.values[i * width + j];
  return table;
}

// The gradient of a table for the loss sum(rows^2) / 2: the gathered rows, scattered.
Expr embedding_gradient(const Expr& table, const Expr& indices) {
  return gradients(sum(square(gather(table, indices))) * 0.5, {table})[0];
}

Tensor scattered(std::span<const Tensor> in, const Tensor& table, double factor) {
  return with_rows(table, gathered_rows()(in), in[1], factor);
}

Tensor zeros_of(const Tensor& like) { return {like.shape, std::vector<double>(like.values.size(), 0)}; }

const InputSpec kTable{.shape = {5, 3}};
const InputSpec kIndices{.shape = {5}, .dtype = DType::kInt32, .low = 0, .high = 4};

std::vector<OpCase> row_rows() {
  return {
      {.name = "gather",
       .inputs = {kTable, kIndices},
       .build = [](const Exprs& x) { return gather(x[0], x[1]); },
       .reference = gathered_rows(),
       .large = {{.shape = {10000, 64}}, {.shape = {4096}, .dtype = DType::kInt64, .low = 0, .high = 9999}},
       .second_gradient = true},
      {.name = "gather_of_sequences",
       .inputs = {{.shape = {7, 2}}, {.shape = {5, 3}, .dtype = DType::kInt64, .low = 0, .high = 6}},
       .build = [](const Exprs& x) { return gather(x[0], x[1]); },
       .reference = gathered_rows(),
       .second_gradient = true},
      {.name = "gather_of_small_integers",
       .inputs = {{.shape = {7}, .dtype = DType::kInt16, .low = -9, .high = 9},
                  {.shape = {5}, .dtype = DType::kUint8, .low = 0, .high = 6}},
       .build = [](const Exprs& x) { return gather(x[0], x[1]); },
       .reference = gathered_rows()},
      {.name = "scatter_rows",
       .inputs = {kTable, kIndices},
       .build = [](const Exprs& x) { return embedding_gradient(x[0], x[1]); },
       .reference = [](std::span<const Tensor> in) { return scattered(in, zeros_of(in[0]), 1); },
       .large = {{.shape = {10000, 64}}, {.shape = {4096}, .dtype = DType::kInt64, .low = 0, .high = 9999}},
       .second_gradient = true},
      {.name = "scatter_sub",
       .inputs = {kTable, {.shape = {5, 3}}, kIndices},
       .build = [](const Exprs& x) { return scatter_sub(x[0], x[1], x[2]); },
       .reference = [](std::span<const Tensor> in) { return with_rows(in[0], in[1], in[2], -1); },
       .second_gradient = true},
      {.name = "rows_in_a_step_of_sgd",
       .inputs = {kTable, kIndices},
       .build = [](const Exprs& x) { return x[0] - 0.25 * embedding_gradient(x[0], x[1]); },
       .reference = [](std::span<const Tensor> in) { return scattered(in, in[0], -0.25); }},
      {.name = "rows_added_and_divided",
       .inputs = {kTable, kIndices},
       .build = [](const Exprs& x) { return neg(embedding_gradient(x[0], x[1])) / 4.0 + x[0]; },
       .reference = [](std::span<const Tensor> in) { return scattered(in, in[0], -0.25); }},
      {.name = "rows_of_two_uses",
       .inputs = {kTable, kIndices, {.shape = {2, 2}, .dtype = DType::kInt64, .low = 0, .high = 4}},
       .build =
           [](const Exprs& x) {
             return x[0] - (embedding_gradient(x[0], x[1]) + embedding_gradient(x[0], x[2])) * 0.5;
           },
       .reference =
           [](std::span<const Tensor> in) {
             const Tensor second[] = {in[0], in[2]};
             return with_rows(scattered(in, in[0], -0.5), gathered_rows()(second), in[2], -0.5);
           }},
      {.name = "rows_squared",
       .inputs = {kTable, kIndices},
       .build = [](const Exprs& x) { return square(embedding_gradient(x[0], x[1])); },
       .reference =
           [](std::span<const Tensor> in) {
             const Tensor dense[] = {scattered(in, zeros_of(in[0]), 1)};
             return elementwise([](double g) { return g * g; })(dense);
           }},
  };
}

SYNCLINE_OP_CASES(product_rows)
SYNCLINE_OP_CASES(row_rows)

}  // namespace
}  // namespace syncline::testing
