// cumsum, cumprod, and the recurrence in cumprod's gradient.
#include "base/convert.h"
#include "ops/kernels/parallel.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/slices_along.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

struct ScanAttrs {
  int axis = 0;
  bool exclusive = false;
  bool reverse = false;
};
inline constexpr auto kScanFields = std::tuple{
    field("axis", &ScanAttrs::axis), field("exclusive", &ScanAttrs::exclusive), field("reverse", &ScanAttrs::reverse)};

// Calls step(element, previous element or -1, number of adjacent slices) along all slices, in the order of the scan.
template <class F>
void for_steps(const SlicesAlong& l, bool reverse, F step) {
  constexpr std::int64_t kBand = 256;  // slices that are scanned together: their elements are contiguous
  const std::int64_t bands = (l.inner + kBand - 1) / kBand;
  const double cost = 0.5 * static_cast<double>(l.length * std::min(l.inner, kBand));
  kernels::parallel_for(l.outer * bands, cost, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t item = first; item < last; ++item) {
      const std::int64_t slice = item % bands * kBand, width = std::min(kBand, l.inner - slice);
      const std::int64_t start = item / bands * l.length * l.inner + slice;
      for (std::int64_t i = 0; i < l.length; ++i) {
        const std::int64_t at = start + (reverse ? l.length - 1 - i : i) * l.inner;
        step(at, i == 0 ? -1 : reverse ? at + l.inner : at - l.inner, width);
      }
    }
  });
}

Placed place_scan(std::string_view op, int axis, const PlaceArgs& args, bool linear) {
  std::vector<int> axis_out;
  const int scanned = wrap_axis(op, axis, args.in[0].shape.ndim());
  for (int i = 0; i < args.in[0].shape.ndim(); ++i) axis_out.push_back(i == scanned ? -1 : i);
  return place_by_axis(args, axis_out, linear);
}

template <class Self>
struct Scan {
  using Attrs = ScanAttrs;
  static constexpr auto fields = kScanFields;
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    if (in[0].dtype == DType::kBool) fail<DTypeError>(Self::kName, ": x is bool; cast it to a number first");
    wrap_axis(Self::kName, a.axis, in[0].shape.ndim());
    return in[0];
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    return place_scan(Self::kName, a.axis, args, Self::kLinear);
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape& shape = k.in_shape(0);
    const SlicesAlong slices = slices_along(shape, wrap_axis(Self::kName, a.axis, shape.ndim()));
    with_dtype(k.in_dtype(0), [&]<class T>(T) {
      const T* x = k.input<T>(0);
      T* y = k.output<T>();
      auto join = [](T left, T right) {
        return static_cast<T>(Self::kLinear ? wrapping(left) + wrapping(right) : wrapping(left) * wrapping(right));
      };
      for_steps(slices, a.reverse, [&](std::int64_t at, std::int64_t before, std::int64_t width) {
        const std::int64_t newest = a.exclusive ? before : at;
        for (std::int64_t j = 0; j < width; ++j) {
          if (before >= 0) y[at + j] = join(y[before + j], x[newest + j]);
          else y[at + j] = a.exclusive ? T(!Self::kLinear) : x[at + j];
        }
      });
    });
  }
};

// (a, x) -> y[i] = x[i] + a[i] * y[i - 1] along an axis, with y[-1] = 0; from the other end if `reverse`.
struct LinearScan {
  static constexpr std::string_view kName = "linear_scan";
  struct Attrs {
    int axis = 0;
    bool reverse = false;
  };
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis), field("reverse", &Attrs::reverse)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    if (in[0].dtype != in[1].dtype || !is_floating(in[0].dtype))
      fail<DTypeError>(kName, ": operands of ", in[0].dtype, " and ", in[1].dtype,
                       "; both must have the same floating dtype");
    wrap_axis(kName, a.axis, in[0].shape.ndim());
    if (!accepts(in[0].shape, in[1].shape) && !accepts(in[1].shape, in[0].shape))
      fail<ShapeError>(kName, ": operands of shapes ", in[0].shape, " and ", in[1].shape, " must have the same shape");
    return in[1];
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const int scanned = wrap_axis(kName, a.axis, args.in[0].shape.ndim());
    for (const Placement p : args.at)
      if (p.is_split() && p.axis != scanned) return {{p, p}, {p}};
    return gathered(args);
  }
  static void run(const Attrs& attrs, const KernelArgs& k) {
    const Shape& shape = k.in_shape(0);
    const SlicesAlong slices = slices_along(shape, wrap_axis(kName, attrs.axis, shape.ndim()));
    with_floating(k.in_dtype(0), [&]<class T>(T) {
      const T *a = k.input<T>(0), *x = k.input<T>(1);
      T* y = k.output<T>();
      for_steps(slices, attrs.reverse, [&](std::int64_t at, std::int64_t before, std::int64_t width) {
        for (std::int64_t j = 0; j < width; ++j)
          y[at + j] = x[at + j] + (before < 0 ? T(0) : a[at + j] * y[before + j]);
      });
    });
  }
  static std::vector<Expr> grad(const Attrs& attrs, const Expr& y, const Expr& dy);
};

// Shifts x by one along an axis and fills the gap with zero.
Expr moved(const Expr& x, int axis, bool towards_end) {
  std::vector<std::int64_t> none(static_cast<std::size_t>(x.ndim()), 0), one = none;
  one[static_cast<std::size_t>(wrap_axis("cumprod", axis, x.ndim()))] = 1;
  return towards_end ? trim(pad(x, one, none), none, one) : trim(pad(x, none, one), one, none);
}

Expr linear_scan(const Expr& a, const Expr& x, int axis, bool reverse) {
  return apply<LinearScan>({a, x}, {axis, reverse});
}

std::vector<Expr> LinearScan::grad(const Attrs& attrs, const Expr& y, const Expr& dy) {
  const bool towards_end = !attrs.reverse;
  const Expr dx = linear_scan(moved(y.input(0), attrs.axis, !towards_end), dy, attrs.axis, !attrs.reverse);
  return {dx * moved(y, attrs.axis, towards_end), dx};
}

struct CumSum : Scan<CumSum> {
  static constexpr std::string_view kName = "cumsum";
  static constexpr bool kLinear = true;
  static std::vector<Expr> grad(const Attrs& a, const Expr&, const Expr& dy) {
    return {cumsum(dy, a.axis, {.exclusive = a.exclusive, .reverse = !a.reverse})};
  }
};

// dx[i] = p[i] * s[i], where p[i] is the product of the elements before i. s[i] sums, over the results j that contain
// x[i], dy[j] times the product of the elements after i in result j. No division, so zeros in x are correct.
struct CumProd : Scan<CumProd> {
  static constexpr std::string_view kName = "cumprod";
  static constexpr bool kLinear = false;
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    const Expr& x = y.input(0);
    const Expr before = cumprod(x, a.axis, {.exclusive = true, .reverse = a.reverse});
    const Expr s = a.exclusive ? moved(linear_scan(x, dy, a.axis, !a.reverse), a.axis, a.reverse)
                               : linear_scan(moved(x, a.axis, a.reverse), dy, a.axis, !a.reverse);
    return {before * s};
  }
};

SYNCLINE_REGISTER_OP(CumSum)
SYNCLINE_REGISTER_OP(CumProd)
SYNCLINE_REGISTER_OP(LinearScan)

}  // namespace

Expr cumsum(const Expr& x, int axis, ScanOptions options) {
  return apply<CumSum>({x}, {axis, options.exclusive, options.reverse});
}
Expr cumprod(const Expr& x, int axis, ScanOptions options) {
  return apply<CumProd>({x}, {axis, options.exclusive, options.reverse});
}

}  // namespace syncline
