// Fill: a tensor of one value, never stored if an elementwise op is its only user.
#pragma once

#include "ops/graph/leaf.h"
#include "ops/graph/op.h"

namespace syncline {

struct Fill {
  static constexpr std::string_view kName = "fill";
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

// As Fill, with the shape of a tensor whose shape may not be known yet.
struct FillLike {
  static constexpr std::string_view kName = "fill_like";
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    double value = 0;
    DType dtype = DType::kFloat32;
  };
  static constexpr auto fields = std::tuple{field("value", &Attrs::value), field("dtype", &Attrs::dtype)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) { return {a.dtype, in[0].shape}; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_elementwise(args); }
  static void run(const Attrs& a, const KernelArgs& k);
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) {
    return in[0].shape().is_known() ? apply<Fill>({}, {a.value, a.dtype, in[0].shape()}) : Expr{};
  }
  static constexpr NoGradient grad{"its value does not depend on the input"};
};

// A constant or a fill.
inline bool is_constant(const Expr& e) { return e.is<Constant>() || e.is<Fill>(); }

}  // namespace syncline
