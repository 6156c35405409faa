// conv2d and its two gradients. Each is linear in either operand, so each one's gradients are the other two.
//
//   Conv2D(x, w) = y        Conv2DGradInput(w, dy) = dx        Conv2DGradKernel(x, dy) = dw
//
// Images are NHWC, kernels HWIO; conv2d() transposes other layouts. The loops are in ops/kernels/conv.h.
#include "ops/kernels/conv.h"

#include <algorithm>

#include "ops/convolution.h"
#include "ops/convolution/image.h"
#include "ops/op.h"

namespace syncline {
namespace {

struct ConvAttrs {
  int stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1;
  bool same = false;
  // Of the result, where the operands do not tell: of dx in Conv2DGradInput, of dw in Conv2DGradKernel.
  std::int64_t height = 0, width = 0;
};

constexpr auto kConvFields = std::tuple{field("stride_h", &ConvAttrs::stride_h),
                                        field("stride_w", &ConvAttrs::stride_w),
                                        field("dilation_h", &ConvAttrs::dilation_h),
                                        field("dilation_w", &ConvAttrs::dilation_w),
                                        field("same", &ConvAttrs::same),
                                        field("height", &ConvAttrs::height),
                                        field("width", &ConvAttrs::width)};

ConvAttrs with_result(ConvAttrs a, std::string_view op, const Shape& shape, int first_axis) {
  a.height = shape[first_axis];
  a.width = shape[first_axis + 1];
  if (a.height == kUnknown || a.width == kUnknown)
    fail<ShapeError>(op, ": the gradient needs to know height and width, but the shape is ", shape,
                     "; declare both when the placeholder is made");
  return a;
}

Window window_h(const ConvAttrs& a, std::int64_t size) { return {size, a.stride_h, a.dilation_h, a.same}; }
Window window_w(const ConvAttrs& a, std::int64_t size) { return {size, a.stride_w, a.dilation_w, a.same}; }

// The geometry of all three, from the shapes of x, w and y.
kernels::ConvGeometry geometry(const ConvAttrs& a, const Shape& x, const Shape& w, const Shape& y) {
  kernels::ConvGeometry g;
  g.batch = x[0];
  g.in_h = x[1], g.in_w = x[2], g.in_c = x[3];
  g.out_h = y[1], g.out_w = y[2], g.out_c = y[3];
  g.k_h = w[0], g.k_w = w[1];
  g.stride_h = a.stride_h, g.stride_w = a.stride_w;
  g.dilation_h = a.dilation_h, g.dilation_w = a.dilation_w;
  g.pad_top = pad_before(g.in_h, window_h(a, g.k_h));
  g.pad_left = pad_before(g.in_w, window_w(a, g.k_w));
  return g;
}

void check_operands(std::string_view op, std::span<const Meta> in) {
  for (const Meta& m : in) {
    if (!is_floating(m.dtype) || m.dtype != in[0].dtype)
      fail<DTypeError>(op, ": operands of ", in[0].dtype, " and ", m.dtype, "; both must be float32, or both float64");
    if (m.shape.ndim() != 4)
      fail<ShapeError>(op, ": an operand has the shape ", m.shape,
                       "; images have four dimensions, and kernels (height, width, in, out)");
  }
}

// A kernel's height and width decide the size of everything else.
void check_kernel(std::string_view op, const Shape& kernel) {
  if (kernel[0] < 1 || kernel[1] < 1)
    fail<ShapeError>(op, ": the kernel has the shape ", kernel, "; its height and width must be known, and 1 or more");
}

void check_channels(std::string_view op, const Shape& image, std::int64_t channels, const Shape& kernel) {
  if (image[3] != channels && image[3] != kUnknown && channels != kUnknown)
    fail<ShapeError>(op, ": an image of shape ", image, " and a kernel of shape ", kernel, " disagree: ", image[3],
                     " and ", channels, " channels");
}

// dy must be what a convolution of an image of height x width gives.
void check_positions(std::string_view op, const ConvAttrs& a, const Shape& dy, std::int64_t in_h, std::int64_t in_w,
                     std::int64_t k_h, std::int64_t k_w) {
  const std::int64_t h = window_positions(op, in_h, window_h(a, k_h));
  const std::int64_t w = window_positions(op, in_w, window_w(a, k_w));
  const auto differs = [](std::int64_t have, std::int64_t want) {
    return have != want && have != kUnknown && want != kUnknown;
  };
  if (differs(dy[1], h) || differs(dy[2], w))
    fail<ShapeError>(op, ": an image of shape ", dy, " does not belong to one of ", in_h, "x", in_w,
                     " under a kernel of ", k_h, "x", k_w, ", which would have ", h, "x", w, " positions");
}

// Rows of the batch in, rows of the batch out.
Placed place_images(const PlaceArgs& args, std::size_t image) {
  Placed placed = gathered(args);
  if (args.at[image].is_split(0)) placed.in[image] = placed.out[0] = Placement::split(0);
  return placed;
}

struct Conv2D {
  static constexpr std::string_view kName = "conv2d";
  using Attrs = ConvAttrs;
  static constexpr auto fields = kConvFields;

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_operands(kName, in);
    const Shape &x = in[0].shape, &w = in[1].shape;
    check_kernel(kName, w);
    check_channels(kName, x, w[2], w);
    return {in[0].dtype, Shape{x[0], window_positions(kName, x[1], window_h(a, w[0])),
                               window_positions(kName, x[2], window_w(a, w[1])), w[3]}};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_images(args, 0); }

  static std::size_t scratch(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out) {
    const auto g = geometry(a, in[0].shape, in[1].shape, out[0].shape);
    return with_floating(in[0].dtype, [&]<class T>(T) { return kernels::conv2d_scratch_bytes<T>(g); });
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.in_shape(1), k.out_shape());
    if (k.out_shape().size() == 0) return;
    with_floating(k.out_dtype(),
                  [&]<class T>(T) { kernels::conv2d(g, k.input<T>(0), k.input<T>(1), k.output<T>(), k.scratch); });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy);
};

struct Conv2DGradInput {
  static constexpr std::string_view kName = "conv2d_grad_input";
  using Attrs = ConvAttrs;
  static constexpr auto fields = kConvFields;

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_operands(kName, in);
    const Shape &w = in[0].shape, &dy = in[1].shape;
    check_kernel(kName, w);
    check_channels(kName, dy, w[3], w);
    check_positions(kName, a, dy, a.height, a.width, w[0], w[1]);
    return {in[0].dtype, Shape{dy[0], a.height, a.width, w[2]}};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_images(args, 1); }

  static std::size_t scratch(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out) {
    const auto g = geometry(a, out[0].shape, in[0].shape, in[1].shape);
    return with_floating(in[0].dtype, [&]<class T>(T) { return kernels::conv2d_grad_input_scratch_bytes<T>(g); });
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.out_shape(), k.in_shape(0), k.in_shape(1));
    if (k.out_shape().size() == 0) return;
    with_floating(k.out_dtype(), [&]<class T>(T) {
      kernels::conv2d_grad_input(g, k.input<T>(1), k.input<T>(0), k.output<T>(), k.scratch);
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& dx, const Expr& g);
};

struct Conv2DGradKernel {
  static constexpr std::string_view kName = "conv2d_grad_kernel";
  using Attrs = ConvAttrs;
  static constexpr auto fields = kConvFields;

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_operands(kName, in);
    const Shape &x = in[0].shape, &dy = in[1].shape;
    if (x[0] != dy[0] && x[0] != kUnknown && dy[0] != kUnknown)
      fail<ShapeError>(kName, ": batches of shapes ", x, " and ", dy, " have different numbers of images");
    check_positions(kName, a, dy, x[1], x[2], a.height, a.width);
    return {in[0].dtype, Shape{a.height, a.width, x[3], dy[3]}};
  }
  // A sum over the images: each rank sums its own.
  static Placed place(const Attrs&, const PlaceArgs& args) {
    if (!args.at[0].is_split(0) && !args.at[1].is_split(0)) return gathered(args);
    return {{Placement::split(0), Placement::split(0)}, {Placement::partial()}};
  }

  static std::size_t scratch(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out) {
    const auto g = geometry(a, in[0].shape, out[0].shape, in[1].shape);
    return with_floating(in[0].dtype, [&]<class T>(T) { return kernels::conv2d_grad_kernel_scratch_bytes<T>(g); });
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const auto g = geometry(a, k.in_shape(0), k.out_shape(), k.in_shape(1));
    with_floating(k.out_dtype(), [&]<class T>(T) {
      // A rank without rows contributes nothing to the sum.
      if (k.in_shape(0).size() == 0 || k.in_shape(1).size() == 0) std::fill_n(k.output<T>(), k.out_shape().size(), T{});
      else kernels::conv2d_grad_kernel(g, k.input<T>(0), k.input<T>(1), k.output<T>(), k.scratch);
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& dw, const Expr& g);
};

SYNCLINE_REGISTER_OP(Conv2D)
SYNCLINE_REGISTER_OP(Conv2DGradInput)
SYNCLINE_REGISTER_OP(Conv2DGradKernel)

std::vector<Expr> Conv2D::grad(const Attrs& a, const Expr& y, const Expr& dy) {
  const Expr &x = y.input(0), &w = y.input(1);
  return {apply<Conv2DGradInput>({w, dy}, with_result(a, kName, x.shape(), 1)),
          apply<Conv2DGradKernel>({x, dy}, with_result(a, kName, w.shape(), 0))};
}

std::vector<Expr> Conv2DGradInput::grad(const Attrs& a, const Expr& dx, const Expr& g) {
  const Expr &w = dx.input(0), &dy = dx.input(1);
  return {apply<Conv2DGradKernel>({g, dy}, with_result(a, kName, w.shape(), 0)), apply<Conv2D>({g, w}, a)};
}

std::vector<Expr> Conv2DGradKernel::grad(const Attrs& a, const Expr& dw, const Expr& g) {
  const Expr &x = dw.input(0), &dy = dw.input(1);
  return {apply<Conv2DGradInput>({g, dy}, with_result(a, kName, x.shape(), 1)), apply<Conv2D>({x, g}, a)};
}

ConvAttrs attrs_of(std::string_view op, const Conv2DOptions& o) {
  for (const int stride : o.strides) positive_step(op, "a stride", stride);
  for (const int rate : o.dilation_rate) positive_step(op, "a dilation rate", rate);
  return {o.strides[0], o.strides[1], o.dilation_rate[0], o.dilation_rate[1], is_same_padding(op, o.padding), 0, 0};
}

}  // namespace

Expr conv2d(const Expr& x, const Expr& kernel, const Conv2DOptions& options) {
  const ConvAttrs attrs = attrs_of("conv2d", options);
  if (!is_channels_first("conv2d", options.data_format)) return apply<Conv2D>({x, kernel}, attrs);
  return channels_to_front(apply<Conv2D>({channels_to_back("conv2d", x), kernel}, attrs));
}

Expr conv2d_transpose(const Expr& x, const Expr& kernel, const Shape& output_shape, const Conv2DOptions& options) {
  constexpr std::string_view kName = "conv2d_transpose";
  ConvAttrs attrs = attrs_of(kName, options);
  const bool first = is_channels_first(kName, options.data_format);
  if (output_shape.ndim() != 4)
    fail<ShapeError>(kName, ": output_shape ", output_shape, " has not four dimensions; name batch, height, width and ",
                     "channels in the order of data_format");
  attrs = with_result(attrs, kName, output_shape, first ? 2 : 1);
  const Expr image = apply<Conv2DGradInput>({kernel, first ? channels_to_back(kName, x) : x}, attrs);
  const Expr y = first ? channels_to_front(image) : image;
  if (!accepts(output_shape, y.shape()) && !accepts(y.shape(), output_shape))
    fail<ShapeError>(kName, ": output_shape is ", output_shape, ", but x of shape ", x.shape(),
                     " and a kernel of shape ", kernel.shape(), " give ", y.shape());
  return y;
}

}  // namespace syncline
