// The operations that a distributor puts into a graph. They mean the identity on the global value; what they do is
// change where its rows live. The executor runs the first two over the wire.
#pragma once

#include "ops/graph/op.h"

namespace syncline {

struct Transport {  // what they share
  using Attrs = NoAttrs;
  static constexpr std::tuple<> fields{};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }
  static constexpr NoGradient grad{"it is put in after differentiation"};
};

// partial -> replicated
struct AllReduce : Transport {
  static constexpr std::string_view kName = "all_reduce";
};

// split -> replicated, as the ranks' parts one after the other; if the split axis is not the first, Interleave puts the
// elements in order.
struct AllGather : Transport {
  static constexpr std::string_view kName = "all_gather";
  static constexpr bool kTakesFloat16 = true;
};

// Rank-major parts -> C order, for a value that was split along `axis` in the given places.
struct Interleave : Transport {
  static constexpr std::string_view kName = "interleave";
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    int axis = 0;
    std::vector<std::int64_t> begin;  // along the axis, one more than there are ranks
  };
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis), field("begin", &Attrs::begin)};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }
  static void run(const Attrs& a, const KernelArgs& k);
};

// replicated -> split: this rank's elements [begin, end) along the axis. A view where they lie together.
struct OwnRows : Transport {
  static constexpr std::string_view kName = "own_rows";
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    int axis = 0;
    std::int64_t begin = 0;
  };
  // The place is a rank's own and no part of what ranks must agree on.
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }
  static void run(const Attrs& a, const KernelArgs& k);
};

// replicated -> partial: one rank's part is the value, the others' are zeros.
struct OwnPart : Transport {
  static constexpr std::string_view kName = "own_part";
  struct Attrs {
    bool keeps = false;  // a rank's own and no part of what ranks must agree on
  };
  static constexpr std::tuple<> fields{};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs&, std::span<const Expr>, const Meta&) { return {}; }
  static void run(const Attrs& a, const KernelArgs& k);
};

// A copy, where a value needs memory of its own.
struct Copy : Transport {
  static constexpr std::string_view kName = "copy";
  static constexpr bool kTakesFloat16 = true;
  static void run(const Attrs& a, const KernelArgs& k);
};

}  // namespace syncline
