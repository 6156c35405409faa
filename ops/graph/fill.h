// Fill: a tensor with one repeated value. It is not stored if its only user is an elementwise op.
#pragma once

#include "ops/graph/leaf.h"
#include "ops/graph/op.h"

namespace syncline {

struct Fill {
  static constexpr std::string_view kName = "fill";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    double value = 0;
    DType dtype = DType::kFloat32;
    Shape shape;
  };
  static constexpr auto fields =
      std::tuple{field("value", &Attrs::value), field("dtype", &Attrs::dtype), field("shape", &Attrs::shape)};
  static Meta infer(const Attrs& a, std::span<const Meta>) { return {a.dtype, a.shape}; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static void run(const Attrs& a, const KernelArgs& k);
  static constexpr NoGradient grad{"a fill has no inputs"};
};

// A constant or a fill.
inline bool is_constant(const Expr& e) { return e.is<Constant>() || e.is<Fill>(); }

}  // namespace syncline
