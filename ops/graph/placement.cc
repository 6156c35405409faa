#include "ops/graph/placement.h"

#include <algorithm>

namespace syncline {
namespace {

// The output axis of the split of input i; broadcasting aligns axes on the right.
int aligned_axis(const PlaceArgs& args, std::size_t i) {
  return args.at[i].axis + args.out[0].shape.ndim() - args.in[i].shape.ndim();
}

std::vector<Placement> same_for_all(const PlaceArgs& args, Placement p) {
  return std::vector<Placement>(args.out.size(), p);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, Placement placement) {
  if (placement.is_replicated()) return out << "replicated";
  if (placement.is_partial()) return out << "partial";
  if (placement.is_extreme()) return out << (placement == Placement::largest() ? "largest" : "smallest");
  const char* how = placement.rows == Placement::kEvenly ? ", evenly" : ", on a node";
  return out << "split(" << placement.axis << (placement.rows == Placement::kBatch ? "" : how) << ')';
}

Placed gathered(const PlaceArgs& args) {
  return {std::vector<Placement>(args.in.size(), Placement::replicated()), same_for_all(args, Placement::replicated())};
}

Placed place_elementwise(const PlaceArgs& args) {
  int axis = -1;
  for (std::size_t i = 0; i < args.in.size() && axis < 0; ++i)
    if (args.at[i].is_split()) axis = aligned_axis(args, i);
  if (axis < 0) return gathered(args);
  Placed placed = gathered(args);
  for (std::size_t i = 0; i < args.in.size(); ++i) {
    const Shape& shape = args.in[i].shape;
    const int own = axis - (args.out[0].shape.ndim() - shape.ndim());
    const bool carries = own >= 0 && shape[own] == args.out[0].shape[axis];
    if (carries) placed.in[i] = Placement::split(own);
  }
  for (Placement& p : placed.out) p = Placement::split(axis);
  return placed;
}

Placed place_linear(const PlaceArgs& args) {
  const bool all =
      !args.at.empty() && std::all_of(args.at.begin(), args.at.end(), [](Placement p) { return p.is_partial(); });
  if (!all) return place_elementwise(args);
  return {std::vector<Placement>(args.in.size(), Placement::partial()), same_for_all(args, Placement::partial())};
}

Placed place_scaling(const PlaceArgs& args) {
  // Scaling is linear in each operand: one partial operand is allowed if all others are replicated.
  const auto partials = std::count_if(args.at.begin(), args.at.end(), [](Placement p) { return p.is_partial(); });
  const bool others_whole = std::none_of(args.at.begin(), args.at.end(), [](Placement p) { return p.is_split(); });
  if (partials != 1 || !others_whole) return place_elementwise(args);
  Placed placed{std::vector<Placement>(args.at.begin(), args.at.end()), same_for_all(args, Placement::partial())};
  return placed;
}

Placed place_by_axis(const PlaceArgs& args, std::span<const int> axis_out, bool linear) {
  Placed placed = gathered(args);
  const Placement at = args.at[0];
  if (at.is_partial() && linear) {
    placed.in[0] = at;
    for (Placement& p : placed.out) p = at;
  } else if (at.is_split() && axis_out[static_cast<std::size_t>(at.axis)] >= 0) {
    placed.in[0] = at;
    for (Placement& p : placed.out) p = Placement::split(axis_out[static_cast<std::size_t>(at.axis)]);
  }
  return placed;
}

int reshaped_axis(const Shape& from, int axis, const Shape& to, std::int64_t rows) {
  // The rows stay whole if an output axis has the same number of elements before it and is divisible by `rows` too.
  const std::int64_t before = from.product(0, axis);
  if (rows <= 0 || from.size() == 0) return -1;
  std::int64_t product = 1;
  for (int candidate = 0; candidate < to.ndim(); ++candidate) {
    if (product == before && to[candidate] % rows == 0 && to[candidate] > 0 && from[axis] % rows == 0) {
      // The axis and all later axes must have the same number of elements on both sides.
      const std::int64_t behind_from = from.product(axis, from.ndim()), behind_to = to.product(candidate, to.ndim());
      if (behind_from == behind_to) return candidate;
    }
    product *= to[candidate];
    if (product > before) break;
  }
  return -1;
}

}  // namespace syncline
