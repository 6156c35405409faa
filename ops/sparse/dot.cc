// The product of a sparse and a dense matrix, and two ops for its gradients. The three ops are closed under
// differentiation.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sparse/dot.cc"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include <hwy/highway.h>

#include "ops/kernels/fused/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace syncline {
namespace HWY_NAMESPACE {

// Columns [j, j + kVectors * lanes) of y = sum over e of values[e] * rows[index[e]], in the order of e.
template <int kVectors, class T>
HWY_INLINE HWY_ATTR void sum_block(const T* values, const std::int32_t* index, std::int64_t entries, const T* rows,
                                   std::int64_t width, std::int64_t j, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> total[kVectors];
  for (auto& t : total) t = hn::Zero(d);
  for (std::int64_t e = 0; e < entries; ++e) {
    const T* row = rows + index[e] * width + j;
    const auto value = hn::Set(d, values[e]);
    for (int v = 0; v < kVectors; ++v) total[v] = hn::MulAdd(value, hn::LoadU(d, row + v * lanes), total[v]);
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(total[v], d, y + j + v * lanes);
}

template <class T>
HWY_ATTR void sum_rows(const T* values, const std::int32_t* index, std::int64_t entries, const T* rows,
                       std::int64_t width, T* y) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  std::int64_t j = 0;
  for (; j + 4 * lanes <= width; j += 4 * lanes) sum_block<4>(values, index, entries, rows, width, j, y);
  for (; j + lanes <= width; j += lanes) sum_block<1>(values, index, entries, rows, width, j, y);
  for (; j < width; ++j) {
    T total = 0;
    for (std::int64_t e = 0; e < entries; ++e) total += values[e] * rows[index[e] * width + j];
    y[j] = total;
  }
}

template <class T>
HWY_ATTR T product_of(const T* a, const T* b, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto total = hn::Zero(d);
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes) total = hn::MulAdd(hn::LoadU(d, a + j), hn::LoadU(d, b + j), total);
  T result = hn::GetLane(hn::SumOfLanes(d, total));
  for (; j < n; ++j) result += a[j] * b[j];
  return result;
}

constexpr auto& sum_rows_f32 = sum_rows<float>;
constexpr auto& sum_rows_f64 = sum_rows<double>;
constexpr auto& product_of_f32 = product_of<float>;
constexpr auto& product_of_f64 = product_of<double>;

}  // namespace HWY_NAMESPACE
}  // namespace syncline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <limits>

#include "ops/kernels/parallel.h"
#include "ops/sparse/tensor.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {
HWY_EXPORT(sum_rows_f32);
HWY_EXPORT(sum_rows_f64);
HWY_EXPORT(product_of_f32);
HWY_EXPORT(product_of_f64);

void sum_rows(const float* values, const std::int32_t* index, std::int64_t entries, const float* rows,
              std::int64_t width, float* y) {
  HWY_DYNAMIC_DISPATCH(sum_rows_f32)(values, index, entries, rows, width, y);
}
void sum_rows(const double* values, const std::int32_t* index, std::int64_t entries, const double* rows,
              std::int64_t width, double* y) {
  HWY_DYNAMIC_DISPATCH(sum_rows_f64)(values, index, entries, rows, width, y);
}
float product_of(const float* a, const float* b, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(product_of_f32)(a, b, n);
}
double product_of(const double* a, const double* b, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(product_of_f64)(a, b, n);
}

constexpr int kDense = kAfterParts;

// `dense` must be a matrix whose number of rows equals the size of the sparse matrix along `axis`.
void check_operand(std::string_view op, std::span<const Meta> in, const Meta& dense, int axis) {
  if (in[0].dtype != dense.dtype)
    fail<DTypeError>(op, ": operands of ", in[0].dtype, " and ", dense.dtype, "; cast one of them");
  if (!is_floating(dense.dtype))
    fail<DTypeError>(op, ": operands are ", dense.dtype, "; cast them to a floating dtype first");
  const Shape x = sparse_shape(in);
  const bool fits = dense.shape.ndim() == 2 && (x[axis] < 0 || dense.shape[0] < 0 || x[axis] == dense.shape[0]);
  if (!fits)
    fail<ShapeError>(op, ": the sparse tensor ", x, " and the dense one ", dense.shape,
                     " do not fit; the dense one must be a matrix of as many rows as the sparse one has ",
                     axis == 1 ? "columns" : "rows");
}

// For ops that are linear in the first input and in the dense one: replicates the other parts of the sparse tensor.
Placed place_products(const PlaceArgs& args, int summed_axis) {
  const Placement whole = Placement::replicated(), partial = Placement::partial(), columns = Placement::split(1);
  const Placement first = args.at[0], dense = args.at[kDense];
  if (summed_axis == 1 && (first.is_split(1) || dense.is_split(1)))
    return {{columns, whole, whole, whole, columns}, {partial}};
  if (summed_axis == 0 && dense.is_split(1)) return {{whole, whole, whole, whole, columns}, {columns}};
  if (first.is_partial()) return {{partial, whole, whole, whole, whole}, {partial}};
  if (dense.is_partial()) return {{whole, whole, whole, whole, partial}, {partial}};
  return gathered(args);
}

// y (rows, n) = x (rows, columns) * w (columns, n).
struct SparseDot : WithoutAttrs {
  static constexpr std::string_view kName = "sparse_dot";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_sparse_parts(kName, in);
    check_operand(kName, in, in[kDense], 1);
    return {in[kDense].dtype, Shape{sparse_shape(in)[0], in[kDense].shape[1]}};
  }
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return 2 * elements(in[0]) * static_cast<double>(in[kDense].shape[1]);
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement rows = Placement::split(0), whole = Placement::replicated();
    if (args.at[kSpans].is_split(0)) return {{rows, rows, rows, whole, whole}, {rows}};
    return place_products(args, /*summed_axis=*/0);
  }
  static void run(const Attrs&, const KernelArgs& k) {
    const SparseRows x(k);
    const std::int64_t n = k.out_shape()[1];
    with_floating(k.out_dtype(), [&]<class T>(T) {
      kernels::parallel_for(x.rows, x.cost(2 + 0.1 * static_cast<double>(n)),
                            [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t i = begin; i < end; ++i)
                                sum_rows(k.input<T>(0) + x.begin(i), x.columns + x.begin(i), x.end(i) - x.begin(i),
                                         k.input<T>(kDense), n, k.output<T>() + i * n);
                            });
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

// y (columns, n) = the transpose of x (rows, columns) * a (rows, n): the gradient of a weight.
struct SparseDotTransposed : WithoutAttrs {
  static constexpr std::string_view kName = "sparse_dot_transposed";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_sparse_parts(kName, in);
    check_operand(kName, in, in[kDense], 0);
    if (in[kDense].shape[0] > std::numeric_limits<std::int32_t>::max())
      fail<ShapeError>(kName, ": the sparse tensor has ", in[kDense].shape[0], " rows; at most 2^31 - 1 are possible");
    return {in[kDense].dtype, Shape{sparse_shape(in)[1], in[kDense].shape[1]}};
  }
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return 2 * elements(in[0]) * static_cast<double>(in[kDense].shape[1]);
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement rows = Placement::split(0), whole = Placement::replicated();
    if (args.at[kSpans].is_split(0)) return {{rows, rows, rows, whole, rows}, {Placement::partial()}};
    return place_products(args, /*summed_axis=*/0);
  }
  // The entries sorted by columns: the begin of each column, and the value and row of each entry.
  template <class T>
  struct Columns {
    std::int64_t* begin;
    T* values;
    std::int32_t* rows;
    Columns(void* memory, std::int64_t columns, std::int64_t entries)
        : begin(static_cast<std::int64_t*>(memory)),
          values(reinterpret_cast<T*>(begin + columns + 1)),
          rows(reinterpret_cast<std::int32_t*>(values + entries)) {}
  };
  static std::size_t scratch(const Attrs&, std::span<const Meta> in, std::span<const Meta> out) {
    const auto columns = static_cast<std::size_t>(out[0].shape[0]), n = static_cast<std::size_t>(in[0].shape.size());
    return (columns + 1) * sizeof(std::int64_t) + n * (size_of(in[0].dtype) + sizeof(std::int32_t));
  }
  // A counting sort: each column's entries stay in the order of rows.
  template <class T>
  static void sort(const SparseRows& x, const T* values, const Columns<T>& sorted) {
    std::fill(sorted.begin, sorted.begin + x.width + 1, std::int64_t{0});
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t e = x.begin(i); e < x.end(i); ++e) ++sorted.begin[x.columns[e] + 1];
    for (std::int64_t c = 0; c < x.width; ++c) sorted.begin[c + 1] += sorted.begin[c];
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t e = x.begin(i); e < x.end(i); ++e) {
        const std::int64_t to = sorted.begin[x.columns[e]]++;
        sorted.values[to] = values[e];
        sorted.rows[to] = static_cast<std::int32_t>(i);
      }
    // begin[c] has advanced to the begin of column c + 1: move them back.
    for (std::int64_t c = x.width; c > 0; --c) sorted.begin[c] = sorted.begin[c - 1];
    sorted.begin[0] = 0;
  }
  static void run(const Attrs&, const KernelArgs& k) {
    const SparseRows x(k);
    const std::int64_t n = k.out_shape()[1];
    with_floating(k.out_dtype(), [&]<class T>(T) {
      const Columns<T> sorted(k.scratch, x.width, x.rows * x.slots);
      sort(x, k.input<T>(0), sorted);
      const double entries =
          static_cast<double>(x.rows * x.slots) / static_cast<double>(std::max<std::int64_t>(1, x.width));
      const double cost = 5 + 0.1 * static_cast<double>(n) + entries * (2 + 0.1 * static_cast<double>(n));
      kernels::parallel_for(x.width, cost, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t c = begin; c < end; ++c) {
          const std::int64_t at = sorted.begin[c];
          sum_rows(sorted.values + at, sorted.rows + at, sorted.begin[c + 1] - at, k.input<T>(kDense), n,
                   k.output<T>() + c * n);
        }
      });
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

// For each entry (i, j) of a sparse tensor: the product of row i of a (rows, n; the first input) and row j of b
// (columns, n). The gradient of the values.
struct SparseDotValues : WithoutAttrs {
  static constexpr std::string_view kName = "sparse_dot_values";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_sparse_parts(kName, in, /*first_is_values=*/false);
    check_operand(kName, in, in[0], 0);
    check_operand(kName, in, in[kDense], 1);
    if (in[0].shape[1] >= 0 && in[kDense].shape[1] >= 0 && in[0].shape[1] != in[kDense].shape[1])
      fail<ShapeError>(kName, ": rows of ", in[0].shape, " and ", in[kDense].shape, " differ in length");
    return {in[0].dtype, in[kColumns].shape};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement rows = Placement::split(0), whole = Placement::replicated();
    if (args.at[kSpans].is_split(0)) return {{rows, rows, rows, whole, whole}, {rows}};
    return place_products(args, /*summed_axis=*/1);
  }
  static void run(const Attrs&, const KernelArgs& k) {
    const SparseRows x(k);
    const std::int64_t n = k.in_shape(0)[1];
    with_floating(k.out_dtype(), [&]<class T>(T) {
      T* y = k.output<T>();
      std::fill(y, y + k.out_shape().size(), T{0});
      kernels::parallel_for(x.rows, x.cost(2 + 0.1 * static_cast<double>(n)),
                            [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t i = begin; i < end; ++i)
                                for (std::int64_t e = x.begin(i); e < x.end(i); ++e)
                                  y[e] = product_of(k.input<T>(0) + i * n, k.input<T>(kDense) + x.columns[e] * n, n);
                            });
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

// Op on the sparse parts of y, with `first` as the first input and `dense` as the dense one.
template <class Op>
Expr apply_like(const Expr& y, const Expr& first, const Expr& dense) {
  return apply<Op>({first, y.input(kColumns), y.input(kSpans), y.input(kExtent), dense});
}

std::vector<Expr> SparseDot::grad(const Attrs&, const Expr& y, const Expr& dy) {
  return {apply_like<SparseDotValues>(y, dy, y.input(kDense)),
          {},
          {},
          {},
          apply_like<SparseDotTransposed>(y, y.input(kValues), dy)};
}

std::vector<Expr> SparseDotTransposed::grad(const Attrs&, const Expr& y, const Expr& dy) {
  return {
      apply_like<SparseDotValues>(y, y.input(kDense), dy), {}, {}, {}, apply_like<SparseDot>(y, y.input(kValues), dy)};
}

std::vector<Expr> SparseDotValues::grad(const Attrs&, const Expr& y, const Expr& dy) {
  return {
      apply_like<SparseDot>(y, dy, y.input(kDense)), {}, {}, {}, apply_like<SparseDotTransposed>(y, dy, y.input(0))};
}

SYNCLINE_REGISTER_OP(SparseDot)
SYNCLINE_REGISTER_OP(SparseDotTransposed)
SYNCLINE_REGISTER_OP(SparseDotValues)

}  // namespace

Expr sparse_dot(const Expr& x, const Expr& y) {
  if (y.ndim() == 1) return squeeze(sparse_dot(x, expand_dims(y, 1)), 1);
  const SparseParts parts = sparse_parts(x);
  return apply<SparseDot>({parts.values, parts.columns, parts.spans, parts.extent, y});
}

}  // namespace syncline
#endif  // HWY_ONCE
