// cast(x, dtype): elementwise conversion as base/convert.h defines it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/math/cast.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include "base/convert.h"
#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

template <class To>
struct CastF {
  template <class From>
  To operator()(From x) const {
    return convert<To>(x);
  }
};

BlockFn cast_block(DType from, DType to) {
  return with_stored_dtype(from, [&]<class From>(From) {
    // Truth values are read as the numbers 0 and 1, which the compiler converts in vectors.
    using Stored = std::conditional_t<std::is_same_v<From, bool>, std::uint8_t, From>;
    return with_stored_dtype(to, []<class To>(To) -> BlockFn { return &plain_block<CastF<To>, To, Stored>; });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/graph/fill.h"
#include "ops/sparse/tensor.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/sparse.h"

namespace syncline {
namespace {
HWY_EXPORT(cast_block);

// True for floating casts without loss.
bool widens(DType from, DType to) { return is_floating(from) && is_floating(to) && size_of(from) < size_of(to); }

// True if an element of this value, an integer, is equal after the cast.
bool holds(DType dtype, std::int64_t value) {
  const bool fits =
      value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
  return dtype == DType::kInt64 || (dtype == DType::kInt32 && fits);
}

struct Cast {
  static constexpr std::string_view kName = "cast";
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    DType dtype = DType::kFloat32;
  };
  static constexpr auto fields = std::tuple{field("dtype", &Attrs::dtype)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) { return {a.dtype, in[0].shape}; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_elementwise(args); }
  static BlockFn block(const Attrs& a, std::span<const Meta> in) {
    return HWY_DYNAMIC_DISPATCH(cast_block)(in[0].dtype, a.dtype);
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta& out) {
    const Expr& x = in[0];
    if (x.dtype() == a.dtype) return x;
    if (x.is<Cast>() && x.input(0).dtype() == a.dtype && widens(a.dtype, x.dtype())) return x.input(0);
    if (!x.is<Fill>()) return {};
    return with_stored_dtype(x.dtype(), [&]<class T>(T) {
      return fill(out.shape, convert<double>(convert<T>(x.attrs<Fill::Attrs>().value)), a.dtype);
    });
  }
  static KnownElements known_elements(const Attrs& a, std::span<const Expr>, std::span<const KnownElements> known) {
    KnownElements elements = known[0];
    for (auto& element : elements)
      if (element && !holds(a.dtype, *element)) element.reset();
    return elements;
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    const bool smooth = is_floating(a.dtype) && is_floating(y.input(0).dtype());
    return {smooth ? cast(dy, y.input(0).dtype()) : Expr{}};
  }
};

SYNCLINE_REGISTER_OP(Cast)

}  // namespace

Expr cast(const Expr& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return is_sparse(x) ? with_sparse_values(x, cast(sparse_values(x), dtype)) : apply<Cast>({x}, {dtype});
}

}  // namespace syncline
#endif  // HWY_ONCE
