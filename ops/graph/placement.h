// Placement: where the rows of a value live when several ranks compute one function together.
//
// An op states, beside its shape rule, what it does with a split or partial operand (`place`): which placements it
// wants for its inputs and which its outputs then have. The plan inserts whatever turns one into the other (own rows,
// gather, all-reduce). Every placement gives the same values, so a rule is a matter of speed; `gathered` is always
// right.
#pragma once

#include <span>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

struct Placement {
  enum Kind : std::uint8_t {
    kReplicated,  // the same on every rank
    kSplit,       // each rank holds its rows along `axis`
    kPartial,     // the true value is the sum over ranks
  };
  Kind kind = kReplicated;
  int axis = 0;

  static Placement replicated() { return {}; }
  static Placement split(int axis) { return {kSplit, axis}; }
  static Placement partial() { return {kPartial, 0}; }
  bool is_replicated() const { return kind == kReplicated; }
  bool is_split() const { return kind == kSplit; }
  bool is_split(int along) const { return kind == kSplit && axis == along; }
  bool is_partial() const { return kind == kPartial; }
  friend bool operator==(const Placement&, const Placement&) = default;
};

std::ostream& operator<<(std::ostream& out, Placement placement);

// What a rule sees. Shapes are the global ones. A dimension that is split has k times `rows` elements, and each rank
// owns k times its own rows of it.
struct PlaceArgs {
  std::span<const Meta> in;
  std::span<const Meta> out;
  std::span<const Placement> at;  // of the inputs, as they come
  std::int64_t rows = 1;          // rows of the batch
};

struct Placed {
  std::vector<Placement> in;   // wanted
  std::vector<Placement> out;  // then given
};

// All inputs whole, all outputs replicated.
Placed gathered(const PlaceArgs& args);

// Broadcasting elementwise ops. The first split operand decides the axis; the others contribute their own rows of it.
Placed place_elementwise(const PlaceArgs& args);

// As place_elementwise, but if every operand is partial the sum stays partial (addition, subtraction, negation, choice
// of rows, permutation: ops f with f(a) + f(b) = f(a + b)). `one` ops have one operand that may be partial while the
// others are replicated (scaling): the result is partial.
Placed place_linear(const PlaceArgs& args);
Placed place_scaling(const PlaceArgs& args);

// The operand keeps its split if `axis_out[axis]` is not negative, which is then the output's axis; otherwise it is
// gathered. For ops with one operand (further operands are wanted replicated). `linear`: a partial operand gives a
// partial result.
Placed place_by_axis(const PlaceArgs& args, std::span<const int> axis_out, bool linear);

// Sums over `axes` (a mask per input axis): a split axis that is summed gives a partial result.
Placed place_sum(const PlaceArgs& args, std::span<const bool> summed, bool keepdims);

// Where the split axis of a value of shape `from` lies after a reshape to `to`, or -1 if its rows are cut or mixed.
int reshaped_axis(const Shape& from, int axis, const Shape& to, std::int64_t rows);

}  // namespace syncline
