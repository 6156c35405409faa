// Op cases of batch_dot and matmul with operands of various numbers of axes.
#include "syncline/backend/linalg.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

// For each sample, the sum of the products over axis a of x and axis b of y.
Reference batch_product(int a, int b) {
  return [a, b](std::span<const Tensor> in) {
    Shape shape{in[0].shape[0]};
    for (int axis = 1; axis < in[0].shape.ndim(); ++axis)
      if (axis != a) shape.push_back(in[0].shape[axis]);
    for (int axis = 1; axis < in[1].shape.ndim(); ++axis)
      if (axis != b) shape.push_back(in[1].shape[axis]);
    const bool vector = shape.ndim() == 1;
    if (vector) shape.push_back(1);
    return tabulate(shape, [&](const Index& index) {
      const auto border = index.begin() + in[0].shape.ndim() - 1;
      Index x(index.begin(), border), y(border, vector ? border : index.end());
      x.insert(x.begin() + a, 0);
      y.insert(y.begin(), index[0]);
      y.insert(y.begin() + b, 0);
      double total = 0;
      for (std::int64_t k = 0; k < in[0].shape[a]; ++k) {
        x[static_cast<std::size_t>(a)] = y[static_cast<std::size_t>(b)] = k;
        total += at(in[0], x) * at(in[1], y);
      }
      return total;
    });
  };
}

OpCase row(std::string name, Shape x, Shape y, std::array<int, 2> axes) {
  const int a = axes[0] < 0 ? axes[0] + x.ndim() : axes[0], b = axes[1] < 0 ? axes[1] + y.ndim() : axes[1];
  return {.name = std::move(name),
          .inputs = {{.shape = std::move(x)}, {.shape = std::move(y)}},
          .build = [axes](const Exprs& e) { return batch_dot(e[0], e[1], axes); },
          .reference = batch_product(a, b),
          .second_gradient = true};
}

// The axes before the last two broadcast.
Tensor matrix_product(std::span<const Tensor> in) {
  Shape rows = in[0].shape, columns = in[1].shape;
  const std::int64_t inner = rows.back();
  rows[rows.ndim() - 1] = columns[columns.ndim() - 2] = 1;
  return tabulate(broadcast_shape(rows, columns), [&](const Index& index) {
    Index x = index, y = index;
    double total = 0;
    for (std::int64_t k = 0; k < inner; ++k) {
      x.back() = y[y.size() - 2] = k;
      total += at(in[0], x) * at(in[1], y);
    }
    return total;
  });
}

OpCase matmul_row(std::string name, Shape x, Shape y) {
  return {.name = std::move(name),
          .inputs = {{.shape = std::move(x)}, {.shape = std::move(y)}},
          .build = [](const Exprs& e) { return matmul(e[0], e[1]); },
          .reference = &matrix_product,
          .second_gradient = true};
}

std::vector<OpCase> batch_dot_rows() {
  std::vector<OpCase> rows{
      row("batch_dot", {5, 2, 3}, {5, 3, 4}, {2, 1}),
      row("batch_dot_of_vectors", {5, 3}, {5, 3}, {1, 1}),
      row("batch_dot_of_vector_and_matrix", {5, 3}, {5, 4, 3}, {1, 2}),
      row("batch_dot_of_matrix_and_vector", {5, 3, 4}, {5, 3}, {1, 1}),
      row("batch_dot_of_rows", {5, 2, 3}, {5, 4, 3}, {-1, -1}),
      row("batch_dot_of_columns", {5, 3, 2}, {5, 3, 4}, {1, 1}),
      row("batch_dot_crossed", {5, 3, 2}, {5, 4, 3}, {1, 2}),
      row("batch_dot_of_middle_axes", {3, 2, 4, 3}, {3, 3, 4, 2}, {2, 2}),
      row("batch_dot_of_many_axes", {2, 2, 2, 3}, {2, 2, 3, 2, 2}, {3, 2}),
      matmul_row("matmul", {5, 2, 3}, {5, 3, 4}),
      matmul_row("matmul_of_many_axes", {5, 2, 3, 2}, {5, 2, 2, 4}),
      matmul_row("matmul_by_a_matrix", {5, 2, 3}, {3, 4}),
      matmul_row("matmul_of_a_matrix", {2, 3}, {5, 3, 4}),
      matmul_row("matmul_of_axes_that_broadcast", {5, 1, 2, 3}, {4, 3, 2}),
      row("batch_dot_of_unequal_ranks", {3, 2, 2, 4}, {3, 4}, {-1, -1}),
  };
  rows[0].large = {{.shape = {64, 128, 64}}, {.shape = {64, 64, 128}}};
  rows[1].large = {{.shape = {9000, 33}}, {.shape = {9000, 33}}};
  rows[4].large = {{.shape = {2, 512, 256}}, {.shape = {2, 512, 256}}};
  rows.push_back(row("batch_dot_without_axes", {5, 2, 3}, {5, 3, 4}, {2, 1}));
  rows.back().build = [](const Exprs& e) { return batch_dot(e[0], e[1]); };
  rows.push_back(row("batch_dot_without_axes_of_vector", {5, 2, 3}, {5, 3}, {2, 1}));
  rows.back().build = [](const Exprs& e) { return batch_dot(e[0], e[1]); };
  rows.push_back(row("batch_dot_of_one_axis", {5, 3, 2}, {5, 3, 4}, {1, 1}));
  rows.back().build = [](const Exprs& e) { return batch_dot(e[0], e[1], 1); };
  return rows;
}

SYNCLINE_OP_CASES(batch_dot_rows)

}  // namespace
}  // namespace syncline::testing
