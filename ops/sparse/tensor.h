// How sparse tensors are represented in a graph.
//
// A sparse tensor is no type but an op: SparseTensor names four ordinary tensors that hold a matrix by compressed rows,
// and the ops on sparse tensors take those four. It has no value of its own and is in no plan.
//
//   values  (rows, slots)  of any dtype; rows * slots is memory for the entries of all rows, one row behind the other
//   columns (rows, slots)  int32: of each entry
//   spans   (rows, 2)      int64: row i has spans[i][1] entries, the first in slot i * slots + spans[i][0] of the whole
//   extent  (0, columns)   bool: no element, but it knows how many columns there are
//
// So a row's entries need not lie in its own slots: memory is for the entries that there are, up to the next power of
// two, and not for the longest row in each. Positions are relative to the row, so that a piece of consecutive rows
// means the same wherever it lies, and pieces that lie behind one another are one: that is how ranks split a sparse
// feed and gather it. The rows of one rank have all their entries in the slots of that rank
// (runtime/execution/sparse_feed.h). A slot that is in no span may hold anything.
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

struct SparseTensor {
  static constexpr std::string_view kName = "sparse_tensor";
  static constexpr bool kLeaf = true;
  static constexpr bool kSparse = true;
  using Attrs = NoAttrs;
  static constexpr std::tuple<> fields{};
  static Meta infer(const Attrs&, std::span<const Meta> in);
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static constexpr NoGradient grad{"its values have one"};
};

Expr sparse_tensor(const SparseParts& parts, std::string name = {});
SparseParts sparse_parts(const Expr& tensor);
// The tensor with other values in the same places.
Expr with_sparse_values(const Expr& tensor, const Expr& values);

// x (rows, columns) times y (columns,) or (columns, n).
Expr sparse_dot(const Expr& x, const Expr& y);
Expr sparse_concatenate(const std::vector<Expr>& tensors, int axis);

// The first input of an op on sparse tensors is the values, or what takes their place; the other three parts follow.
inline constexpr int kValues = 0, kColumns = 1, kSpans = 2, kExtent = 3, kAfterParts = 4;

// What such ops share: throws ShapeError and DTypeError unless in[0..3] are parts of a sparse tensor. With a first
// input that takes the values' place its shape is not looked at.
void check_sparse_parts(std::string_view op, std::span<const Meta> in, bool first_is_values = true);
// The shape of the matrix, from in[1..3].
Shape sparse_shape(std::span<const Meta> in);

// What a kernel reads of a sparse tensor.
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
  // Row i's entries are in [begin(i), end(i)).
  std::int64_t begin(std::int64_t i) const { return i * slots + spans[2 * i]; }
  std::int64_t end(std::int64_t i) const { return begin(i) + spans[2 * i + 1]; }
  // Of a row's work: `of_entry` nanoseconds for each of the entries that there may be.
  double cost(double of_entry) const { return 5 + of_entry * static_cast<double>(slots); }
};

}  // namespace syncline
