// Placement: how the ranks hold a value when they compute one function together.
//
// The `place` rule of an op states which placements the op wants for its inputs and which placements its outputs then
// have. compile() inserts the conversions (take own rows, gather, all-reduce). All placements give the same values, so
// a rule affects only speed; `gathered` is always correct.
#pragma once

#include <span>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

struct Placement {
  enum Kind : std::uint8_t {
    kReplicated,  // every rank holds the whole value
    kSplit,       // each rank holds its rows along `axis`
    kPartial,     // the value is the sum over ranks
    kLargest,     // the value is the maximum over ranks, element by element
    kSmallest,    // the value is the minimum over ranks, element by element
  };
  // How a split axis is divided. The rules of ops know only kBatch. The placer uses the others, for variables and their
  // gradients.
  enum Rows : std::uint8_t {
    kBatch,   // in proportion to the ranks' rows of the batch
    kEvenly,  // evenly among all ranks
    kOnNode,  // evenly among the ranks of each node: each node has all rows
  };
  Kind kind = kReplicated;
  int axis = 0;
  Rows rows = kBatch;

  static constexpr Placement replicated() { return {}; }
  static constexpr Placement split(int axis, Rows rows = kBatch) { return {kSplit, axis, rows}; }
  // Whole on every rank, after each rank has computed its rows of a variable.
  static constexpr Placement gathered_rows() { return {kReplicated, 0, kEvenly}; }
  static constexpr Placement partial() { return {kPartial, 0}; }
  static constexpr Placement largest() { return {kLargest, 0}; }
  static constexpr Placement smallest() { return {kSmallest, 0}; }
  bool is_replicated() const { return kind == kReplicated; }
  bool is_split() const { return kind == kSplit; }
  bool is_split(int along) const { return kind == kSplit && axis == along; }
  // A part of a variable: its size does not depend on the batch.
  bool is_part_of_variable() const { return is_split() && rows != kBatch; }
  bool is_by_rows_of_variable() const { return rows != kBatch; }
  bool is_partial() const { return kind == kPartial; }
  // A maximum or minimum over ranks. The placer reduces it at once, so no op has such an operand.
  bool is_extreme() const { return kind == kLargest || kind == kSmallest; }
  friend bool operator==(const Placement&, const Placement&) = default;
};

std::ostream& operator<<(std::ostream& out, Placement placement);

// The arguments of a rule, with global shapes. A split dimension has k * `rows` elements, and each rank owns k times
// its number of batch rows.
struct PlaceArgs {
  std::span<const Meta> in;
  std::span<const Meta> out;
  std::span<const Placement> at;  // current placements of the inputs
  std::int64_t rows = 1;          // global number of rows of the batch
  bool by_parts = false;          // partial values are summed at once (syncline/distributed/data_parallel.h)
};

struct Placed {
  std::vector<Placement> in;   // wanted placements of the inputs
  std::vector<Placement> out;  // resulting placements of the outputs
};

// All inputs and outputs replicated.
Placed gathered(const PlaceArgs& args);

// For broadcasting elementwise ops. The first split operand determines the axis; the other operands are split to match.
Placed place_elementwise(const PlaceArgs& args);

// place_linear: like place_elementwise, but if all operands are partial, the result is partial. For linear ops, f(a) +
// f(b) = f(a + b): addition, subtraction, negation, selection of rows, permutation. place_scaling: one operand may be
// partial while the others are replicated; the result is partial.
Placed place_linear(const PlaceArgs& args);
Placed place_scaling(const PlaceArgs& args);

// For ops with one operand; further operands are replicated. The operand keeps its split if `axis_out[axis]`, the split
// axis of the output, is not negative; otherwise the operand is gathered. `linear`: a partial operand gives a partial
// result.
Placed place_by_axis(const PlaceArgs& args, std::span<const int> axis_out, bool linear);

// Returns the split axis after a reshape from `from` to `to`, or -1 if the reshape cuts or mixes rows.
int reshaped_axis(const Shape& from, int axis, const Shape& to, std::int64_t rows);

}  // namespace syncline
