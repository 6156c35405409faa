// cast(x, dtype): element by element conversion as base/convert.h defines it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/math/cast.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include "base/convert.h"
#include "ops/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

template <class To>
struct CastF : Stateless {
  using Stateless::Stateless;
  template <class From>
  To operator()(From x) const {
    return convert<To>(x);
  }
};

BlockFn cast_block(DType from, DType to) {
  return with_stored_dtype(from, [&]<class From>(From) {
    return with_stored_dtype(to, []<class To>(To) -> BlockFn { return &plain_block<CastF<To>, To, From>; });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/math.h"

namespace syncline {
namespace {
HWY_EXPORT(cast_block);

struct Cast {
  static constexpr std::string_view kName = "cast";
  struct Attrs {
    DType dtype = DType::kFloat32;
  };
  static constexpr auto fields = std::tuple{field("dtype", &Attrs::dtype)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) { return {a.dtype, in[0].shape}; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_elementwise(args); }
  static BlockFn block(const Attrs& a, std::span<const Meta> in) {
    return HWY_DYNAMIC_DISPATCH(cast_block)(in[0].dtype, a.dtype);
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) {
    return in[0].dtype() == a.dtype ? in[0] : Expr{};
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    const bool smooth = is_floating(a.dtype) && is_floating(y.input(0).dtype());
    return {smooth ? cast(dy, y.input(0).dtype()) : Expr{}};
  }
};

SYNCLINE_REGISTER_OP(Cast)

}  // namespace

Expr cast(const Expr& x, DType dtype) { return x.dtype() == dtype ? x : apply<Cast>({x}, {dtype}); }

}  // namespace syncline
#endif  // HWY_ONCE
