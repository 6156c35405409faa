// floordiv of floating numbers, and floormod of all numbers, whose result has the divisor's sign.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/math/floor.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include <cmath>

#include "base/convert.h"
#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

struct FloorDivF {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) return std::floor(x / y);
    else return x;  // integers: div
  }
};
struct FloorModF {
  template <class T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) return towards(std::fmod(x, y), y);
    else if (y == 0) return x;  // no division trap
    else if (std::is_signed_v<T> && y == static_cast<T>(-1)) return T{};
    else return towards(static_cast<T>(x % y), y);
  }
  // Turns the remainder of a division rounded towards zero into that of a division rounded down.
  template <class T>
  static T towards(T remainder, T y) {
    return remainder != T{} && (remainder < T{}) != (y < T{}) ? static_cast<T>(remainder + y) : remainder;
  }
};

constexpr NamedBlock kBlocks[] = {{"floordiv", &plain_block_of<FloorDivF, 2>},
                                  {"floormod", &plain_block_of<FloorModF, 2>}};

BlockFn floor_block(std::string_view name, DType dtype) { return find_block(kBlocks, name, dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/graph/elementwise.h"
#include "syncline/backend/math.h"

namespace syncline {
namespace {
HWY_EXPORT(floor_block);

BlockFn block_of(std::string_view name, DType dtype) { return HWY_DYNAMIC_DISPATCH(floor_block)(name, dtype); }

struct FloorDiv : Floating<FloorDiv, block_of> {
  static constexpr std::string_view kName = "floordiv";
  static constexpr NoGradient grad{"rounding is piecewise constant"};
};

struct FloorMod : Numeric<FloorMod, block_of> {
  static constexpr std::string_view kName = "floormod";
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    const Expr &x = y.input(0), &divisor = y.input(1);
    return {unbroadcast(dy, x), neg(unbroadcast(dy * floordiv(x, divisor), divisor))};
  }
};

SYNCLINE_REGISTER_OP(FloorDiv)
SYNCLINE_REGISTER_OP(FloorMod)

}  // namespace

Expr floordiv(const Expr& x, const Expr& y) {
  return is_floating(x.dtype()) ? apply<FloorDiv>({x, y}) : quotient(x, y);
}
Expr floormod(const Expr& x, const Expr& y) { return apply<FloorMod>({x, y}); }

}  // namespace syncline
#endif  // HWY_ONCE
