// gather(reference, indices), its gradient scatter_rows, and scatter_sub, which updates a table in place.
#include "ops/linalg/rows.h"

#include <array>
#include <cstring>
#include <numeric>

#include "base/convert.h"
#include "ops/graph/deferred.h"
#include "ops/graph/op.h"
#include "ops/kernels/copy/bytes.h"
#include "ops/kernels/parallel.h"
#include "ops/shape/checked_index.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

void check_indices(std::string_view op, DType dtype) {
  if (dtype != DType::kInt32 && dtype != DType::kInt64)
    fail<DTypeError>(op, ": indices are ", dtype, "; cast them to int32 or int64");
}

// `count` indices into a table of `rows` rows of `width` elements. The indices are in range.
template <class Index>
struct Rows {
  const Index* index;
  std::int64_t count, rows, width;
};

std::int64_t width_of(const Shape& table) { return table.product(1, table.ndim()); }

struct Gather : WithoutAttrs {
  static constexpr std::string_view kName = "gather";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    check_indices(kName, in[1].dtype);
    if (in[0].shape.ndim() < 1) fail<ShapeError>(kName, ": the reference is a scalar; it needs an axis of rows");
    Meta out{in[0].dtype, in[1].shape};
    for (int axis = 1; axis < in[0].shape.ndim(); ++axis) out.shape.push_back(in[0].shape[axis]);
    return out;
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement table = args.at[0], indices = args.at[1], whole = Placement::replicated();
    if (indices.is_split()) return {{whole, indices}, {indices}};
    if (table.is_partial()) return {{table, whole}, {table}};
    if (table.is_split() && table.axis > 0)
      return {{table, whole}, {Placement::split(table.axis - 1 + args.in[1].shape.ndim())}};
    return gathered(args);
  }
  static void run(const Attrs&, const KernelArgs& k) {
    const std::size_t bytes = static_cast<std::size_t>(width_of(k.in_shape(0))) * size_of(k.out_dtype());
    with_index(k.in_dtype(1), [&]<class Index>(Index) {
      const Rows<Index> r{k.input<Index>(1), k.in_shape(1).size(), k.in_shape(0)[0], width_of(k.in_shape(0))};
      kernels::parallel_for(r.count, 3 + 0.1 * static_cast<double>(bytes), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          std::memcpy(k.output<std::byte>() + static_cast<std::size_t>(i) * bytes,
                      k.input<std::byte>(0) + static_cast<std::size_t>(r.index[i]) * bytes, bytes);
      });
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

// y[index[i]] = f(y[index[i]], values[i]). Each thread owns a range of the table's rows and takes its indices in their
// order. `order`: memory for r.count numbers, where the indices are sorted by range.
template <class T, class Index, class F>
void for_rows(const Rows<Index>& r, const T* values, T* y, std::int64_t* order, F f) {
  const auto update = [&](std::int64_t i) {
    T* row = y + r.index[i] * r.width;
    const T* value = values + i * r.width;
    for (std::int64_t j = 0; j < r.width; ++j) row[j] = f(row[j], value[j]);
  };
  const double total = static_cast<double>(r.count) * (5 + 0.3 * static_cast<double>(r.width));
  const kernels::Chunks ranges =
      kernels::fixed_chunks(r.rows, total / static_cast<double>(std::max<std::int64_t>(1, r.rows)));
  if (ranges.count <= 1 || thread_count() == 1) {
    for (std::int64_t i = 0; i < r.count; ++i) update(i);
    return;
  }
  const auto range_of = [&](std::int64_t i) { return static_cast<std::size_t>(r.index[i] / ranges.size); };
  std::array<std::int64_t, kernels::kMaxChunks + 1> next{};  // of each range: the place of its next index in `order`
  for (std::int64_t i = 0; i < r.count; ++i) ++next[range_of(i) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::int64_t i = 0; i < r.count; ++i) order[next[range_of(i)]++] = i;
  kernels::parallel_chunks(ranges, [&](std::int64_t c, std::int64_t, std::int64_t) {
    const auto range = static_cast<std::size_t>(c);
    for (std::int64_t e = c == 0 ? 0 : next[range - 1]; e < next[range]; ++e) update(order[e]);
  });
}

// For scatter_rows and scatter_sub: values must have the shape (indices..., row...).
void check_rows(std::string_view op, const Meta& values, const Meta& indices, const Shape& row) {
  check_indices(op, indices.dtype);
  if (values.dtype == DType::kBool) fail<DTypeError>(op, ": values are bool; cast them to a number first");
  Shape wanted = indices.shape;
  for (const std::int64_t dim : row) wanted.push_back(dim);
  if (!accepts(wanted, values.shape) && !accepts(values.shape, wanted))
    fail<ShapeError>(op, ": values ", values.shape, " do not fit the indices ", indices.shape, " and rows of shape ",
                     row);
}

Shape row_of(const Shape& shape, int leading) {
  return Shape(std::vector<std::int64_t>(shape.begin() + std::min(leading, shape.ndim()), shape.end()));
}

// Adds values[i] to row indices[i] of a table of zeros. The table is dense; rewrite_rows avoids it where possible.
struct ScatterRows {
  static constexpr std::string_view kName = "scatter_rows";
  struct Attrs {
    std::int64_t num_rows = 0;
  };
  static constexpr auto fields = std::tuple{field("num_rows", &Attrs::num_rows)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    Shape out{a.num_rows};
    const Shape row = row_of(in[0].shape, in[1].shape.ndim());
    check_rows(kName, in[0], in[1], row);
    for (const std::int64_t dim : row) out.push_back(dim);
    return {in[0].dtype, out};
  }
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta>) { return elements(in[0]); }
  // Gathers values and indices if they are fewer than the table's elements. Otherwise each rank sums its own.
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement indices = args.at[1];
    const bool more = args.in[0].shape.size() > args.out[0].shape.size();
    return indices.is_split() && more ? Placed{{indices, indices}, {Placement::partial()}} : gathered(args);
  }
  static std::size_t scratch(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return static_cast<std::size_t>(in[1].shape.size()) * sizeof(std::int64_t);
  }
  static void run(const Attrs&, const KernelArgs& k) {
    kernels::clear_output(k);
    with_index(k.in_dtype(1), [&]<class Index>(Index) {
      const Rows<Index> r{k.input<Index>(1), k.in_shape(1).size(), k.out_shape()[0], width_of(k.out_shape())};
      with_dtype(k.out_dtype(), [&]<class T>(T) {
        for_rows(r, k.input<T>(0), k.output<T>(), static_cast<std::int64_t*>(k.scratch),
                 [](T a, T b) { return static_cast<T>(wrapping(a) + wrapping(b)); });
      });
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {gather(dy, y.input(1)), Expr{}};
  }
};

// x with values[i] subtracted from row indices[i].
struct ScatterSub : WithoutAttrs {
  static constexpr std::string_view kName = "scatter_sub";
  static constexpr bool kInPlace = true;
  static Meta infer(const Attrs&, std::span<const Meta> in) {
    if (in[0].shape.ndim() < 1) fail<ShapeError>(kName, ": x is a scalar; it needs an axis of rows");
    if (in[0].dtype != in[1].dtype)
      fail<DTypeError>(kName, ": x is ", in[0].dtype, " and values are ", in[1].dtype, "; cast one of them");
    check_rows(kName, in[1], in[2], row_of(in[0].shape, 1));
    return in[0];
  }
  // In place, only the rows that the indices name.
  static double flops(const Attrs&, std::span<const Meta> in, std::span<const Meta>) { return elements(in[1]); }
  static double bytes(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return 3 * bytes_of(in[1]) + bytes_of(in[2]);
  }
  // If x is partial, each rank subtracts its own rows from its part of the sum.
  static Placed place(const Attrs&, const PlaceArgs& args) {
    const Placement table = args.at[0], values = args.at[1], indices = args.at[2];
    if (!table.is_partial()) return gathered(args);
    if (indices.is_split() && values == indices) return {{table, values, indices}, {table}};
    if (values.is_partial()) return {{table, values, Placement::replicated()}, {table}};
    return gathered(args);
  }
  static std::size_t scratch(const Attrs&, std::span<const Meta> in, std::span<const Meta>) {
    return static_cast<std::size_t>(in[2].shape.size()) * sizeof(std::int64_t);
  }
  static void run(const Attrs&, const KernelArgs& k) {
    kernels::copy_to_output(k.in[0], k);
    with_index(k.in_dtype(2), [&]<class Index>(Index) {
      const Rows<Index> r{k.input<Index>(2), k.in_shape(2).size(), k.out_shape()[0], width_of(k.out_shape())};
      with_dtype(k.out_dtype(), [&]<class T>(T) {
        for_rows(r, k.input<T>(1), k.output<T>(), static_cast<std::int64_t*>(k.scratch),
                 [](T a, T b) { return static_cast<T>(wrapping(a) - wrapping(b)); });
      });
    });
  }
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy) {
    return {dy, neg(gather(dy, y.input(2))), Expr{}};
  }
};

std::vector<Expr> Gather::grad(const Attrs&, const Expr& y, const Expr& dy) {
  const Expr &table = y.input(0), &indices = y.input(1);
  const std::int64_t rows = table.shape()[0];
  if (rows >= 0) return {apply<ScatterRows>({dy, indices}, {rows}), Expr{}};
  return {once_known_like("scatter_rows_like", {dy, indices}, {table}, dy.dtype(),
                          [](std::span<const Expr> in, std::span<const Shape> shapes) {
                            return apply<ScatterRows>({in[0], in[1]}, {shapes[0][0]});
                          }),
          Expr{}};
}

SYNCLINE_REGISTER_OP(Gather)
SYNCLINE_REGISTER_OP(ScatterRows)
SYNCLINE_REGISTER_OP(ScatterSub)

bool is_one_element(const Expr& e) { return e.shape().is_known() && e.shape().size() == 1; }

// ScatterRows `s` with other values.
Expr with_values(const Expr& s, const Expr& values) {
  return apply<ScatterRows>({values, s.input(1)}, s.attrs<ScatterRows::Attrs>());
}

Expr join_rows(const Expr& a, const Expr& b) {
  Shape row = row_of(a.shape(), 1);
  row.insert(0, -1);
  auto values = [&](const Expr& s) { return reshape(s.input(0), row); };
  auto indices = [](const Expr& s) { return cast(flatten(s.input(1)), DType::kInt64); };
  if (!row_of(a.shape(), 1).is_known() || row_of(a.shape(), 1).size() == 0) return {};
  return apply<ScatterRows>({concatenate({values(a), values(b)}, 0), concatenate({indices(a), indices(b)}, 0)},
                            a.attrs<ScatterRows::Attrs>());
}

}  // namespace

Expr rewrite_rows(std::string_view op, std::span<const Expr> in) {
  const bool left = in[0].is<ScatterRows>(), right = in.size() > 1 && in[1].is<ScatterRows>();
  if (op == "neg") return left ? with_values(in[0], neg(in[0].input(0))) : Expr{};
  if (!left && !right) return {};
  const bool same = in[0].meta() == in[1].meta();
  if (op == "add" && left && right) return same ? join_rows(in[0], in[1]) : Expr{};
  if (op == "add" && same) {
    const Expr &table = in[left ? 1 : 0], &rows = in[left ? 0 : 1];
    return apply<ScatterSub>({table, neg(rows.input(0)), rows.input(1)});
  }
  if (op == "sub" && right && same) return apply<ScatterSub>({in[0], in[1].input(0), in[1].input(1)});
  const Expr &rows = in[left ? 0 : 1], &factor = in[left ? 1 : 0];
  if (!is_one_element(factor) || factor.ndim() > rows.ndim()) return {};
  const Expr number = reshape(factor, Shape{});
  if (op == "mul") return with_values(rows, rows.input(0) * number);
  if (op == "div" && left) return with_values(rows, rows.input(0) / number);
  return {};
}

Expr gather(const Expr& reference, const Expr& indices) {
  const bool small = is_integer(indices.dtype()) && size_of(indices.dtype()) < 4;
  const Expr index = small ? cast(indices, DType::kInt32) : indices;
  Gather::infer({}, std::vector{reference.meta(), index.meta()});
  return apply<Gather>({reference, checked_index("gather", index, dim(reference, 0))});
}

Expr scatter_sub(const Expr& x, const Expr& values, const Expr& indices) {
  ScatterSub::infer({}, std::vector{x.meta(), values.meta(), indices.meta()});
  return apply<ScatterSub>({x, values, checked_index("scatter_sub", indices, dim(x, 0))});
}

}  // namespace syncline
