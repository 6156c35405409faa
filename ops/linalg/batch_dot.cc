// batch_dot: one product of tensors per sample. The op sums over several neighbouring axes, so that its gradients are
// the same op. These axes are the first or the last after the samples, so that operands need no copy.
#include <numeric>

#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/product/gemm.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

using kernels::Trans;

// x: (samples, rows..., summed...) or, with summed_first_x, (samples, summed..., rows...); y likewise with columns.
// The result: (samples, rows..., columns...).
struct BatchDot {
  static constexpr std::string_view kName = "batch_dot";
  struct Attrs {
    int summed = 1;  // number of summed axes
    bool summed_first_x = false, summed_first_y = true;
  };
  static constexpr auto fields =
      std::tuple{field("summed", &Attrs::summed), field("summed_first_x", &Attrs::summed_first_x),
                 field("summed_first_y", &Attrs::summed_first_y)};

  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const Shape &x = in[0].shape, &y = in[1].shape;
    if (in[0].dtype != in[1].dtype)
      fail<DTypeError>(kName, ": operands of ", in[0].dtype, " and ", in[1].dtype, "; cast one of them");
    if (in[0].dtype == DType::kBool) fail<DTypeError>(kName, ": operands are bool; cast them to numbers first");
    if (!agree(x[0], y[0]))
      fail<ShapeError>(kName, ": x ", x, " has ", x[0], " samples and y ", y, " has ", y[0],
                       "; both must have the same number");
    const int x_at = summed_at(a.summed_first_x, x, a.summed), y_at = summed_at(a.summed_first_y, y, a.summed);
    for (int i = 0; i < a.summed; ++i)
      if (!agree(x[x_at + i], y[y_at + i]))
        fail<ShapeError>(kName, ": x ", x, " and y ", y, " have ", x[x_at + i], " and ", y[y_at + i],
                         " elements along the axes that are summed; these must agree");
    Meta out{in[0].dtype, {x[0] >= 0 ? x[0] : y[0]}};
    const int x_free = free_at(a.summed_first_x, a.summed), y_free = free_at(a.summed_first_y, a.summed);
    for (int i = 0; i < x.ndim() - 1 - a.summed; ++i) out.shape.push_back(x[x_free + i]);
    for (int i = 0; i < y.ndim() - 1 - a.summed; ++i) out.shape.push_back(y[y_free + i]);
    return out;
  }

  static double flops(const Attrs& a, std::span<const Meta> in, std::span<const Meta> out) {
    return 2 * elements(out[0]) * static_cast<double>(sizes_of(a, in[0].shape, in[1].shape).k);
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const Placement x = args.at[0], y = args.at[1];
    const Placement whole = Placement::replicated(), partial = Placement::partial();
    for (const Placement samples : {x, y})
      if (samples.is_split(0)) return {{samples, samples}, {samples}};
    const int x_at = summed_at(a.summed_first_x, args.in[0].shape, a.summed);
    const int y_at = summed_at(a.summed_first_y, args.in[1].shape, a.summed);
    const auto is_summed = [&](Placement p, int at) { return p.is_split() && p.axis >= at && p.axis < at + a.summed; };
    if (is_summed(x, x_at) && !y.is_partial()) return {{x, Placement::split(x.axis - x_at + y_at)}, {partial}};
    if (is_summed(y, y_at) && !x.is_partial()) return {{Placement::split(y.axis - y_at + x_at), y}, {partial}};
    const int rows = args.in[0].shape.ndim() - 1 - a.summed;
    if (x.is_split() && !is_summed(x, x_at))
      return {{x, whole}, {Placement::split(x.axis - free_at(a.summed_first_x, a.summed) + 1)}};
    if (y.is_split() && !is_summed(y, y_at))
      return {{whole, y}, {Placement::split(y.axis - free_at(a.summed_first_y, a.summed) + 1 + rows)}};
    if (x.is_partial() != y.is_partial()) return {{x.is_partial() ? x : whole, y.is_partial() ? y : whole}, {partial}};
    return gathered(args);
  }

  static void run(const Attrs& a, const KernelArgs& args) {
    const Sizes s = sizes_of(a, args.in_shape(0), args.in_shape(1));
    const Trans x_trans = a.summed_first_x ? Trans::kYes : Trans::kNo;
    const Trans y_trans = a.summed_first_y ? Trans::kNo : Trans::kYes;
    const double cost = 50 + 0.02 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    with_number(args.out_dtype(), [&]<class T>(T) {
      const auto product = [&](auto gemm, std::int64_t i) {
        gemm(x_trans, y_trans, s.m, s.n, s.k, T(1), args.input<T>(0) + i * s.m * s.k, a.summed_first_x ? s.m : s.k,
             args.input<T>(1) + i * s.n * s.k, a.summed_first_y ? s.n : s.k, T(0), args.output<T>() + i * s.m * s.n,
             s.n);
      };
      // Threads share each of a few large products; otherwise a thread takes whole products.
      if (s.samples < kManySamples && cost > kernels::kSerialNanoseconds) {
        for (std::int64_t i = 0; i < s.samples; ++i) product(kernels::gemm<T>, i);
        return;
      }
      kernels::parallel_for(s.samples, cost, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) product(kernels::gemm_serial<T>, i);
      });
    });
  }

  // Products of vectors as elementwise ops and a sum, which take one pass for all samples.
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta& out) {
    const Shape &x = in[0].shape(), &y = in[1].shape();
    if (!is_floating(out.dtype) || !x.is_known() || !y.is_known()) return {};
    const Sizes s = sizes_of(a, x, y);
    if (s.k == 1) return reshape(reshape(in[0], {s.samples, s.m, 1}) * reshape(in[1], {s.samples, 1, s.n}), out.shape);
    if (s.m != 1 || s.n != 1) return {};
    return reshape(sum(reshape(in[0], {s.samples, s.k}) * reshape(in[1], {s.samples, s.k}), {1}), out.shape);
  }

  static std::vector<Expr> grad(const Attrs& a, const Expr& z, const Expr& dz) {
    const Expr &x = z.input(0), &y = z.input(1);
    const int rows = x.ndim() - 1 - a.summed, columns = y.ndim() - 1 - a.summed;
    // dx sums over the columns, dy over the rows; the order of the operands decides which axes come first.
    const Expr dx = a.summed_first_x ? apply<BatchDot>({y, dz}, {columns, !a.summed_first_y, false})
                                     : apply<BatchDot>({dz, y}, {columns, false, !a.summed_first_y});
    const Expr dy = a.summed_first_y ? apply<BatchDot>({x, dz}, {rows, !a.summed_first_x, true})
                                     : apply<BatchDot>({dz, x}, {rows, true, !a.summed_first_x});
    return {dx, dy};
  }

 private:
  static constexpr std::int64_t kManySamples = 8;

  // For each sample, a product of m x k by k x n.
  struct Sizes {
    std::int64_t samples, m, n, k;
  };
  static Sizes sizes_of(const Attrs& a, const Shape& x, const Shape& y) {
    const int at = summed_at(a.summed_first_x, x, a.summed);
    const int x_free = free_at(a.summed_first_x, a.summed), y_free = free_at(a.summed_first_y, a.summed);
    return {x[0], x.product(x_free, x_free + x.ndim() - 1 - a.summed),
            y.product(y_free, y_free + y.ndim() - 1 - a.summed), x.product(at, at + a.summed)};
  }

  static bool agree(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || a == b; }
  // The first summed axis; the first other axis after the samples.
  static int summed_at(bool first, const Shape& shape, int summed) { return first ? 1 : shape.ndim() - summed; }
  static int free_at(bool first, int summed) { return first ? 1 + summed : 1; }
};

SYNCLINE_REGISTER_OP(BatchDot)

// Moves `axis` to the end unless it is the first or last axis after the samples.
Expr axis_at_border(const Expr& x, int axis) {
  if (axis == 1 || axis == x.ndim() - 1) return x;
  std::vector<int> pattern(static_cast<std::size_t>(x.ndim()));
  std::iota(pattern.begin(), pattern.end(), 0);
  pattern.erase(pattern.begin() + axis);
  pattern.push_back(axis);
  return permute_dimensions(x, std::move(pattern));
}

}  // namespace

Expr batch_dot(const Expr& x, const Expr& y, std::array<int, 2> axes) {
  if (x.ndim() < 2 || y.ndim() < 2)
    fail<ShapeError>("batch_dot: x ", x.shape(), " and y ", y.shape(), " need at least two axes, samples first");
  const int a = wrap_axis("batch_dot", axes[0], x.ndim()), b = wrap_axis("batch_dot", axes[1], y.ndim());
  if (a == 0 || b == 0)
    fail<ValueError>("batch_dot: axes ", axes[0], " and ", axes[1],
                     ": axis 0 holds the samples and cannot be summed; expand_dims(x, 0) adds an axis of samples");
  const Expr product =
      apply<BatchDot>({axis_at_border(x, a), axis_at_border(y, b)}, {1, a == 1 && x.ndim() > 2, b == 1});
  return product.ndim() == 1 ? expand_dims(product, 1) : product;
}
Expr batch_dot(const Expr& x, const Expr& y, int axes) { return batch_dot(x, y, {axes, axes}); }
Expr batch_dot(const Expr& x, const Expr& y) { return batch_dot(x, y, {-1, y.ndim() == 2 ? -1 : -2}); }

}  // namespace syncline
