#include "ops/shape/broadcast.h"

#include <cstring>

#include "ops/graph/elementwise.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// Inputs: y, x. Elementwise, so that plans fuse it and its rows follow x. Only the shape of x is used.
struct BroadcastLike : WithoutAttrs {
  static constexpr std::string_view kName = "broadcast_like";
  static constexpr bool kTakesFloat16 = true;
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    const Shape out = broadcast(kName, in[0].shape, in[1].shape);
    if (out.ndim() != in[1].shape.ndim())
      fail<ShapeError>(kName, ": ", in[0].shape, " does not broadcast to ", in[1].shape);
    return {in[0].dtype, out};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const bool scales = args.at[0].is_partial() && args.at[1].is_replicated();
    return scales ? place_scaling(args) : place_elementwise(args);
  }
  static BlockFn block(const Attrs&, std::span<const Meta> in) {
    return with_stored_dtype(in[0].dtype, []<class T>(T) -> BlockFn {
      return [](const void* const* x, void* out, std::int64_t n) {
        if (x[0] != out) std::memmove(out, x[0], static_cast<std::size_t>(n) * sizeof(T));
      };
    });
  }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta& out) {
    return in[0].meta() == out ? in[0] : Expr{};
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {unbroadcast(dy, y.input(0)), Expr{}};
  }
};

SYNCLINE_REGISTER_OP(BroadcastLike)

}  // namespace

bool drop_broadcasts(std::span<const Expr> in, const Meta& out, Expr& a, Expr& b) {
  a = in[0];
  b = in[1];
  if (!out.shape.is_known()) return false;
  auto still = [&](const Expr& x, const Expr& y) {
    return broadcast("broadcast_like", x.shape(), y.shape()) == out.shape;
  };
  if (a.is<BroadcastLike>() && still(a.input(0), b)) a = a.input(0);
  if (b.is<BroadcastLike>() && still(a, b.input(0))) b = b.input(0);
  return !(a == in[0]) || !(b == in[1]);
}

Expr broadcast_like(const Expr& y, const Expr& x) {
  return y.shape().is_known() && y.shape() == x.shape() ? y : apply<BroadcastLike>({y, x});
}

}  // namespace syncline
