// pool2d: the largest or the mean element under a window, and the gradients. Images are NHWC here; the loops are in
// ops/kernels/pool.h.
#include "ops/kernels/pool.h"

#include "ops/convolution.h"
#include "ops/convolution/image.h"
#include "ops/kernels/parallel.h"
#include "ops/op.h"

namespace syncline {
namespace {

struct PoolAttrs {
  int pool_h = 2, pool_w = 2;
  int stride_h = 1, stride_w = 1;
  bool same = false;
  std::int64_t height = 0, width = 0;  // of the image, in AveragePool2DGrad, whose operand does not tell
};

constexpr auto kPoolFields =
    std::tuple{field("pool_h", &PoolAttrs::pool_h),     field("pool_w", &PoolAttrs::pool_w),
               field("stride_h", &PoolAttrs::stride_h), field("stride_w", &PoolAttrs::stride_w),
               field("same", &PoolAttrs::same),         field("height", &PoolAttrs::height),
               field("width", &PoolAttrs::width)};

Window window_h(const PoolAttrs& a) { return {a.pool_h, a.stride_h, 1, a.same}; }
Window window_w(const PoolAttrs& a) { return {a.pool_w, a.stride_w, 1, a.same}; }

kernels::PoolGeometry geometry(const PoolAttrs& a, const Shape& x, const Shape& y) {
  kernels::PoolGeometry g;
  g.batch = x[0];
  g.in_h = x[1], g.in_w = x[2], g.channels = x[3];
  g.out_h = y[1], g.out_w = y[2];
  g.k_h = a.pool_h, g.k_w = a.pool_w;
  g.stride_h = a.stride_h, g.stride_w = a.stride_w;
  g.pad_top = pad_before(g.in_h, window_h(a));
  g.pad_left = pad_before(g.in_w, window_w(a));
  return g;
}

void check_image(std::string_view op, const Meta& x) {
  if (!is_floating(x.dtype)) fail<DTypeError>(op, ": x is ", x.dtype, "; cast it to a floating dtype first");
  if (x.shape.ndim() != 4) fail<ShapeError>(op, ": x has the shape ", x.shape, "; images have four dimensions");
}

Meta pooled(std::string_view op, const PoolAttrs& a, const Meta& x) {
  check_image(op, x);
  const Shape& s = x.shape;
  return {x.dtype, Shape{s[0], window_positions(op, s[1], window_h(a)), window_positions(op, s[2], window_w(a)), s[3]}};
}

// All operands are images or pooled images: rows of the batch stay where they are.
Placed place_rows(const PlaceArgs& args) {
  for (const Placement at : args.at)
    if (at.is_split(0)) return {std::vector<Placement>(args.in.size(), at), {at}};
  return gathered(args);
}

// For each cell of g-by-positions, the element of `g` at the place where x first equals y, as max_pool2d_grad has it.
template <class T>
void pick_maxima(const kernels::PoolGeometry& p, const T* x, const T* y, const T* g, T* out) {
  const std::int64_t rows = p.batch * p.out_h;
  kernels::parallel_for(rows, static_cast<double>(p.out_w * p.channels * p.k_h * p.k_w), [&](auto begin, auto end) {
    for (std::int64_t cell = begin * p.out_w * p.channels; cell < end * p.out_w * p.channels; ++cell) {
      const std::int64_t c = cell % p.channels, j = cell / p.channels % p.out_w;
      const std::int64_t i = cell / p.channels / p.out_w % p.out_h, n = cell / p.channels / p.out_w / p.out_h;
      const std::int64_t top = i * p.stride_h - p.pad_top, left = j * p.stride_w - p.pad_left;
      T found{};
      bool searching = true;
      for (std::int64_t h = std::max<std::int64_t>(top, 0); searching && h < std::min(top + p.k_h, p.in_h); ++h) {
        for (std::int64_t w = std::max<std::int64_t>(left, 0); searching && w < std::min(left + p.k_w, p.in_w); ++w) {
          const std::int64_t at = ((n * p.in_h + h) * p.in_w + w) * p.channels + c;
          if (x[at] != y[cell]) continue;
          found = g[at];
          searching = false;
        }
      }
      out[cell] = found;
    }
  });
}

Expr max_pool_grad(const PoolAttrs& a, const Expr& x, const Expr& y, const Expr& dy);
Expr max_pool_pick(const PoolAttrs& a, const Expr& x, const Expr& y, const Expr& g);
Expr average_pool_grad(const PoolAttrs& a, const Expr& dy, const Shape& image);

struct MaxPool2D {
  static constexpr std::string_view kName = "max_pool2d";
  using Attrs = PoolAttrs;
  static constexpr auto fields = kPoolFields;
  static Meta infer(const Attrs& a, std::span<const Meta> in) { return pooled(kName, a, in[0]); }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_rows(args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.out_shape());
    with_floating(k.out_dtype(), [&]<class T>(T) { kernels::max_pool2d(g, k.input<T>(0), k.output<T>()); });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {max_pool_grad(a, y.input(0), y, dy)};
  }
};

// (x, y, dy) -> dx: dy at the places of the maxima, 0 elsewhere.
struct MaxPool2DGrad {
  static constexpr std::string_view kName = "max_pool2d_grad";
  using Attrs = PoolAttrs;
  static constexpr auto fields = kPoolFields;
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_image(kName, in[0]);
    return in[0];
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_rows(args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.in_shape(1));
    with_floating(k.out_dtype(), [&]<class T>(T) {
      kernels::max_pool2d_grad(g, k.input<T>(0), k.input<T>(1), k.input<T>(2), k.output<T>());
    });
  }
  // Where the maxima lie is piecewise constant in x.
  static std::vector<Expr> grad(const Attrs& a, const Expr& dx, const Expr& g) {
    return {Expr{}, Expr{}, max_pool_pick(a, dx.input(0), dx.input(1), g)};
  }
};

// (x, y, g) -> g at the places of the maxima: the transpose of MaxPool2DGrad.
struct MaxPool2DPick {
  static constexpr std::string_view kName = "max_pool2d_pick";
  using Attrs = PoolAttrs;
  static constexpr auto fields = kPoolFields;
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_image(kName, in[0]);
    return in[1];
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_rows(args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.out_shape());
    with_floating(k.out_dtype(),
                  [&]<class T>(T) { pick_maxima(g, k.input<T>(0), k.input<T>(1), k.input<T>(2), k.output<T>()); });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {Expr{}, Expr{}, max_pool_grad(a, y.input(0), y.input(1), dy)};
  }
};

struct AveragePool2D {
  static constexpr std::string_view kName = "average_pool2d";
  using Attrs = PoolAttrs;
  static constexpr auto fields = kPoolFields;
  static Meta infer(const Attrs& a, std::span<const Meta> in) { return pooled(kName, a, in[0]); }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_rows(args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.out_shape());
    with_floating(k.out_dtype(), [&]<class T>(T) { kernels::average_pool2d(g, k.input<T>(0), k.output<T>()); });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {average_pool_grad(a, dy, y.input(0).shape())};
  }
};

struct AveragePool2DGrad {
  static constexpr std::string_view kName = "average_pool2d_grad";
  using Attrs = PoolAttrs;
  static constexpr auto fields = kPoolFields;
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_image(kName, in[0]);
    const Shape& dy = in[0].shape;
    return {in[0].dtype, Shape{dy[0], a.height, a.width, dy[3]}};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_rows(args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.out_shape(), k.in_shape(0));
    with_floating(k.out_dtype(), [&]<class T>(T) { kernels::average_pool2d_grad(g, k.input<T>(0), k.output<T>()); });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr&, const Expr& g) { return {apply<AveragePool2D>({g}, a)}; }
};

SYNCLINE_REGISTER_OP(MaxPool2D)
SYNCLINE_REGISTER_OP(MaxPool2DGrad)
SYNCLINE_REGISTER_OP(MaxPool2DPick)
SYNCLINE_REGISTER_OP(AveragePool2D)
SYNCLINE_REGISTER_OP(AveragePool2DGrad)

Expr max_pool_grad(const PoolAttrs& a, const Expr& x, const Expr& y, const Expr& dy) {
  return apply<MaxPool2DGrad>({x, y, dy}, a);
}

Expr max_pool_pick(const PoolAttrs& a, const Expr& x, const Expr& y, const Expr& g) {
  return apply<MaxPool2DPick>({x, y, g}, a);
}

Expr average_pool_grad(const PoolAttrs& a, const Expr& dy, const Shape& image) {
  PoolAttrs attrs = a;
  attrs.height = image[1];
  attrs.width = image[2];
  if (attrs.height == kUnknown || attrs.width == kUnknown)
    fail<ShapeError>("average_pool2d: the gradient needs to know height and width, but the shape is ", image,
                     "; declare both when the placeholder is made");
  return apply<AveragePool2DGrad>({dy}, attrs);
}

}  // namespace

Expr pool2d(const Expr& x, std::array<int, 2> pool_size, const Pool2DOptions& options) {
  constexpr std::string_view kName = "pool2d";
  for (const int size : pool_size) positive_step(kName, "a pool_size", size);
  for (const int stride : options.strides) positive_step(kName, "a stride", stride);
  if (options.pool_mode != "max" && options.pool_mode != "avg")
    fail<ValueError>(kName, ": unknown pool_mode '", options.pool_mode, "'; give 'max' or 'avg'");
  const PoolAttrs attrs{pool_size[0],
                        pool_size[1],
                        options.strides[0],
                        options.strides[1],
                        is_same_padding(kName, options.padding),
                        0,
                        0};
  const bool first = is_channels_first(kName, options.data_format);
  const Expr image = first ? channels_to_back(kName, x) : x;
  const Expr y = options.pool_mode == "max" ? apply<MaxPool2D>({image}, attrs) : apply<AveragePool2D>({image}, attrs);
  return first ? channels_to_front(y) : y;
}

}  // namespace syncline
