// Comparisons, logic and choice: results of dtype bool, and select(condition, x, y).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/math/compare.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

struct EqualF {
  template <class T>
  bool operator()(T x, T y) const {
    return x == y;
  }
};
struct NotEqualF {
  template <class T>
  bool operator()(T x, T y) const {
    return x != y;
  }
};
struct GreaterF {
  template <class T>
  bool operator()(T x, T y) const {
    return x > y;
  }
};
struct GreaterEqualF {
  template <class T>
  bool operator()(T x, T y) const {
    return x >= y;
  }
};
struct LessF {
  template <class T>
  bool operator()(T x, T y) const {
    return x < y;
  }
};
struct LessEqualF {
  template <class T>
  bool operator()(T x, T y) const {
    return x <= y;
  }
};
struct AndF {
  template <class T>
  bool operator()(T x, T y) const {
    return x && y;
  }
};
struct NotF {
  bool operator()(bool x) const { return !x; }
};
struct SelectF {
  template <class T>
  T operator()(bool c, T x, T y) const {
    return c ? x : y;
  }
};

// condition ? x : y for elements of 4 or 8 bytes of any type. A byte of the condition becomes a lane's mask; compilers
// do not find this by themselves. Both operands are loaded whole: AVX-512 would otherwise load x or y under the mask,
// and the processor does not fetch ahead for such loads, which takes three times as long beyond the caches.
template <class Bits>
HWY_ATTR void select_bits(const void* const* in, void* out, std::int64_t n) {
  const hn::ScalableTag<Bits> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* c = static_cast<const std::uint8_t*>(in[0]);
  const auto *x = static_cast<const Bits*>(in[1]), *y = static_cast<const Bits*>(in[2]);
  auto* z = static_cast<Bits*>(out);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto wide = [&] {
      if constexpr (sizeof(Bits) == 4) return hn::PromoteTo(d, hn::LoadU(bytes, c + i));
      else return hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<std::uint32_t, decltype(d)>(), hn::LoadU(bytes, c + i)));
    }();
    const auto chosen = hn::VecFromMask(d, hn::Ne(wide, hn::Zero(d)));
    hn::StoreU(hn::IfVecThenElse(chosen, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, z + i);
  }
  for (; i < n; ++i) z[i] = c[i] != 0 ? x[i] : y[i];
}

BlockFn not_block(DType) { return &plain_block<NotF, bool, bool>; }
BlockFn select_block(DType dtype) {
  return with_stored_dtype(dtype, []<class T>(T) -> BlockFn {
    if constexpr (sizeof(T) == 4) return &select_bits<std::uint32_t>;
    else if constexpr (sizeof(T) == 8) return &select_bits<std::uint64_t>;
    else return &plain_block<SelectF, T, bool, T, T>;
  });
}

constexpr NamedBlock kBlocks[] = {
    {"equal", &comparing_block_of<EqualF>},
    {"not_equal", &comparing_block_of<NotEqualF>},
    {"greater", &comparing_block_of<GreaterF>},
    {"greater_equal", &comparing_block_of<GreaterEqualF>},
    {"less", &comparing_block_of<LessF>},
    {"less_equal", &comparing_block_of<LessEqualF>},
    {"logical_and", &comparing_block_of<AndF>},
    {"logical_not", &not_block},
    {"select", &select_block},
};

BlockFn compare_block(std::string_view name, DType dtype) { return find_block(kBlocks, name, dtype); }

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/graph/elementwise.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"

namespace syncline {
namespace {
HWY_EXPORT(compare_block);

BlockFn block_of(std::string_view name, DType dtype) { return HWY_DYNAMIC_DISPATCH(compare_block)(name, dtype); }

constexpr NoGradient kSteps{"a truth value is piecewise constant"};

template <class Self>
struct Comparison : Numeric<Self, block_of> {
  static Meta infer(const NoAttrs&, std::span<const Meta> in) { return infer_comparison(Self::kName, in); }
  static constexpr NoGradient grad = kSteps;
};

struct Equal : Comparison<Equal> {
  static constexpr std::string_view kName = "equal";
};
struct NotEqual : Comparison<NotEqual> {
  static constexpr std::string_view kName = "not_equal";
};
struct Greater : Comparison<Greater> {
  static constexpr std::string_view kName = "greater";
};
struct GreaterEqual : Comparison<GreaterEqual> {
  static constexpr std::string_view kName = "greater_equal";
};
struct Less : Comparison<Less> {
  static constexpr std::string_view kName = "less";
};
struct LessEqual : Comparison<LessEqual> {
  static constexpr std::string_view kName = "less_equal";
};
struct LogicalAnd : Comparison<LogicalAnd> {
  static constexpr std::string_view kName = "logical_and";
};

struct LogicalNot : Comparison<LogicalNot> {
  static constexpr std::string_view kName = "logical_not";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    if (in[0].dtype != DType::kBool) fail<DTypeError>(kName, ": x is ", in[0].dtype, "; compare it with a value first");
    return in[0];
  }
};

struct Select : Comparison<Select> {
  static constexpr std::string_view kName = "select";
  static constexpr bool kTakesFloat16 = true;
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    if (in[0].dtype != DType::kBool)
      fail<DTypeError>(kName, ": the condition is ", in[0].dtype, "; compare it with a value first");
    if (in[1].dtype != in[2].dtype)
      fail<DTypeError>(kName, ": the branches are ", in[1].dtype, " and ", in[2].dtype, "; cast one of them");
    return {in[1].dtype, broadcast(kName, broadcast(kName, in[1].shape, in[2].shape), in[0].shape)};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement partial = Placement::partial(), whole = Placement::replicated();
    const bool both = args.at[1].is_partial() && args.at[2].is_partial() && !args.at[0].is_split();
    return both ? Placed{{whole, partial, partial}, {partial}} : place_elementwise(args);
  }
  static BlockFn block(const Attrs&, std::span<const Meta> in) { return block_of(kName, in[1].dtype); }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    const Expr zero = scalar_like(0, dy);
    return {Expr{}, unbroadcast(select(y.input(0), dy, zero), y.input(1)),
            unbroadcast(select(y.input(0), zero, dy), y.input(2))};
  }
};

SYNCLINE_REGISTER_OP(Equal)
SYNCLINE_REGISTER_OP(NotEqual)
SYNCLINE_REGISTER_OP(Greater)
SYNCLINE_REGISTER_OP(GreaterEqual)
SYNCLINE_REGISTER_OP(Less)
SYNCLINE_REGISTER_OP(LessEqual)
SYNCLINE_REGISTER_OP(LogicalAnd)
SYNCLINE_REGISTER_OP(LogicalNot)
SYNCLINE_REGISTER_OP(Select)

}  // namespace

Expr equal(const Expr& x, const Expr& y) { return apply<Equal>({x, y}); }
Expr not_equal(const Expr& x, const Expr& y) { return apply<NotEqual>({x, y}); }
Expr greater(const Expr& x, const Expr& y) { return apply<Greater>({x, y}); }
Expr greater_equal(const Expr& x, const Expr& y) { return apply<GreaterEqual>({x, y}); }
Expr less(const Expr& x, const Expr& y) { return apply<Less>({x, y}); }
Expr less_equal(const Expr& x, const Expr& y) { return apply<LessEqual>({x, y}); }
Expr logical_and(const Expr& x, const Expr& y) { return apply<LogicalAnd>({x, y}); }
Expr logical_not(const Expr& x) { return apply<LogicalNot>({x}); }
Expr select(const Expr& condition, const Expr& x, const Expr& y) { return apply<Select>({condition, x, y}); }

}  // namespace syncline
#endif  // HWY_ONCE
