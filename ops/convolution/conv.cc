// Convolution in one to three dimensions, dense and depthwise, and its two gradients. All three ops are linear in each
// operand; the gradients of each op are the other two.
//
//   ConvForward(x, w) = y        ConvGradInput(w, dy) = dx        ConvGradKernel(x, dy) = dw
//
// Images have channels last; kernels are (space..., in, out), depthwise kernels (space..., channels). The public
// functions transpose other layouts. The loops are in ops/kernels/convolution/conv.h.
#include "ops/convolution/conv.h"

#include <algorithm>
#include <array>

#include "ops/graph/deferred.h"
#include "ops/graph/op.h"
#include "ops/kernels/convolution/conv.h"
#include "ops/shape/pads.h"

namespace syncline {
namespace {

using Index = std::int64_t;

constexpr auto kConvFields =
    std::tuple{field("strides", &ConvAttrs::strides), field("dilation_rate", &ConvAttrs::dilation_rate),
               field("padding", &ConvAttrs::padding), field("size", &ConvAttrs::size)};

int spatial_of(const ConvAttrs& a) { return static_cast<int>(a.strides.size()); }

Window window(const ConvAttrs& a, int axis, Index size) {
  const auto i = static_cast<std::size_t>(axis);
  const auto& [rule, before, after] = a.padding;
  if (before.empty()) return {size, a.strides[i], a.dilation_rate[i], rule};
  return {size, a.strides[i], a.dilation_rate[i], rule, before[i], after[i]};
}

// The dimensions [first, first + spatial) of a shape.
Shape space_of(const ConvAttrs& a, const Shape& shape, int first) {
  return Shape(std::vector<Index>(shape.begin() + first, shape.begin() + first + spatial_of(a)));
}

// The geometry of all three ops, from the shapes of x, w and y. Missing axes have size 1.
kernels::ConvGeometry geometry(const ConvAttrs& a, const Shape& x, const Shape& w, const Shape& y) {
  struct Axis {
    Index in = 1, out = 1, k = 1, stride = 1, dilation = 1, pad = 0;
  };
  std::array<Axis, 3> axes;
  const int spatial = spatial_of(a);
  for (int i = 0; i < spatial; ++i) {
    const Window under = window(a, i, w[i]);
    axes[static_cast<std::size_t>(3 - spatial + i)] = {x[i + 1],     y[i + 1],       w[i],
                                                       under.stride, under.dilation, pad_before(x[i + 1], under)};
  }
  const auto& [d, h, v] = axes;
  kernels::ConvGeometry g;
  g.batch = x[0], g.in_c = x.back(), g.out_c = y.back();
  g.in_d = d.in, g.out_d = d.out, g.k_d = d.k, g.stride_d = d.stride, g.dilation_d = d.dilation, g.pad_front = d.pad;
  g.in_h = h.in, g.out_h = h.out, g.k_h = h.k, g.stride_h = h.stride, g.dilation_h = h.dilation, g.pad_top = h.pad;
  g.in_w = v.in, g.out_w = v.out, g.k_w = v.k, g.stride_w = v.stride, g.dilation_w = v.dilation, g.pad_left = v.pad;
  return g;
}

// The geometry of a rank's share of the images of all ranks.
kernels::ConvGeometry share(const OutputSlice& slice, kernels::ConvGeometry g) {
  g.of_all_ranks = slice.size;
  return g;
}

// True if a kernel's tap lies inside the image at any position.
bool is_used(Index tap, Index dilation, Index stride, Index pad, Index in, Index out) {
  const Index first = tap * dilation - pad;
  const Index position = first >= 0 ? 0 : (-first + stride - 1) / stride;
  return position < out && first + position * stride < in;
}

// Sets the gradient of taps that only see padding to 0: their sums hold 0 * dy, which is NaN for infinite dy.
template <class T>
void clear_unused_taps(const kernels::ConvGeometry& g, Index elements, T* dw) {
  for (Index d = 0; d < g.k_d; ++d)
    for (Index h = 0; h < g.k_h; ++h)
      for (Index v = 0; v < g.k_w; ++v, dw += elements)
        if (!is_used(d, g.dilation_d, g.stride_d, g.pad_front, g.in_d, g.out_d) ||
            !is_used(h, g.dilation_h, g.stride_h, g.pad_top, g.in_h, g.out_h) ||
            !is_used(v, g.dilation_w, g.stride_w, g.pad_left, g.in_w, g.out_w))
          std::fill_n(dw, elements, T{});
}

void check_dtypes(std::string_view op, std::span<const Meta> in) {
  for (const Meta& m : in)
    if (!is_floating(m.dtype) || m.dtype != in[0].dtype)
      fail<DTypeError>(op, ": operands of ", in[0].dtype, " and ", m.dtype, "; both must have the same floating dtype");
}

void check_kernel(std::string_view op, const ConvAttrs& a, const Shape& kernel, int kernel_ndim) {
  if (kernel.ndim() != kernel_ndim)
    fail<ShapeError>(op, ": the kernel has the shape ", kernel, "; it needs ", kernel_ndim, " dimensions");
  for (int i = 0; i < spatial_of(a); ++i)
    if (kernel[i] == 0)
      fail<ShapeError>(op, ": the kernel has the shape ", kernel, "; its first ", spatial_of(a),
                       " dimensions must be 1 or more");
}

void check_channels(std::string_view op, const Shape& image, Index channels, const Shape& kernel) {
  if (image.back() != channels && image.back() != kUnknown && channels != kUnknown)
    fail<ShapeError>(op, ": an image of shape ", image, " and a kernel of shape ", kernel,
                     " have different numbers of channels: ", image.back(), " and ", channels);
}

// dy must have the spatial shape that a convolution of an image of `size` gives.
void check_positions(std::string_view op, const ConvAttrs& a, const Shape& dy, const Shape& size, const Shape& kernel) {
  for (int i = 0; i < spatial_of(a); ++i) {
    const Index want = window_positions(op, size[i], window(a, i, kernel[i]));
    if (dy[i + 1] != want && dy[i + 1] != kUnknown && want != kUnknown)
      fail<ShapeError>(op, ": a kernel of size ", kernel, " has ", want, " positions on axis ", i + 1,
                       " of an image of size ", size, ", but the convolved image has the shape ", dy);
  }
}

Shape image_shape(Index batch, const Shape& space, Index channels) {
  Shape shape{batch};
  for (const Index dim : space) shape.push_back(dim);
  shape.push_back(channels);
  return shape;
}

ConvAttrs with_size(ConvAttrs attrs, const Shape& size) {
  attrs.size = size;
  return attrs;
}

// If the image (operand 0) is a pad with zeros beside it only: the op on the image without them, which saves a copy.
template <class Op>
Expr without_pad(const ConvAttrs& a, std::span<const Expr> in) {
  if (!is_pad(in[0]) || a.padding != ConvPadding{}) return {};
  const auto before = zeros_before(in[0]), after = zeros_after(in[0]);
  if (before.front() + after.front() + before.back() + after.back() > 0) return {};
  ConvAttrs padded = a;
  padded.padding.before.assign(before.begin() + 1, before.end() - 1);
  padded.padding.after.assign(after.begin() + 1, after.end() - 1);
  return apply<Op>({in[0].input(0), in[1]}, std::move(padded));
}

// Every output channel sees every input channel.
struct Dense {
  static constexpr std::string_view kForward = "conv", kGradInput = "conv_grad_input", kGradKernel = "conv_grad_kernel";
  static constexpr std::array<std::string_view, 3> kFunctions{"conv1d", "conv2d", "conv3d"};
  static constexpr int kChannelAxes = 2;  // of a kernel
  static Index in_channels(const Shape& w) { return w[w.ndim() - 2]; }
  template <class T>
  static const kernels::ConvLoops<T>& loops() {
    return kernels::dense_conv<T>();
  }
};

// Each channel by itself.
struct Depthwise {
  static constexpr std::string_view kForward = "depthwise_conv", kGradInput = "depthwise_conv_grad_input",
                                    kGradKernel = "depthwise_conv_grad_kernel";
  static constexpr std::array<std::string_view, 2> kFunctions{"depthwise_conv1d", "depthwise_conv2d"};
  static constexpr int kChannelAxes = 1;
  static Index in_channels(const Shape& w) { return w.back(); }
  template <class T>
  static const kernels::ConvLoops<T>& loops() {
    return kernels::depthwise_conv<T>();
  }
};

template <class Kind>
Expr grad_input(const ConvAttrs& a, const Expr& w, const Expr& dy, const Expr& x);
template <class Kind>
Expr grad_kernel(const ConvAttrs& a, const Expr& x, const Expr& dy, const Expr& w);

template <class Kind>
struct ConvForward {
  static constexpr std::string_view kName = Kind::kForward;
  static constexpr bool kTakesEpilogue = true;
  using Attrs = ConvAttrs;
  static constexpr auto fields = kConvFields;

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const std::string_view op = Kind::kFunctions[a.strides.size() - 1];  // for error texts
    check_dtypes(op, in);
    const Shape &x = in[0].shape, &w = in[1].shape;
    check_image(op, x, spatial_of(a));
    check_kernel(op, a, w, spatial_of(a) + Kind::kChannelAxes);
    check_channels(op, x, Kind::in_channels(w), w);
    Shape space;
    for (int i = 0; i < spatial_of(a); ++i) space.push_back(window_positions(op, x[i + 1], window(a, i, w[i])));
    return {in[0].dtype, image_shape(x[0], space, w.back())};
  }
  static double flops(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out) {
    const auto g = geometry(a, in[0].shape, in[1].shape, out[0].shape);
    return with_floating(in[0].dtype, [&]<class T>(T) { return Kind::template loops<T>().forward_flops(g); });
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_images(args, 0); }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) {
    return without_pad<ConvForward>(a, in);
  }

  static std::size_t scratch(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out,
                             const OutputSlice& slice) {
    if (out[0].shape.size() == 0) return 0;  // no positions
    const auto g = share(slice, geometry(a, in[0].shape, in[1].shape, out[0].shape));
    return with_floating(in[0].dtype, [&]<class T>(T) { return Kind::template loops<T>().forward_scratch_bytes(g); });
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = share(k.slice, geometry(a, k.in_shape(0), k.in_shape(1), k.out_shape()));
    if (k.out_shape().size() == 0) return;
    with_floating(k.out_dtype(), [&]<class T>(T) {
      kernels::run_with_epilogue(k.epilogue, k.out_shape().size(), [&](const kernels::Epilogue* epilogue) {
        Kind::template loops<T>().forward(g, k.input<T>(0), k.input<T>(1), k.output<T>(), k.scratch, epilogue);
      });
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    const Expr &x = y.input(0), &w = y.input(1);
    return {grad_input<Kind>(a, w, dy, x), grad_kernel<Kind>(a, x, dy, w)};
  }
};

// (w, dy) -> dx of the spatial shape a.size.
template <class Kind>
struct ConvGradInput {
  static constexpr std::string_view kName = Kind::kGradInput;
  static constexpr bool kTakesEpilogue = true;
  using Attrs = ConvAttrs;
  static constexpr auto fields = kConvFields;

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_dtypes(kName, in);
    const Shape &w = in[0].shape, &dy = in[1].shape;
    check_image(kName, dy, spatial_of(a));
    check_kernel(kName, a, w, spatial_of(a) + Kind::kChannelAxes);
    check_channels(kName, dy, w.back(), w);
    Shape size = a.size;
    for (int i = 0; i < size.ndim(); ++i)
      if (size[i] == kUnknown) size[i] = elements_under(dy[i + 1], window(a, i, w[i]));
    check_positions(kName, a, dy, size, space_of(a, w, 0));
    return {in[0].dtype, image_shape(dy[0], size, Kind::in_channels(w))};
  }
  static double flops(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out) {
    const auto g = geometry(a, out[0].shape, in[0].shape, in[1].shape);
    return with_floating(in[0].dtype, [&]<class T>(T) { return Kind::template loops<T>().grad_input_flops(g); });
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_images(args, 1); }

  static std::size_t scratch(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out,
                             const OutputSlice& slice) {
    if (in[1].shape.size() == 0) return 0;  // no positions
    const auto g = share(slice, geometry(a, out[0].shape, in[0].shape, in[1].shape));
    return with_floating(in[0].dtype,
                         [&]<class T>(T) { return Kind::template loops<T>().grad_input_scratch_bytes(g); });
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = share(k.slice, geometry(a, k.out_shape(), k.in_shape(0), k.in_shape(1)));
    if (k.out_shape().size() == 0) return;
    with_floating(k.out_dtype(), [&]<class T>(T) {
      if (k.in_shape(1).size() == 0) {
        std::fill_n(k.output<T>(), k.out_shape().size(), T{});
        if (k.epilogue != nullptr) k.epilogue->run(0, k.out_shape().size());
        return;
      }
      kernels::run_with_epilogue(k.epilogue, k.out_shape().size(), [&](const kernels::Epilogue* epilogue) {
        Kind::template loops<T>().grad_input(g, k.input<T>(1), k.input<T>(0), k.output<T>(), k.scratch, epilogue);
      });
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& dx, const Expr& g) {
    const Expr &w = dx.input(0), &dy = dx.input(1);
    return {grad_kernel<Kind>(a, g, dy, w), apply<ConvForward<Kind>>({g, w}, with_size(a, {}))};
  }
};

// (x, dy) -> dw of the spatial shape a.size.
template <class Kind>
struct ConvGradKernel {
  static constexpr std::string_view kName = Kind::kGradKernel;
  using Attrs = ConvAttrs;
  static constexpr auto fields = kConvFields;

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_dtypes(kName, in);
    const Shape &x = in[0].shape, &dy = in[1].shape;
    check_image(kName, x, spatial_of(a));
    check_image(kName, dy, spatial_of(a));
    if (x[0] != dy[0] && x[0] != kUnknown && dy[0] != kUnknown)
      fail<ShapeError>(kName, ": batches of shapes ", x, " and ", dy, " have different numbers of images");
    Shape kernel = a.size;
    check_positions(kName, a, dy, space_of(a, x, 1), kernel);
    if (Kind::kChannelAxes == 2) kernel.push_back(x.back());
    kernel.push_back(dy.back());
    return {in[0].dtype, kernel};
  }
  static double flops(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out) {
    const auto g = geometry(a, in[0].shape, out[0].shape, in[1].shape);
    return with_floating(in[0].dtype, [&]<class T>(T) { return Kind::template loops<T>().grad_kernel_flops(g); });
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) {
    return without_pad<ConvGradKernel>(a, in);
  }
  // A sum over the images: each rank sums its own images.
  static Placed place(const Attrs&, const PlaceArgs& args) {
    if (!args.at[0].is_split(0) && !args.at[1].is_split(0)) return gathered(args);
    return {{Placement::split(0), Placement::split(0)}, {Placement::partial()}};
  }

  static std::size_t scratch(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out) {
    if (in[1].shape.size() == 0) return 0;  // no positions
    const auto g = geometry(a, in[0].shape, out[0].shape, in[1].shape);
    return with_floating(in[0].dtype,
                         [&]<class T>(T) { return Kind::template loops<T>().grad_kernel_scratch_bytes(g); });
  }
  static std::optional<std::size_t> parts_scratch(const Attrs& a, std::span<const Meta> in, const RowParts& parts) {
    if (parts.axis != 0 || in[0].shape.size() == 0 || in[1].shape.size() == 0) return std::nullopt;
    const auto g = geometry(a, in[0].shape, infer(a, in).shape, in[1].shape);
    return with_floating(in[0].dtype, [&]<class T>(T) -> std::optional<std::size_t> {
      const kernels::ConvLoops<T>& loops = Kind::template loops<T>();
      return loops.parts_scratch_bytes == nullptr ? std::nullopt : loops.parts_scratch_bytes(g, parts.begin);
    });
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.out_shape(), k.in_shape(1));
    with_floating(k.out_dtype(), [&]<class T>(T) {
      const kernels::ConvLoops<T>& loops = Kind::template loops<T>();
      const T *x = k.input<T>(0), *dy = k.input<T>(1);
      T* dw = k.output<T>();
      // A rank without rows adds zeros to the sum.
      if (k.in_shape(0).size() == 0 || k.in_shape(1).size() == 0) std::fill_n(dw, k.out_shape().size(), T{});
      else if (k.parts.empty()) loops.grad_kernel(g, x, dy, dw, k.scratch);
      else loops.grad_kernel_by_parts(g, k.parts.begin, x, dy, dw, k.scratch);
      clear_unused_taps(g, k.out_shape().size() / (g.k_d * g.k_h * g.k_w), dw);
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& dw, const Expr& g) {
    const Expr &x = dw.input(0), &dy = dw.input(1);
    return {grad_input<Kind>(a, g, dy, x), apply<ConvForward<Kind>>({x, g}, with_size(a, {}))};
  }
};

using DenseForward = ConvForward<Dense>;
using DenseGradInput = ConvGradInput<Dense>;
using DenseGradKernel = ConvGradKernel<Dense>;
using DepthwiseForward = ConvForward<Depthwise>;
using DepthwiseGradInput = ConvGradInput<Depthwise>;
using DepthwiseGradKernel = ConvGradKernel<Depthwise>;
SYNCLINE_REGISTER_OP(DenseForward)
SYNCLINE_REGISTER_OP(DenseGradInput)
SYNCLINE_REGISTER_OP(DenseGradKernel)
SYNCLINE_REGISTER_OP(DepthwiseForward)
SYNCLINE_REGISTER_OP(DepthwiseGradInput)
SYNCLINE_REGISTER_OP(DepthwiseGradKernel)

template <class Kind>
Expr grad_input(const ConvAttrs& a, const Expr& w, const Expr& dy, const Expr& x) {
  if (const Shape size = space_of(a, x.shape(), 1); size.is_known())
    return apply<ConvGradInput<Kind>>({w, dy}, with_size(a, size));
  return once_known_like(std::string(Kind::kGradInput), {w, dy}, {x}, dy.dtype(),
                         [a](std::span<const Expr> in, std::span<const Shape> shapes) {
                           return apply<ConvGradInput<Kind>>({in[0], in[1]}, with_size(a, space_of(a, shapes[0], 1)));
                         });
}

template <class Kind>
Expr grad_kernel(const ConvAttrs& a, const Expr& x, const Expr& dy, const Expr& w) {
  if (const Shape size = space_of(a, w.shape(), 0); size.is_known())
    return apply<ConvGradKernel<Kind>>({x, dy}, with_size(a, size));
  return once_known_like(std::string(Kind::kGradKernel), {x, dy}, {w}, dy.dtype(),
                         [a](std::span<const Expr> in, std::span<const Shape> shapes) {
                           return apply<ConvGradKernel<Kind>>({in[0], in[1]}, with_size(a, space_of(a, shapes[0], 0)));
                         });
}

template <class Kind>
Expr forward(const Expr& x, const Expr& kernel, const ConvAttrs& a) {
  const Expr y = apply<ConvForward<Kind>>({x, kernel}, a);
  for (int i = 0; i < spatial_of(a); ++i)
    check_window(Kind::kFunctions[a.strides.size() - 1], x.shape()[i + 1], window(a, i, kernel.shape()[i]));
  return y;
}

}  // namespace

Expr conv(const Expr& x, const Expr& kernel, const ConvAttrs& attrs) { return forward<Dense>(x, kernel, attrs); }

Expr depthwise_conv(const Expr& x, const Expr& kernel, const ConvAttrs& attrs) {
  return forward<Depthwise>(x, kernel, attrs);
}

Expr transposed_conv(const Expr& kernel, const Expr& y, const ConvAttrs& attrs) {
  return apply<DenseGradInput>({kernel, y}, attrs);
}

}  // namespace syncline
