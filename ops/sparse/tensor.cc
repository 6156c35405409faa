// SparseTensor, to_dense, and sparse_gather, the gradient of to_dense.
#include "ops/sparse/tensor.h"

#include <algorithm>

#include "ops/kernels/copy/bytes.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/math.h"
#include "syncline/backend/sparse.h"

namespace syncline {
namespace {

// The spans decide: they are split if the feed is split. The other operands have the same rows.
bool rows_are_split(const PlaceArgs& args) { return args.at[kSpans].is_split(0); }

struct SparseToDense : WithoutAttrs {
  static constexpr std::string_view kName = "to_dense";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_sparse_parts(kName, in);
    return {in[kValues].dtype, sparse_shape(in)};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement rows = Placement::split(0), whole = Placement::replicated();
    if (rows_are_split(args)) return {{rows, rows, rows, whole}, {rows}};
    if (args.at[kValues].is_partial()) return {{args.at[kValues], whole, whole, whole}, {Placement::partial()}};
    return gathered(args);
  }
  static void run(const Attrs&, const KernelArgs& k) {
    const SparseRows x(k);
    with_dtype(k.out_dtype(), [&]<class T>(T) {
      kernels::parallel_for(x.rows, x.cost(2) + 0.3 * static_cast<double>(x.width),
                            [&](std::int64_t begin, std::int64_t end) {
                              for (std::int64_t i = begin; i < end; ++i) {
                                T* row = k.output<T>() + i * x.width;
                                std::fill(row, row + x.width, T{});
                                for (std::int64_t e = x.begin(i); e < x.end(i); ++e)
                                  add_to(row[x.columns[e]], k.input<T>(0)[e]);
                              }
                            });
    });
  }
  template <class T>
  static void add_to(T& sum, T value) {
    if constexpr (std::is_same_v<T, bool>) sum = sum || value;
    else sum = static_cast<T>(sum + value);
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

// The elements of a dense matrix (the first input) at the entries of a sparse tensor; zero in unused slots.
struct SparseGather : WithoutAttrs {
  static constexpr std::string_view kName = "sparse_gather";
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_sparse_parts(kName, in, /*first_is_values=*/false);
    const Shape matrix = sparse_shape(in);
    if (!accepts(matrix, in[0].shape) && !accepts(in[0].shape, matrix))
      fail<ShapeError>(kName, ": x ", in[0].shape, " and a sparse tensor of shape ", matrix, " must agree");
    return {in[0].dtype, in[kColumns].shape};
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement rows = Placement::split(0), whole = Placement::replicated();
    if (rows_are_split(args)) return {{rows, rows, rows, whole}, {rows}};
    if (args.at[0].is_partial()) return {{args.at[0], whole, whole, whole}, {Placement::partial()}};
    return gathered(args);
  }
  static void run(const Attrs&, const KernelArgs& k) {
    const SparseRows x(k);
    kernels::clear_output(k);
    with_dtype(k.out_dtype(), [&]<class T>(T) {
      kernels::parallel_for(x.rows, x.cost(2), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          for (std::int64_t e = x.begin(i); e < x.end(i); ++e)
            k.output<T>()[e] = k.input<T>(0)[i * x.width + x.columns[e]];
      });
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {apply<SparseToDense>({dy, y.input(kColumns), y.input(kSpans), y.input(kExtent)}), {}, {}, {}};
  }
};

std::vector<Expr> SparseToDense::grad(const Attrs&, const Expr& y, const Expr& dy) {
  return {apply<SparseGather>({dy, y.input(kColumns), y.input(kSpans), y.input(kExtent)}), {}, {}, {}};
}

SYNCLINE_REGISTER_OP(SparseTensor)
SYNCLINE_REGISTER_OP(SparseToDense)
SYNCLINE_REGISTER_OP(SparseGather)

}  // namespace

void check_sparse_parts(std::string_view op, std::span<const Meta> in, bool first_is_values) {
  const Meta &columns = in[kColumns], &spans = in[kSpans], &extent = in[kExtent];
  if (columns.dtype != DType::kInt32 || spans.dtype != DType::kInt64 || extent.dtype != DType::kBool)
    fail<DTypeError>(op, ": columns are ", columns.dtype, ", spans ", spans.dtype, " and the extent ", extent.dtype,
                     "; they must be int32, int64 and bool");
  bool fit = columns.shape.ndim() == 2 && spans.shape.ndim() == 2 && extent.shape.ndim() == 2;
  fit = fit && spans.shape[1] == 2 && !sizes_differ(columns.shape[0], spans.shape[0]);
  const Shape& values = in[kValues].shape;
  if (fit && first_is_values)
    fit =
        values.ndim() == 2 && !sizes_differ(values[0], columns.shape[0]) && !sizes_differ(values[1], columns.shape[1]);
  if (!fit)
    fail<ShapeError>(op, ": values ", values, ", columns ", columns.shape, ", spans ", spans.shape, " and an extent ",
                     extent.shape, " do not make a sparse tensor");
}

Shape sparse_shape(std::span<const Meta> in) { return Shape{in[kSpans].shape[0], in[kExtent].shape[1]}; }

Meta SparseTensor::infer(const Attrs&, std::span<const Meta> in) {
  check_sparse_parts(kName, in);
  return {in[kValues].dtype, sparse_shape(in)};
}

Expr sparse_tensor(const SparseParts& parts, std::string name) {
  return apply<SparseTensor>({parts.values, parts.columns, parts.spans, parts.extent}, {}, std::move(name));
}

SparseParts sparse_parts(const Expr& tensor) {
  return {tensor.input(kValues), tensor.input(kColumns), tensor.input(kSpans), tensor.input(kExtent)};
}

Expr with_sparse_values(const Expr& tensor, const Expr& values) {
  SparseParts parts = sparse_parts(tensor);
  parts.values = values;
  return sparse_tensor(parts);
}

bool is_sparse(const Expr& tensor) { return tensor.is<SparseTensor>(); }

Expr to_dense(const Expr& tensor) { return is_sparse(tensor) ? apply<SparseToDense>(tensor.node().inputs) : tensor; }

Expr sparse_values(const Expr& tensor) {
  if (!is_sparse(tensor))
    fail<ValueError>("sparse_values: the tensor '", tensor.name(), "' is dense; give a sparse tensor");
  return tensor.input(kValues);
}

}  // namespace syncline
