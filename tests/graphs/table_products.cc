// Products, gathered and scattered rows, sparse tensors.
#include "ops/linalg/rows.h"
#include "ops/sparse/tensor.h"
#include "tests/graphs/reference.h"
#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

Built dot_line(Choices& c) {
  const Expr x = c.operand("x", c.integer("type", 0, 4) == 0 ? Type::kInteger : Type::kFloating, 1, 3);
  const std::int64_t k = x.shape().back();
  const auto n = c.integer("n", 0, 20) == 20 ? c.integer("large", 60, 130) : c.integer("small", 0, 9);
  switch (c.integer("way", 0, 3)) {
    case 0: {
      const Expr y = c.of_meta("y", {x.dtype(), Shape{k}});
      return SYNCLINE_MADE(dot(x, y));
    }
    case 1: {
      const Expr y = c.of_meta("y", {x.dtype(), Shape{2, k, 3}});
      return SYNCLINE_MADE(dot(x, y));
    }
    default: {
      const Expr y = c.of_meta("y", {x.dtype(), Shape{k, n}});
      return SYNCLINE_MADE(dot(x, y));
    }
  }
}

// Beyond every blocking threshold, with work for several threads.
Built large_dot_line(Choices& c) {
  const auto m = c.integer("m", 280, 600), k = c.integer("k", 190, 400), n = c.integer("n", 1, 130);
  const Expr x = c.large("x", Shape{m, k}), y = c.large("y", Shape{k, n});
  return SYNCLINE_CHECKED(&check_dot, dot(x, y));
}

// Sums of more terms than one call of a BLAS takes.
Built long_dot_line(Choices& c) {
  const auto m = c.integer("m", 1, 9), k = c.integer("k", 4097, 5000), n = c.integer("n", 1, 40);
  const Expr x = c.large("x", c.integer("way", 0, 2) == 0 ? Shape{k, m} : Shape{m, k});
  if (x.shape()[0] == k) {
    const Expr y = c.large("y", Shape{k, n});
    return SYNCLINE_CHECKED(&check_dot_kernel_grad, dot_kernel_grad(x, y));
  }
  if (c.flag("transposed")) {
    const Expr y = c.large("y", Shape{n, k});
    return SYNCLINE_CHECKED(&check_dot_transposed, dot_transposed(x, y));
  }
  const Expr y = c.large("y", Shape{k, n});
  return SYNCLINE_CHECKED(&check_dot, dot(x, y));
}

// Sums over so many rows that they are computed in parts: a gradient of weights, or its op alone.
Built many_rows_line(Choices& c) {
  const auto rows = c.integer("rows", 2048, 2400);
  if (c.flag("weights")) {
    const auto m = c.integer("m", 66, 90), n = c.integer("n", 15, 16);
    const Expr x = c.large("x", Shape{rows, m}), w = c.large("w", Shape{m, n});
    return SYNCLINE_CHECKED(&check_dot, dot(x, w));
  }
  const auto m = c.integer("m", 32, 60), n = c.integer("n", 32, 60);
  const Expr x = c.large("x", Shape{rows, m}), y = c.large("y", Shape{rows, n});
  return SYNCLINE_CHECKED(&check_dot_kernel_grad, dot_kernel_grad(x, y));
}

Built matmul_line(Choices& c) {
  const Expr x = c.floating("x", 1, 4);
  const std::int64_t k = x.shape().back();
  Shape shape{k};
  if (c.integer("vector", 0, 3) != 0) {
    shape.push_back(c.integer("n", 0, 5));
    for (int i = x.ndim() - 3; i >= 0 && c.integer("fewer", 0, 3) != 0; --i)
      shape.insert(0, c.integer("one", 0, 3) == 0 ? 1 : x.shape()[i]);
  }
  const Expr y = c.of_meta("y", {x.dtype(), shape});
  return SYNCLINE_MADE(matmul(x, y));
}

Built dot_transposed_line(Choices& c) {
  const Expr x = c.floating("x", 1, 3);
  const auto n = c.integer("n", 0, 6);
  if (c.flag("kernel")) {
    Shape shape = x.shape();
    shape[shape.ndim() - 1] = n;
    const Expr y = c.of_meta("y", {x.dtype(), shape});
    return SYNCLINE_MADE(dot_kernel_grad(x, y));
  }
  const Expr y = c.of_meta("y", {x.dtype(), Shape{n, x.shape().back()}});
  return SYNCLINE_MADE(dot_transposed(x, y));
}

Built batch_dot_line(Choices& c) {
  const Expr x = c.floating("x", 2, 4);
  const int a = static_cast<int>(c.integer("a", 1, x.ndim() - 1)), ndim = static_cast<int>(c.integer("ndim", 2, 4));
  const int b = static_cast<int>(c.integer("b", 1, ndim - 1));
  Shape shape{x.shape()[0]};
  for (int i = 1; i < ndim; ++i) {
    const auto size = c.integer("size", 1, 5);
    shape.push_back(i == b ? x.shape()[a] : size);
  }
  const Expr y = c.of_meta("y", {x.dtype(), shape});
  if (c.flag("default")) return SYNCLINE_MADE(batch_dot(x, y));
  return SYNCLINE_MADE(batch_dot(x, y, {a, b}));
}

Built gather_line(Choices& c) {
  const Expr x = c.operand("x", Type::kAny, 1, 3);
  const auto rows = c.integer("rows", 0, 5);
  const Shape shape = c.flag("two") ? Shape{rows, 2} : Shape{rows};
  const DType dtype = c.dtype("dtype", {DType::kInt32, DType::kInt64, DType::kInt8});
  const Expr indices = c.fresh("indices", dtype, shape, Pool::kIndex, x.shape()[0]);
  return SYNCLINE_MADE(gather(x, indices));
}

Built scatter_line(Choices& c) {
  const Expr x = c.floating("x", 1, 3);
  const auto rows = c.integer("rows", 0, 5);
  Shape shape = x.shape();
  shape[0] = rows;
  const Expr values = c.of_meta("values", {x.dtype(), shape});
  const Expr indices = c.fresh("indices", DType::kInt32, Shape{rows}, Pool::kIndex, x.shape()[0]);
  return SYNCLINE_MADE(scatter_sub(x, values, indices));
}

// A sparse tensor whose entries depend on two values.
Built sparse_line(Choices& c) {
  const Expr labels = c.floating("labels", 2, 2);
  const Expr lengths = c.fresh("lengths", DType::kInt32, Shape{labels.shape()[0]}, Pool::kIndex, labels.shape()[1] + 2);
  switch (c.integer("way", 0, 4)) {
    case 0: return SYNCLINE_MADE(to_dense(ctc_label_dense_to_sparse(labels, lengths)));
    case 1: {
      const auto n = c.integer("n", 1, 4);
      const Expr y = c.of_meta("y", {labels.dtype(), Shape{labels.shape()[1], n}});
      return SYNCLINE_MADE(dot(ctc_label_dense_to_sparse(labels, lengths), y));
    }
    case 2: {
      const Expr y = c.of_meta("y", {labels.dtype(), Shape{labels.shape()[1]}});
      return SYNCLINE_MADE(dot(ctc_label_dense_to_sparse(labels, lengths), y));
    }
    case 3: {
      const int axis = static_cast<int>(c.integer("axis", 0, 1));
      return SYNCLINE_MADE(to_dense(concatenate(
          {ctc_label_dense_to_sparse(labels, lengths), ctc_label_dense_to_sparse(labels * 2.0, lengths)}, axis)));
    }
    default: return SYNCLINE_MADE(concatenate({ctc_label_dense_to_sparse(labels, lengths), labels}, 1));
  }
}

// A sparse placeholder. The computation op by op has a dense one, so their results are compared too. A sparse product
// omits the terms of zeros, which may be NaN in a dense one: so if there are zeros, the other operand is finite (no
// variable, which may get any value), and no gradient passes to it.
Built sparse_fed_line(Choices& c) {
  const auto rows = c.flag("grouped") ? c.rows("rows") : c.integer("rows", 0, 5), columns = c.integer("columns", 1, 6);
  const auto n = c.integer("n", 1, 4), way = c.integer("way", 0, 5);
  const bool multiplies = way < 3, zeros = !multiplies || c.flag("zeros");
  const Expr x = c.exactly(
      "x",
      {.dtype = c.floatx(), .shape = {rows, columns}, .sparse = true, .pool = zeros ? Pool::kTies : Pool::kPositive});
  if (multiplies) {
    const Expr y = c.exactly("y", {.dtype = c.floatx(), .shape = way == 0 ? Shape{columns} : Shape{columns, n}});
    if (zeros) return SYNCLINE_MADE(dot(x, stop_gradient(y)));
    return SYNCLINE_MADE(dot(x, y));
  }
  if (way == 3) return SYNCLINE_MADE(to_dense(x));
  if (way == 4) {
    const Expr y = c.exactly("y", {.dtype = c.floatx(), .shape = {rows, n}});
    return SYNCLINE_MADE(concatenate({x, y}, 1));
  }
  const int axis = static_cast<int>(c.integer("axis", 0, 1));
  return SYNCLINE_MADE(to_dense(concatenate({x, x}, axis)));
}

}  // namespace

std::vector<Entry> product_entries() {
  return {{"dot", &dot_line, 12},
          {"large_dot", &large_dot_line, 1, 0},
          {"long_dot", &long_dot_line, 1, 0},
          {"many_rows", &many_rows_line, 1, 0},
          {"matmul", &matmul_line, 4},
          {"dot_transposed", &dot_transposed_line, 5},
          {"batch_dot", &batch_dot_line, 5},
          {"gather", &gather_line, 8},
          {"scatter_sub", &scatter_line, 3},
          {"sparse", &sparse_line, 13, 0},
          {"sparse_fed", &sparse_fed_line, 4, 0}};
}

}  // namespace syncline::graphs
