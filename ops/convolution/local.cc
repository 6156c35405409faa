// Local convolutions: each position has its own kernel. All three ops are linear in each operand; the gradients of each
// op are the other two.
//
//   Local(x, w) = y        LocalGradInput(w, dy) = dx        LocalGradKernel(x, dy) = dw
//
// Images are NHWC here; w is (positions, features, channels of y), with the features in the order of a window's rows. A
// window's row is contiguous in the image. For each position and row of the window, the images of a batch are a matrix
// with the row stride of one image, so all three ops are products of such matrices.
#include <algorithm>

#include "ops/convolution/image.h"
#include "ops/graph/deferred.h"
#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/product/gemm.h"
#include "syncline/backend/convolution.h"

namespace syncline {
namespace {

using Index = std::int64_t;
using kernels::Trans;

struct LocalAttrs {
  std::vector<Index> kernel_size, strides;  // rows, columns
  std::vector<Index> positions;             // of the result
  Shape size = {};                          // rows and columns of dx in LocalGradInput
};

constexpr auto kLocalFields =
    std::tuple{field("kernel_size", &LocalAttrs::kernel_size), field("strides", &LocalAttrs::strides),
               field("positions", &LocalAttrs::positions), field("size", &LocalAttrs::size)};

constexpr double kNanosecondsPerFlop = 0.02;  // the products are small

// Sizes and loops of all three ops: one product for each position and row of its window.
struct Local {
  const LocalAttrs& a;
  Index batch, width, in_c, out_c, image;  // image: elements of one image of x

  Local(const LocalAttrs& attrs, const Shape& x, Index channels)
      : a(attrs), batch(x[0]), width(x[2]), in_c(x[3]), out_c(channels), image(x[1] * x[2] * x[3]) {}

  Index positions() const { return a.positions[0] * a.positions[1]; }
  Index row() const { return a.kernel_size[1] * in_c; }  // features of one row of the window
  Index features() const { return a.kernel_size[0] * row(); }
  double flops() const {
    return 2.0 * static_cast<double>(batch * positions()) * static_cast<double>(features() * out_c);
  }

  // Calls visit(p, x, w, first) for positions [begin, end) and the rows of their windows. x is the row's offset in an
  // image, w its offset in the kernel; `first` marks a window's first row.
  template <class Visit>
  void for_rows(Index begin, Index end, const Visit& visit) const {
    for (Index p = begin; p < end; ++p) {
      const Index top = p / a.positions[1] * a.strides[0], left = p % a.positions[1] * a.strides[1];
      for (Index r = 0; r < a.kernel_size[0]; ++r)
        visit(p, ((top + r) * width + left) * in_c, (p * features() + r * row()) * out_c, r == 0);
    }
  }
  template <class Body>
  void for_positions(const Body& body) const {
    kernels::parallel_for(positions(),
                          flops() * kNanosecondsPerFlop / static_cast<double>(std::max<Index>(1, positions())), body);
  }
};

void check_operands(std::string_view op, std::span<const Meta> in, int first_ndim, int second_ndim) {
  if (!is_floating(in[0].dtype) || in[0].dtype != in[1].dtype)
    fail<DTypeError>(op, ": operands of ", in[0].dtype, " and ", in[1].dtype,
                     "; both must have the same floating dtype");
  if (in[0].shape.ndim() != first_ndim || in[1].shape.ndim() != second_ndim)
    fail<ShapeError>(op, ": operands of shapes ", in[0].shape, " and ", in[1].shape, "; they need ", first_ndim,
                     " and ", second_ndim, " dimensions");
}

// The windows must lie inside the image.
void check_windows(std::string_view op, const LocalAttrs& a, const Shape& x) {
  for (int i = 0; i < 2; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const Index reach = (a.positions[k] - 1) * a.strides[k] + a.kernel_size[k];
    if (x[i + 1] != kUnknown && a.positions[k] > 0 && reach > x[i + 1])
      fail<ShapeError>(op, ": ", a.positions[k], " positions of a window of ", a.kernel_size[k], " span ", reach,
                       " elements, but the image has ", x[i + 1], "; give fewer positions");
  }
}

void check_kernel(std::string_view op, const LocalAttrs& a, const Shape& w, Index channels) {
  const Index positions = a.positions[0] * a.positions[1], window = a.kernel_size[0] * a.kernel_size[1];
  const bool features = channels == kUnknown || w[1] == kUnknown || w[1] == window * channels;
  if ((w[0] != positions && w[0] != kUnknown) || !features)
    fail<ShapeError>(
        op, ": a kernel of shape ", w, " does not fit ", positions, " positions of windows of ", window, " places and ",
        channels,
        " channels; its first dimension must be the number of positions, its second one places times channels");
}

Expr local_grad_input(const LocalAttrs& a, const Expr& w, const Expr& dy, const Expr& x);
Expr local_grad_kernel(const LocalAttrs& a, const Expr& x, const Expr& dy);
Expr local(const LocalAttrs& a, const Expr& x, const Expr& w);

struct LocalConv {
  static constexpr std::string_view kName = "local_conv";
  using Attrs = LocalAttrs;
  static constexpr auto fields = kLocalFields;
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_operands(kName, in, 4, 3);
    check_windows(kName, a, in[0].shape);
    check_kernel(kName, a, in[1].shape, in[0].shape[3]);
    return {in[0].dtype, Shape{in[0].shape[0], a.positions[0], a.positions[1], in[1].shape[2]}};
  }
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return 2 * static_cast<double>(in[0].shape[0]) * elements(in[1]);
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_images(args, 0); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Local l(a, k.in_shape(0), k.out_shape()[3]);
    const Index line = l.positions() * l.out_c;
    with_floating(k.out_dtype(), [&]<class T>(T) {
      l.for_positions([&](Index begin, Index end) {
        l.for_rows(begin, end, [&](Index p, Index x, Index w, bool first) {
          kernels::gemm_serial<T>(Trans::kNo, Trans::kNo, l.batch, l.out_c, l.row(), T(1), k.input<T>(0) + x, l.image,
                                  k.input<T>(1) + w, l.out_c, first ? T(0) : T(1), k.output<T>() + p * l.out_c, line);
        });
      });
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    return {local_grad_input(a, y.input(1), dy, y.input(0)), local_grad_kernel(a, y.input(0), dy)};
  }
};

// (w, dy) -> dx of the spatial shape a.size.
struct LocalConvGradInput {
  static constexpr std::string_view kName = "local_conv_grad_input";
  using Attrs = LocalAttrs;
  static constexpr auto fields = kLocalFields;
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_operands(kName, in, 3, 4);
    const Shape &w = in[0].shape, &dy = in[1].shape;
    const Index window = a.kernel_size[0] * a.kernel_size[1];
    const Shape image{dy[0], a.size[0], a.size[1], w[1] / window};
    check_windows(kName, a, image);
    check_kernel(kName, a, w, image[3]);
    return {in[0].dtype, Shape{dy[0], image[1], image[2], image[3]}};
  }
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return 2 * static_cast<double>(in[1].shape[0]) * elements(in[0]);
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_images(args, 1); }
  // Windows overlap in dx, so threads split the images. A product's bits may depend on its rows: chunks are fixed.
  static void run(const Attrs& a, const KernelArgs& k) {
    const Local l(a, k.out_shape(), k.in_shape(1)[3]);
    const Index line = l.positions() * l.out_c;
    const double cost = l.flops() * kNanosecondsPerFlop / static_cast<double>(std::max<Index>(1, l.batch));
    with_floating(k.out_dtype(), [&]<class T>(T) {
      kernels::parallel_chunks(kernels::fixed_chunks(l.batch, cost), [&](Index, Index begin, Index end) {
        T* dx = k.output<T>() + begin * l.image;
        std::fill_n(dx, (end - begin) * l.image, T{});
        l.for_rows(0, l.positions(), [&](Index p, Index x, Index w, bool) {
          kernels::gemm_serial<T>(Trans::kNo, Trans::kYes, end - begin, l.row(), l.out_c, T(1),
                                  k.input<T>(1) + begin * line + p * l.out_c, line, k.input<T>(0) + w, l.out_c, T(1),
                                  dx + x, l.image);
        });
      });
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& dx, const Expr& g) {
    return {local_grad_kernel(a, g, dx.input(1)), local(a, g, dx.input(0))};
  }
};

struct LocalConvGradKernel {
  static constexpr std::string_view kName = "local_conv_grad_kernel";
  using Attrs = LocalAttrs;
  static constexpr auto fields = kLocalFields;
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_operands(kName, in, 4, 4);
    check_windows(kName, a, in[0].shape);
    const Index channels = in[0].shape[3], window = a.kernel_size[0] * a.kernel_size[1];
    return {in[0].dtype, Shape{a.positions[0] * a.positions[1], channels == kUnknown ? kUnknown : window * channels,
                               in[1].shape[3]}};
  }
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta> out) {
    return 2 * static_cast<double>(in[0].shape[0]) * elements(out[0]);
  }
  // A sum over the images: each rank sums its own images.
  static Placed place(const Attrs&, const PlaceArgs& args) {
    if (!args.at[0].is_split(0) && !args.at[1].is_split(0)) return gathered(args);
    return {{Placement::split(0), Placement::split(0)}, {Placement::partial()}};
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Local l(a, k.in_shape(0), k.in_shape(1)[3]);
    const Index line = l.positions() * l.out_c;
    with_floating(k.out_dtype(), [&]<class T>(T) {
      l.for_positions([&](Index begin, Index end) {
        l.for_rows(begin, end, [&](Index p, Index x, Index w, bool) {
          kernels::gemm_serial<T>(Trans::kYes, Trans::kNo, l.row(), l.out_c, l.batch, T(1), k.input<T>(0) + x, l.image,
                                  k.input<T>(1) + p * l.out_c, line, T(0), k.output<T>() + w, l.out_c);
        });
      });
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& dw, const Expr& g) {
    return {local_grad_input(a, g, dw.input(1), dw.input(0)), local(a, dw.input(0), g)};
  }
};

SYNCLINE_REGISTER_OP(LocalConv)
SYNCLINE_REGISTER_OP(LocalConvGradInput)
SYNCLINE_REGISTER_OP(LocalConvGradKernel)

LocalAttrs with_size(LocalAttrs a, Shape size) {
  a.size = std::move(size);
  return a;
}

Expr local_grad_input(const LocalAttrs& a, const Expr& w, const Expr& dy, const Expr& x) {
  const Shape& s = x.shape();
  const bool known = s[1] != kUnknown && s[2] != kUnknown && s[3] != kUnknown && w.shape()[1] != kUnknown;
  if (known) return apply<LocalConvGradInput>({w, dy}, with_size(a, {s[1], s[2]}));
  return once_known_like(std::string(LocalConvGradInput::kName), {w, dy}, {x}, dy.dtype(),
                         [a](std::span<const Expr> in, std::span<const Shape> shapes) {
                           return apply<LocalConvGradInput>({in[0], in[1]}, with_size(a, {shapes[0][1], shapes[0][2]}));
                         });
}
Expr local_grad_kernel(const LocalAttrs& a, const Expr& x, const Expr& dy) {
  return apply<LocalConvGradKernel>({x, dy}, with_size(a, {}));
}
Expr local(const LocalAttrs& a, const Expr& x, const Expr& w) { return apply<LocalConv>({x, w}, with_size(a, {})); }

// Reorders the features of a kernel from (channels, space) to (space, channels).
Expr features_last(std::string_view op, const Expr& kernel, Index places) {
  const Shape& w = kernel.shape();
  if (w.ndim() != 3 || w[0] == kUnknown || w[1] == kUnknown || w[1] % places != 0)
    fail<ShapeError>(op, ": the kernel has the shape ", w,
                     "; it needs (positions, features, filters), with features a ", "multiple of the ", places,
                     " places of a window");
  const Expr apart = reshape(kernel, {w[0], w[1] / places, places, w[2]});
  return reshape(permute_dimensions(apart, {0, 2, 1, 3}), w);
}

// `inputs` has one or two spatial axes. With one, this adds an axis of one row.
Expr local_function(std::string_view op, const Expr& inputs, const Expr& kernel, int spatial, const LocalAttrs& a,
                    const std::string& data_format) {
  check_steps(op, "a kernel_size", a.kernel_size);
  check_steps(op, "a stride", a.strides);
  const Index places = a.kernel_size[0] * a.kernel_size[1];
  const Expr w = is_channels_first(op, data_format) ? features_last(op, kernel, places) : kernel;
  return with_channels_last(op, inputs, spatial, data_format, [&](const Expr& x) {
    return spatial == 2 ? local(a, x, w) : squeeze(local(a, expand_dims(x, 1), w), 1);
  });
}

}  // namespace

Expr local_conv1d(const Expr& inputs, const Expr& kernel, int kernel_size, int strides,
                  const std::string& data_format) {
  constexpr std::string_view kName = "local_conv1d";
  if (kernel.ndim() != 3 || kernel.shape()[0] < 0)
    fail<ShapeError>(kName, ": the kernel has the shape ", kernel.shape(),
                     "; it needs (positions, features, filters), the first of them known");
  return local_function(kName, inputs, kernel, 1, {{1, kernel_size}, {1, strides}, {1, kernel.shape()[0]}, {}},
                        data_format);
}

Expr local_conv2d(const Expr& inputs, const Expr& kernel, std::array<int, 2> kernel_size, std::array<int, 2> strides,
                  std::array<int, 2> output_shape, const std::string& data_format) {
  constexpr std::string_view kName = "local_conv2d";
  for (const int positions : output_shape)
    if (positions < 0) fail<ValueError>(kName, ": output_shape holds ", positions, "; give rows and columns");
  return local_function(kName, inputs, kernel, 2,
                        {{kernel_size.begin(), kernel_size.end()},
                         {strides.begin(), strides.end()},
                         {output_shape.begin(), output_shape.end()},
                         {}},
                        data_format);
}

}  // namespace syncline
