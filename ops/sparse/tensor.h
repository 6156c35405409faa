// Sparse tensors in a graph.
//
// A sparse tensor is an op, not a type: SparseTensor names four dense tensors that hold a matrix by compressed rows.
// Ops on sparse tensors take these four. SparseTensor itself has no value and is in no plan.
//
//   values  (rows, slots)  any dtype; rows * slots is the memory for the entries of all rows, row after row
//   columns (rows, slots)  int32: column of each entry
//   spans   (rows, 2)      int64: row i has spans[i][1] entries, from slot i * slots + spans[i][0] of the whole on
//   extent  (0, columns)   bool: no elements; its shape gives the number of columns
//
// A row's entries may lie outside its own slots: memory depends on the number of entries (rounded up to a power of
// two), not on the longest row. Positions are relative to the row, so a block of consecutive rows is valid wherever it
// lies, and adjacent blocks form one tensor: ranks split and gather a sparse feed this way. All entries of a rank's
// rows lie in the slots of that rank (runtime/execution/sparse_feed.h). Slots outside all spans may hold anything.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "ops/graph/op.h"
#include "syncline/expr.h"

namespace syncline {

struct SparseParts {
  Expr values, columns, spans, extent;
};

struct SparseTensor : WithoutAttrs {
  static constexpr std::string_view kName = "sparse_tensor";
  static constexpr bool kLeaf = true;
  static constexpr bool kSparse = true;
  static Meta infer(const Attrs&, std::span<const Meta> in);
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static constexpr NoGradient grad{"its values have the gradient"};
};

Expr sparse_tensor(const SparseParts& parts, std::string name = {});
SparseParts sparse_parts(const Expr& tensor);
// `tensor` with other values; columns, spans and extent stay.
Expr with_sparse_values(const Expr& tensor, const Expr& values);

// x (rows, columns) times y (columns,) or (columns, n).
Expr sparse_dot(const Expr& x, const Expr& y);
Expr sparse_concatenate(const std::vector<Expr>& tensors, int axis);

// Inputs of an op on sparse tensors: the values, or another operand in their place; then the other three parts.
inline constexpr int kValues = 0, kColumns = 1, kSpans = 2, kExtent = 3, kAfterParts = 4;

// Throws ShapeError or DTypeError unless in[0..3] are the parts of a sparse tensor. Ignores the shape of in[0] if it is
// not the values.
void check_sparse_parts(std::string_view op, std::span<const Meta> in, bool first_is_values = true);
// (rows, columns) of the matrix, from in[1..3].
Shape sparse_shape(std::span<const Meta> in);

// A kernel's view of the sparse parts that begin at input `first`.
struct SparseRows {
  const std::int32_t* columns;
  const std::int64_t* spans;
  std::int64_t rows, slots, width;  // width: columns of the matrix

  explicit SparseRows(const KernelArgs& k, int first = 0)
      : columns(k.input<std::int32_t>(first + kColumns)),
        spans(k.input<std::int64_t>(first + kSpans)),
        rows(k.in_shape(first + kSpans)[0]),
        slots(k.in_shape(first + kColumns)[1]),
        width(k.in_shape(first + kExtent)[1]) {}
  // Row i's entries are in slots [begin(i), end(i)) of the whole.
  std::int64_t begin(std::int64_t i) const { return i * slots + spans[2 * i]; }
  std::int64_t end(std::int64_t i) const { return begin(i) + spans[2 * i + 1]; }
  // Cost of a row in nanoseconds: `of_entry` for each slot.
  double cost(double of_entry) const { return 5 + of_entry * static_cast<double>(slots); }
};

}  // namespace syncline
