#include "ops/linalg/packed.h"

#include "ops/graph/op.h"
#include "ops/kernels/product/packed_product.h"

namespace syncline {
namespace {

constexpr NoGradient kMadeByPlans{"a plan inserts it after differentiation"};

// float16 counts as float32, in which it is packed and multiplied.
std::int64_t panel_columns(DType dtype) {
  const DType computed = dtype == DType::kFloat16 ? DType::kFloat32 : dtype;
  return kernels::kPanelBytes / static_cast<std::int64_t>(size_of(computed));
}

struct PackMatrix {
  static constexpr std::string_view kName = "pack_matrix";
  static constexpr bool kMovesData = true;
  struct Attrs {
    bool transpose = false;
  };
  static constexpr auto fields = std::tuple{field("transpose", &Attrs::transpose)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const Shape& w = in[0].shape;
    if (!is_floating(in[0].dtype) || w.ndim() != 2)
      fail<ShapeError>(kName, ": w is ", in[0], "; give a floating matrix");
    const std::int64_t k = w[a.transpose ? 1 : 0], n = w[a.transpose ? 0 : 1], width = panel_columns(in[0].dtype);
    return {in[0].dtype, Shape{n == kUnknown ? kUnknown : (n + width - 1) / width, k, width}};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static void run(const Attrs& a, const KernelArgs& args) {
    const Shape& w = args.in_shape(0);
    const auto b = a.transpose ? kernels::Trans::kYes : kernels::Trans::kNo;
    with_floating(args.out_dtype(), [&]<class T>(T) {
      kernels::pack_matrix<T>(b, w[a.transpose ? 1 : 0], w[a.transpose ? 0 : 1], args.input<T>(0), w[1],
                              args.output<T>());
    });
  }
  static constexpr NoGradient grad = kMadeByPlans;
};

struct DotPacked {
  static constexpr std::string_view kName = "dot_packed";
  struct Attrs {
    std::int64_t n = 0;
  };
  static constexpr auto fields = std::tuple{field("n", &Attrs::n)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const Shape &x = in[0].shape, &packed = in[1].shape;
    if (in[0].dtype != in[1].dtype || packed.ndim() != 3 || x.ndim() < 1 || x.back() != packed[1])
      fail<ShapeError>(kName, ": x ", in[0], " and packed ", in[1], " do not fit; pack a matrix of x's last dimension");
    Meta out = in[0];
    out.shape[x.ndim() - 1] = a.n;
    return out;
  }
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta> out) {
    return 2 * elements(out[0]) * static_cast<double>(in[0].shape.back());
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement x = args.at[0], whole = Placement::replicated();
    const bool by_rows = (x.is_split() && x.axis != args.in[0].shape.ndim() - 1) || x.is_partial();
    return by_rows ? Placed{{x, whole}, {x}} : gathered(args);
  }
  static void run(const Attrs& a, const KernelArgs& args) {
    const Shape& x = args.in_shape(0);
    with_floating(args.out_dtype(), [&]<class T>(T) {
      kernels::packed_product<T>(x.product(0, x.ndim() - 1), a.n, x.back(), args.input<T>(0), args.input<T>(1),
                                 args.output<T>());
    });
  }
  static constexpr NoGradient grad = kMadeByPlans;
};

SYNCLINE_REGISTER_OP(PackMatrix)
SYNCLINE_REGISTER_OP(DotPacked)

}  // namespace

Expr pack_matrix(const Expr& w, bool transpose) { return apply<PackMatrix>({w}, {transpose}); }
Expr dot_packed(const Expr& x, const Expr& packed, std::int64_t n) { return apply<DotPacked>({x, packed}, {n}); }

}  // namespace syncline
