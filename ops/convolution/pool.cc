// Max and average pooling in two or three dimensions, and the gradients. Images have channels last; the loops are in
// ops/kernels/convolution/pool.h.
#include "ops/kernels/convolution/pool.h"

#include <algorithm>
#include <array>

#include "ops/convolution/image.h"
#include "ops/graph/deferred.h"
#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/convolution.h"

namespace syncline {
namespace {

using Index = std::int64_t;

struct PoolAttrs {
  std::vector<Index> pool_size, strides;  // one number per spatial axis
  Padding padding = Padding::kValid;
  Shape size = {};  // spatial shape of dx in AveragePoolGrad, which dy does not determine
};

int spatial_of(const PoolAttrs& a) { return static_cast<int>(a.pool_size.size()); }

Window window(const PoolAttrs& a, int axis) {
  const auto i = static_cast<std::size_t>(axis);
  return {a.pool_size[i], a.strides[i], 1, a.padding};
}

// From the shapes of the image and the pooled image. Missing axes have size 1.
kernels::PoolGeometry geometry(const PoolAttrs& a, const Shape& x, const Shape& y) {
  struct Axis {
    Index in = 1, out = 1, k = 1, stride = 1, pad = 0;
  };
  std::array<Axis, 3> axes;
  const int spatial = spatial_of(a);
  for (int i = 0; i < spatial; ++i) {
    const Window w = window(a, i);
    axes[static_cast<std::size_t>(3 - spatial + i)] = {x[i + 1], y[i + 1], w.size, w.stride, pad_before(x[i + 1], w)};
  }
  const auto& [d, h, v] = axes;
  kernels::PoolGeometry g;
  g.batch = x[0], g.channels = x.back();
  g.in_d = d.in, g.out_d = d.out, g.k_d = d.k, g.stride_d = d.stride, g.pad_front = d.pad;
  g.in_h = h.in, g.out_h = h.out, g.k_h = h.k, g.stride_h = h.stride, g.pad_top = h.pad;
  g.in_w = v.in, g.out_w = v.out, g.k_w = v.k, g.stride_w = v.stride, g.pad_left = v.pad;
  return g;
}

void check_floating(std::string_view op, const Meta& x) {
  if (!is_floating(x.dtype)) fail<DTypeError>(op, ": x is ", x.dtype, "; cast it to a floating dtype first");
}

Meta pooled(std::string_view op, const PoolAttrs& a, const Meta& x) {
  check_floating(op, x);
  Meta out = x;
  for (int i = 0; i < spatial_of(a); ++i) out.shape[i + 1] = window_positions(op, x.shape[i + 1], window(a, i));
  return out;
}

// Base of the ops below. All operands are images or pooled images, so the split of the batch stays.
struct Pooling {
  using Attrs = PoolAttrs;
  static constexpr auto fields = std::tuple{field("pool_size", &Attrs::pool_size), field("strides", &Attrs::strides),
                                            field("padding", &Attrs::padding), field("size", &Attrs::size)};
  static Placed place(const Attrs&, const PlaceArgs& args) {
    for (const Placement at : args.at)
      if (at.is_split(0)) return {std::vector<Placement>(args.in.size(), at), {at}};
    return gathered(args);
  }
};

// For each cell of the pooled image: the element of `g` where x first equals y, to which max_pool_grad adds dy.
template <class T>
void gather_maxima(const kernels::PoolGeometry& p, const T* x, const T* y, const T* g, T* out) {
  const Index lines = p.batch * p.out_d * p.out_h, line = p.out_w * p.channels;
  const auto pick = [&](Index cell) {
    const Index c = cell % p.channels, j = cell / p.channels % p.out_w, i = cell / line % p.out_h;
    const Index e = cell / line / p.out_h % p.out_d, n = cell / line / p.out_h / p.out_d;
    const Index front = e * p.stride_d - p.pad_front, top = i * p.stride_h - p.pad_top;
    const Index left = j * p.stride_w - p.pad_left;
    for (Index d = std::max<Index>(front, 0); d < std::min(front + p.k_d, p.in_d); ++d)
      for (Index h = std::max<Index>(top, 0); h < std::min(top + p.k_h, p.in_h); ++h)
        for (Index w = std::max<Index>(left, 0); w < std::min(left + p.k_w, p.in_w); ++w) {
          const Index at = (((n * p.in_d + d) * p.in_h + h) * p.in_w + w) * p.channels + c;
          if (x[at] == y[cell]) return g[at];
        }
    return T{};
  };
  const double cost = static_cast<double>(line * p.k_d * p.k_h * p.k_w);
  kernels::parallel_for(lines, cost, [&](Index begin, Index end) {
    for (Index cell = begin * line; cell < end * line; ++cell) out[cell] = pick(cell);
  });
}

Expr max_pool_grad(const PoolAttrs& a, const Expr& x, const Expr& y, const Expr& dy);
Expr max_pool_gather(const PoolAttrs& a, const Expr& x, const Expr& y, const Expr& g);
Expr average_pool_grad(const PoolAttrs& a, const Expr& dy, const Expr& x);

struct MaxPool : Pooling {
  static constexpr std::string_view kName = "max_pool";
  static Meta infer(const Attrs& a, std::span<const Meta> in) { return pooled(kName, a, in[0]); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.out_shape());
    with_floating(k.out_dtype(), [&]<class T>(T) { kernels::max_pool(g, k.input<T>(0), k.output<T>()); });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {max_pool_grad(a, y.input(0), y, dy)};
  }
};

// (x, y, dy) -> dx: dy at the maxima, 0 elsewhere.
struct MaxPoolGrad : Pooling {
  static constexpr std::string_view kName = "max_pool_grad";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_floating(kName, in[0]);
    return in[0];
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.in_shape(1));
    with_floating(k.out_dtype(), [&]<class T>(T) {
      kernels::max_pool_grad(g, k.input<T>(0), k.input<T>(1), k.input<T>(2), k.output<T>());
    });
  }
  // The positions of the maxima are piecewise constant in x.
  static std::vector<Expr> grad(const Attrs& a, const Expr& dx, const Expr& g) {
    return {Expr{}, Expr{}, max_pool_gather(a, dx.input(0), dx.input(1), g)};
  }
};

// (x, y, g) -> g at the maxima: the transpose of MaxPoolGrad.
struct MaxPoolGather : Pooling {
  static constexpr std::string_view kName = "max_pool_gather";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_floating(kName, in[0]);
    return in[1];
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.out_shape());
    with_floating(k.out_dtype(),
                  [&]<class T>(T) { gather_maxima(g, k.input<T>(0), k.input<T>(1), k.input<T>(2), k.output<T>()); });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {Expr{}, Expr{}, max_pool_grad(a, y.input(0), y.input(1), dy)};
  }
};

struct AveragePool : Pooling {
  static constexpr std::string_view kName = "average_pool";
  static Meta infer(const Attrs& a, std::span<const Meta> in) { return pooled(kName, a, in[0]); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.out_shape());
    with_floating(k.out_dtype(), [&]<class T>(T) { kernels::average_pool(g, k.input<T>(0), k.output<T>()); });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {average_pool_grad(a, dy, y.input(0))};
  }
};

// dy -> dx of the spatial shape a.size.
struct AveragePoolGrad : Pooling {
  static constexpr std::string_view kName = "average_pool_grad";
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_floating(kName, in[0]);
    Meta dx = in[0];
    for (int i = 0; i < spatial_of(a); ++i) dx.shape[i + 1] = a.size[i];
    return dx;
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.out_shape(), k.in_shape(0));
    with_floating(k.out_dtype(), [&]<class T>(T) { kernels::average_pool_grad(g, k.input<T>(0), k.output<T>()); });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr&, const Expr& g) {
    return {apply<AveragePool>({g}, {a.pool_size, a.strides, a.padding, {}})};
  }
};

SYNCLINE_REGISTER_OP(MaxPool)
SYNCLINE_REGISTER_OP(MaxPoolGrad)
SYNCLINE_REGISTER_OP(MaxPoolGather)
SYNCLINE_REGISTER_OP(AveragePool)
SYNCLINE_REGISTER_OP(AveragePoolGrad)

Expr max_pool_grad(const PoolAttrs& a, const Expr& x, const Expr& y, const Expr& dy) {
  return apply<MaxPoolGrad>({x, y, dy}, a);
}

Expr max_pool_gather(const PoolAttrs& a, const Expr& x, const Expr& y, const Expr& g) {
  return apply<MaxPoolGather>({x, y, g}, a);
}

Expr average_pool_grad(const PoolAttrs& a, const Expr& dy, const Expr& x) {
  const auto of_size = [a](const Expr& of, const Shape& image) {
    PoolAttrs attrs = a;
    attrs.size = Shape(std::vector<Index>(image.begin() + 1, image.end() - 1));
    return attrs.size.is_known() ? apply<AveragePoolGrad>({of}, attrs) : Expr{};
  };
  const Expr known = of_size(dy, x.shape());
  if (known) return known;
  return once_known_like(
      std::string(AveragePoolGrad::kName), {dy}, {x}, dy.dtype(),
      [of_size](std::span<const Expr> in, std::span<const Shape> shapes) { return of_size(in[0], shapes[0]); });
}

template <std::size_t N, class Options>
Expr pool(std::string_view op, const Expr& x, const std::array<int, N>& pool_size, const Options& o) {
  const PoolAttrs attrs{
      {pool_size.begin(), pool_size.end()}, {o.strides.begin(), o.strides.end()}, padding_of(op, o.padding), {}};
  check_steps(op, "a pool_size", attrs.pool_size);
  check_steps(op, "a stride", attrs.strides);
  if (o.pool_mode != "max" && o.pool_mode != "avg")
    fail<ValueError>(op, ": unknown pool_mode '", o.pool_mode, "'; give 'max' or 'avg'");
  return with_channels_last(op, x, static_cast<int>(N), o.data_format, [&](const Expr& image) {
    for (int i = 0; i < static_cast<int>(N); ++i) check_window(op, image.shape()[i + 1], window(attrs, i));
    return o.pool_mode == "max" ? apply<MaxPool>({image}, attrs) : apply<AveragePool>({image}, attrs);
  });
}

}  // namespace

Expr pool2d(const Expr& x, std::array<int, 2> pool_size, const Pool2DOptions& options) {
  return pool("pool2d", x, pool_size, options);
}
Expr pool3d(const Expr& x, std::array<int, 3> pool_size, const Pool3DOptions& options) {
  return pool("pool3d", x, pool_size, options);
}

}  // namespace syncline
