// Matrix products: dot(x, y), and the ops Dot and DotKernelGrad, which are closed under differentiation.

#include "ops/graph/op.h"
#include "ops/kernels/product/blocked_product.h"
#include "ops/kernels/product/gemm.h"
#include "ops/kernels/product/rows_product.h"
#include "ops/linalg/packed.h"
#include "ops/sparse/tensor.h"
#include "syncline/backend/core.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/sparse.h"

namespace syncline {
namespace {

using kernels::Trans;

void check_product(std::string_view op, std::span<const Meta> in) {
  if (in[0].dtype != in[1].dtype)
    fail<DTypeError>(op, ": operands of ", in[0].dtype, " and ", in[1].dtype, "; cast one of them");
  if (in[0].dtype == DType::kBool) fail<DTypeError>(op, ": operands are bool; cast them to numbers first");
}

// Rows of a tensor viewed as a matrix with the last axis as columns.
std::int64_t rows_of(const Shape& shape) { return shape.product(0, shape.ndim() - 1); }

// y[..., n] = sum over k of x[..., k] * w[k, n], or * w[n, k].
struct Dot {
  static constexpr std::string_view kName = "dot";
  static constexpr bool kTakesEpilogue = true;
  struct Attrs {
    bool transpose_y = false;
  };
  static constexpr auto fields = std::tuple{field("transpose_y", &Attrs::transpose_y)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_product(kName, in);
    const Shape &x = in[0].shape, &w = in[1].shape;
    const int inner = a.transpose_y ? 1 : 0;
    if (x.ndim() < 1 || w.ndim() != 2 || sizes_differ(x.back(), w[inner]))
      fail<ShapeError>(kName, ": x ", x, " and y ", w, a.transpose_y ? " (transposed)" : "",
                       " do not fit; the last dimension of x must be the ", inner == 0 ? "first" : "second", " of y");
    Meta out = in[0];
    out.shape[x.ndim() - 1] = w[1 - inner];
    return out;
  }
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta> out) {
    return 2 * elements(out[0]) * static_cast<double>(in[0].shape.back());
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const int last = args.in[0].shape.ndim() - 1, inner = a.transpose_y ? 1 : 0;
    const Placement x = args.at[0], w = args.at[1];
    const Placement whole = Placement::replicated(), partial = Placement::partial();
    if (x.is_split() && x.axis != last) return {{x, whole}, {x}};
    if (x.is_split(last) || (w.is_split(inner) && !x.is_partial()))
      return {{Placement::split(last), Placement::split(inner)}, {partial}};
    if (x.is_partial() && w.is_replicated()) return {{x, whole}, {partial}};
    if (w.is_partial() && x.is_replicated()) return {{whole, w}, {partial}};
    return gathered(args);
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape& w = k.in_shape(1);
    const std::int64_t inner = k.in_shape(0).back(), n = w[a.transpose_y ? 0 : 1];
    const std::int64_t rows = rows_of(k.in_shape(0));
    const Trans of_w = a.transpose_y ? Trans::kYes : Trans::kNo;
    with_number(k.out_dtype(), [&]<class T>(T) {
      const T *x = k.input<T>(0), *y = k.input<T>(1);
      if constexpr (std::is_floating_point_v<T>)
        kernels::run_with_epilogue(k.epilogue, rows * n, [&](const kernels::Epilogue* epilogue) {
          kernels::gemm_with_epilogue(epilogue, Trans::kNo, of_w, rows, n, inner, x, inner, y, w[1], k.output<T>());
        });
      else kernels::gemm<T>(Trans::kNo, of_w, rows, n, inner, T(1), x, inner, y, w[1], T(0), k.output<T>(), n);
    });
  }
  // Packs a weight once if every iteration of a loop multiplies rows by it.
  static Expr hoist(const Attrs& a, std::span<const Expr> in, const std::vector<bool>& fixed) {
    const Shape& w = in[1].shape();
    if (!fixed[1] || fixed[0] || w.size() < 16 * 16) return {};
    return dot_packed(in[0], pack_matrix(in[1], a.transpose_y), w[a.transpose_y ? 0 : 1]);
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy) {
    const Expr &x = y.input(0), &w = y.input(1);
    return {apply<Dot>({dy, w}, {!a.transpose_y}), a.transpose_y ? dot_kernel_grad(dy, x) : dot_kernel_grad(x, dy)};
  }
};

// out[k, n] = sum over the rows of a[..., k] * b[..., n].
struct DotKernelGrad : WithoutAttrs {
  static constexpr std::string_view kName = "dot_kernel_grad";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_product(kName, in);
    const Shape &a = in[0].shape, &b = in[1].shape;
    bool fits = a.ndim() >= 1 && a.ndim() == b.ndim();
    for (int axis = 0; fits && axis + 1 < a.ndim(); ++axis) fits = !sizes_differ(a[axis], b[axis]);
    if (!fits) fail<ShapeError>(kName, ": ", a, " and ", b, " must be equal in all dimensions but the last");
    return {in[0].dtype, Shape{a.back(), b.back()}};
  }
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return 2 * elements(in[0]) * static_cast<double>(in[1].shape.back());
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const int last = args.in[0].shape.ndim() - 1;
    const Placement a = args.at[0], b = args.at[1];
    const Placement whole = Placement::replicated(), partial = Placement::partial();
    for (const Placement rows : {a, b})
      if (rows.is_split() && rows.axis != last) return {{rows, rows}, {partial}};
    // How the kernel divides the sum depends on the columns, so ranks with a part of these have other bits.
    if (args.by_parts && (a.is_split(last) || b.is_split(last))) return gathered(args);
    if (a.is_split(last)) return {{a, whole}, {Placement::split(0)}};
    if (b.is_split(last)) return {{whole, b}, {Placement::split(1)}};
    if (a.is_partial() != b.is_partial()) return {{a, b}, {partial}};
    return gathered(args);
  }
  static std::size_t scratch(const Attrs&, std::span<const Meta> in, std::span<const Meta> out) {
    if (!is_floating(out[0].dtype)) return 0;
    return kernels::rows_product_scratch(rows_of(in[0].shape), in[0].shape.back(), in[1].shape.back(),
                                         size_of(out[0].dtype));
  }
  static std::optional<std::size_t> parts_scratch(const Attrs&, std::span<const Meta> in, const RowParts& parts) {
    const bool fits = in[0].shape.ndim() == 2 && parts.axis == 0 &&
                      ((in[0].dtype == DType::kFloat32 && kernels::fits_parts<float>(parts.begin)) ||
                       (in[0].dtype == DType::kFloat64 && kernels::fits_parts<double>(parts.begin)));
    return fits ? std::optional<std::size_t>(0) : std::nullopt;
  }
  static void run(const Attrs&, const KernelArgs& args) { multiply(args, false); }
  static void accumulate(const Attrs&, const KernelArgs& args) { multiply(args, true); }
  static void multiply(const KernelArgs& args, bool add) {
    const std::int64_t rows = rows_of(args.in_shape(0)), k = args.in_shape(0).back(), n = args.in_shape(1).back();
    with_number(args.out_dtype(), [&]<class T>(T) {
      const T *a = args.input<T>(0), *b = args.input<T>(1);
      if constexpr (std::is_floating_point_v<T>) {
        if (!args.parts.empty())
          return kernels::gemm_by_parts<T>(Trans::kYes, Trans::kNo, k, n, args.parts.begin, a, k, b, n,
                                           args.output<T>(), n);
        kernels::rows_product<T>({rows, k, n, a, b, args.output<T>(), add}, args.scratch);
      } else {
        kernels::gemm<T>(Trans::kYes, Trans::kNo, k, n, rows, T(1), a, k, b, n, static_cast<T>(add ? 1 : 0),
                         args.output<T>(), n);
      }
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    const Expr &a = y.input(0), &b = y.input(1);
    return {dot_transposed(b, dy), apply<Dot>({a, dy}, {false})};
  }
};

SYNCLINE_REGISTER_OP(Dot)
SYNCLINE_REGISTER_OP(DotKernelGrad)

// dot with more than two axes in y: moves the summed axis of y to the front, merges the others to columns, and restores
// them in the result.
Expr dot_many(const Expr& x, const Expr& y) {
  const int summed = y.ndim() - 2;
  std::vector<int> pattern{summed};
  std::vector<int> columns;
  Dims out;
  for (int axis = 0; axis + 1 < x.ndim(); ++axis) out.append(dim(x, axis));
  for (int axis = 0; axis < y.ndim(); ++axis) {
    if (axis == summed) continue;
    columns.push_back(axis);
    out.append(dim(y, axis));
  }
  pattern.insert(pattern.end(), columns.begin(), columns.end());
  const Dims flat{dim(y, summed), count(y, columns, DType::kInt32)};
  return reshape(dot(x, reshape(permute_dimensions(y, pattern), flat)), out);
}

}  // namespace

Expr dot(const Expr& x, const Expr& y) {
  if (is_sparse(x)) return sparse_dot(x, y);
  if (y.ndim() == 1) return squeeze(dot(x, expand_dims(y, 1)), x.ndim() - 1);
  if (x.ndim() < 1 || y.ndim() < 1)
    fail<ShapeError>("dot: x ", x.shape(), " and y ", y.shape(),
                     " must have at least one axis each; multiply scalars by x * y");
  return y.ndim() > 2 ? dot_many(x, y) : apply<Dot>({x, y}, {false});
}
Expr dot_transposed(const Expr& x, const Expr& w) { return apply<Dot>({x, w}, {true}); }
Expr dot_kernel_grad(const Expr& a, const Expr& b) { return apply<DotKernelGrad>({a, b}); }

}  // namespace syncline
