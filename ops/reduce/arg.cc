// argmax and argmin: the index of the first extreme element along an axis. NaN counts as extreme, as in NumPy.
#include "ops/kernels/parallel.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/slices_along.h"
#include "syncline/backend/reduce.h"

namespace syncline {
namespace {

struct ArgAttrs {
  int axis = -1;
};

template <class T, class Beats>
void arg_extremum(const T* x, std::int64_t* y, const SlicesAlong& l, Beats beats) {
  const double cost = 0.7 * static_cast<double>(l.length);
  kernels::parallel_for(l.outer * l.inner, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slice = begin; slice < end; ++slice) {
      const T* at = x + slice / l.inner * l.length * l.inner + slice % l.inner;
      T best = at[0];
      std::int64_t index = 0;
      for (std::int64_t i = 1; i < l.length; ++i) {
        const T value = at[i * l.inner];
        const bool first_nan = value != value && best == best;
        if (!beats(value, best) && !first_nan) continue;
        best = value;
        index = i;
      }
      y[slice] = index;
    }
  });
}

template <class Self>
struct Arg {
  using Attrs = ArgAttrs;
  static constexpr auto fields = std::tuple{field("axis", &ArgAttrs::axis)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    Shape out = in[0].shape;
    const int axis = wrap_axis(Self::kName, a.axis, out.ndim());
    if (out[axis] == 0) fail<ShapeError>(Self::kName, ": axis ", a.axis, " of x ", out, " is empty");
    out.erase(axis);
    return {DType::kInt64, out};
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    return place_reduction(Self::kName, {{a.axis}, false}, args);
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape& shape = k.in_shape(0);
    const SlicesAlong slices = slices_along(shape, wrap_axis(Self::kName, a.axis, shape.ndim()));
    with_dtype(k.in_dtype(0), [&]<class T>(T) {
      arg_extremum(k.input<T>(0), k.output<std::int64_t>(), slices,
                   [](T value, T best) { return Self::kLargest ? value > best : value < best; });
    });
  }
  static constexpr NoGradient grad{"an index is piecewise constant"};
};

struct ArgMax : Arg<ArgMax> {
  static constexpr std::string_view kName = "argmax";
  static constexpr bool kLargest = true;
};
struct ArgMin : Arg<ArgMin> {
  static constexpr std::string_view kName = "argmin";
  static constexpr bool kLargest = false;
};

SYNCLINE_REGISTER_OP(ArgMax)
SYNCLINE_REGISTER_OP(ArgMin)

}  // namespace

Expr argmax(const Expr& x, int axis) { return apply<ArgMax>({x}, {axis}); }
Expr argmin(const Expr& x, int axis) { return apply<ArgMin>({x}, {axis}); }

}  // namespace syncline
