// The ops that a strategy inserts into a graph. Each is the identity on the global value and changes its placement.
// The executor runs AllReduce, ReduceScatter and AllGather through the communicator; the others are local kernels.
#pragma once

#include "ops/graph/op.h"

namespace syncline {

// The common base; OwnAttrs are the op's attributes.
template <class OwnAttrs = NoAttrs>
struct PlacementChange {
  static constexpr bool kMovesData = true;
  using Attrs = OwnAttrs;
  static constexpr std::tuple<> fields{};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }
  static constexpr NoGradient grad{"it is put in after differentiation"};
};

struct AllReduceAttrs {
  Placement::Kind from = Placement::kPartial;
};

// partial, largest or smallest -> replicated
struct AllReduce : PlacementChange<AllReduceAttrs> {
  static constexpr std::string_view kName = "all_reduce";
  static constexpr auto fields = std::tuple{field("from", &Attrs::from)};
};

// partial -> split along axis 0, for a value of which each rank needs its own rows only.
struct ReduceScatter : PlacementChange<> {
  static constexpr std::string_view kName = "reduce_scatter";
};

// split -> replicated: the ranks' parts in rank order. If the split axis is not the first, Interleave restores C order.
struct AllGather : PlacementChange<> {
  static constexpr std::string_view kName = "all_gather";
  static constexpr bool kTakesFloat16 = true;
};

struct InterleaveAttrs {
  int axis = 0;
  std::vector<std::int64_t> begin;  // rank r: elements [begin[r], begin[r + 1])
};

// Rank-major parts -> C order, for a value split along `axis`.
struct Interleave : PlacementChange<InterleaveAttrs> {
  static constexpr std::string_view kName = "interleave";
  static constexpr bool kTakesFloat16 = true;
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis), field("begin", &Attrs::begin)};
  static void run(const Attrs& a, const KernelArgs& k);
};

struct OwnRowsAttrs {
  int axis = 0;
  std::int64_t begin = 0;
};

// replicated -> split: this rank's elements along the axis, from `begin`. A view if they are contiguous.
struct OwnRows : PlacementChange<OwnRowsAttrs> {
  static constexpr std::string_view kName = "own_rows";
  static constexpr bool kTakesFloat16 = true;
  // `begin` differs between ranks, so it is not a field: fields must agree.
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};
  static void run(const Attrs& a, const KernelArgs& k);
};

struct OwnPartAttrs {
  bool keeps = false;  // true on one rank; not a field, because fields must agree
};

// replicated -> partial: the value on one rank, zeros on the others.
struct OwnPart : PlacementChange<OwnPartAttrs> {
  static constexpr std::string_view kName = "own_part";
  static void run(const Attrs& a, const KernelArgs& k);
};

// replicated -> replicated: a copy in separate memory.
struct Copy : PlacementChange<> {
  static constexpr std::string_view kName = "copy";
  static constexpr bool kTakesFloat16 = true;
  static void run(const Attrs& a, const KernelArgs& k);
};

}  // namespace syncline
