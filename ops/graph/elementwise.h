// Shared parts of the elementwise ops: operands broadcast against each other, and a split along any axis is preserved.
#pragma once

#include "ops/graph/op.h"

namespace syncline {

// Throws DTypeError for operands of different dtypes and for bool operands.
inline Meta infer_arithmetic(std::string_view op, std::span<const Meta> in) {
  for (const Meta& m : in) {
    if (m.dtype != in[0].dtype)
      fail<DTypeError>(op, ": operands of ", in[0].dtype, " and ", m.dtype, "; cast one of them");
    if (m.dtype == DType::kBool) fail<DTypeError>(op, ": operands are bool; cast them to a number first");
  }
  Meta out = in[0];
  for (const Meta& m : in.subspan(1)) out.shape = broadcast(op, out.shape, m.shape);
  return out;
}

inline Meta infer_floating(std::string_view op, std::span<const Meta> in) {
  const Meta out = infer_arithmetic(op, in);
  if (!is_floating(out.dtype)) fail<DTypeError>(op, ": x is ", out.dtype, "; cast it to a floating dtype first");
  return out;
}

inline Meta infer_comparison(std::string_view op, std::span<const Meta> in) {
  if (in[0].dtype != in[1].dtype)
    fail<DTypeError>(op, ": operands of ", in[0].dtype, " and ", in[1].dtype, "; cast one of them");
  return {DType::kBool, broadcast(op, in[0].shape, in[1].shape)};
}

// Base of numeric ops whose kernel is a block. kBlock returns the block for an op name on this processor.
template <class Self, BlockFn (*kBlock)(std::string_view name, DType dtype)>
struct Numeric : WithoutAttrs {
  static Meta infer(const Attrs&, std::span<const Meta> in) { return infer_arithmetic(Self::kName, in); }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_elementwise(args); }
  static BlockFn block(const Attrs&, std::span<const Meta> in) { return kBlock(Self::kName, in[0].dtype); }
};

// Base of numeric ops that accept only floating dtypes.
template <class Self, BlockFn (*kBlock)(std::string_view name, DType dtype)>
struct Floating : Numeric<Self, kBlock> {
  static Meta infer(const NoAttrs&, std::span<const Meta> in) { return infer_floating(Self::kName, in); }
};

// The gradients of sigmoid and tanh, from y and dy of equal shape.
Expr sigmoid_gradient(const Expr& y, const Expr& dy);
Expr tanh_gradient(const Expr& y, const Expr& dy);

// x / y in the operands' dtype; integer quotients are rounded down.
Expr quotient(const Expr& x, const Expr& y);

// Sums dy over the axes along which an operand with the shape of `like` was broadcast.
Expr unbroadcast(const Expr& dy, const Expr& like);

}  // namespace syncline
