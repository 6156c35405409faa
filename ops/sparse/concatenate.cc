// concatenate of sparse tensors: axis 1 joins the entries of each row, axis 0 appends rows.
#include <algorithm>

#include "ops/kernels/copy/bytes.h"
#include "ops/sparse/tensor.h"
#include "syncline/backend/core.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

struct JoinAttrs {
  int axis = 0;  // 0 or 1
};

// For kernels: maps the rows of the tensors to rows of the result. The parts (values, columns, spans, extent) of each
// tensor are inputs `first` and following.
class JoinedRows {
 public:
  JoinedRows(const KernelArgs& k, int first, int axis) : k_(k), first_(first), axis_(axis) {
    for (int i = 0; i < tensors(); ++i) rows_ = axis == 0 ? rows_ + part(i).rows : part(i).rows;
  }
  int tensors() const { return (static_cast<int>(k_.in_meta.size()) - first_) / kAfterParts; }
  SparseRows part(int i) const { return SparseRows(k_, first_ + i * kAfterParts); }

  // Calls f(tensor, its row, the row of the result, the columns before it) in the order of the result's entries.
  template <class F>
  void for_spans(F f) const {
    if (axis_ == 0) {
      std::int64_t above = 0;
      for (int i = 0; i < tensors(); above += part(i++).rows)
        for (std::int64_t r = 0; r < part(i).rows; ++r) f(i, r, above + r, std::int64_t{0});
      return;
    }
    for (std::int64_t r = 0; r < rows_; ++r) {
      std::int64_t left = 0;
      for (int i = 0; i < tensors(); left += part(i++).width) f(i, r, r, left);
    }
  }

 private:
  const KernelArgs& k_;
  int first_, axis_;
  std::int64_t rows_ = 0;
};

// Slots per row of the result: all rows together hold the entries of all tensors.
std::int64_t joined_slots(std::span<const Meta> in, int axis) {
  std::int64_t slots = 0;
  for (std::size_t i = 0; i < in.size(); i += kAfterParts) {
    const std::int64_t own = in[i + kColumns].shape[1];
    if (own < 0) return kUnknown;
    slots = axis == 0 ? std::max(slots, own) : slots + own;
  }
  return slots;
}

Placed place_joined(const PlaceArgs& args, int first, int axis) {
  const Placement rows = Placement::split(0), whole = Placement::replicated();
  if (axis == 0 || !args.at[static_cast<std::size_t>(first + kSpans)].is_split(0)) return gathered(args);
  Placed placed{std::vector<Placement>(args.in.size(), rows), std::vector<Placement>(args.out.size(), rows)};
  for (std::size_t i = 0; i < args.in.size(); ++i) {
    const bool extent = static_cast<int>(i) >= first && (static_cast<int>(i) - first) % kAfterParts == kExtent;
    if (extent) placed.in[i] = whole;
    // Rows cut from a replicated tensor may have entries outside the slots of these rows.
    const bool spans = static_cast<int>(i) >= first && (static_cast<int>(i) - first) % kAfterParts == kSpans;
    if (spans && !args.at[i].is_split(0)) return gathered(args);
  }
  return placed;
}

// Values, columns and spans of the result, from (values, columns, spans, extent) of each tensor.
struct SparseConcatenate {
  static constexpr std::string_view kName = "sparse_concatenate";
  using Attrs = JoinAttrs;
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};
  static std::vector<Meta> infer(const Attrs& a, std::span<const Meta> in) {
    Shape shape = sparse_shape(in);
    const int other = 1 - a.axis;
    for (std::size_t i = 0; i < in.size(); i += kAfterParts) {
      const auto part = in.subspan(i, kAfterParts);
      check_sparse_parts(kName, part);
      if (part[kValues].dtype != in[kValues].dtype)
        fail<DTypeError>(kName, ": operands of ", in[kValues].dtype, " and ", part[kValues].dtype,
                         "; cast one of them");
      const Shape own = sparse_shape(part);
      if (own[other] >= 0 && shape[other] >= 0 && own[other] != shape[other])
        fail<ShapeError>(kName, ": shapes ", sparse_shape(in), " and ", own, " must agree on every axis but ", a.axis);
      if (shape[other] < 0) shape[other] = own[other];
      if (i > 0 && a.axis == 0) shape[0] = shape[0] < 0 || own[0] < 0 ? kUnknown : shape[0] + own[0];
    }
    const Shape slots{shape[0], joined_slots(in, a.axis)};
    return {{in[kValues].dtype, slots}, {DType::kInt32, slots}, {DType::kInt64, Shape{shape[0], 2}}};
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) { return place_joined(args, 0, a.axis); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const JoinedRows whole(k, 0, a.axis);
    const std::int64_t slots = k.out_shape(1)[1];
    auto* columns = k.output<std::int32_t>(1);
    auto* spans = k.output<std::int64_t>(2);
    for (int i = 0; i < 3; ++i) kernels::clear_output(k, i);
    with_dtype(k.out_dtype(), [&]<class T>(T) {
      std::int64_t to = 0;
      whole.for_spans([&](int i, std::int64_t from, std::int64_t row, std::int64_t left) {
        const SparseRows part = whole.part(i);
        const T* values = k.input<T>(i * kAfterParts + kValues);
        const std::int64_t entries = part.end(from) - part.begin(from);
        if (spans[2 * row + 1] == 0) spans[2 * row] = to - row * slots;
        spans[2 * row + 1] += entries;
        for (std::int64_t e = part.begin(from); e < part.end(from); ++e, ++to) {
          k.output<T>()[to] = values[e];
          columns[to] = static_cast<std::int32_t>(part.columns[e] + left);
        }
      });
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, std::span<const Expr> dy);
};

// One tensor's part of the result's values. Inputs: values in the layout of the result, then the parts of all tensors.
struct SparseJoinedPart {
  static constexpr std::string_view kName = "sparse_joined_part";
  struct Attrs {
    int axis = 0;
    int index = 0;
  };
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis), field("index", &Attrs::index)};
  static std::size_t first_of(const Attrs& a) { return 1 + static_cast<std::size_t>(a.index) * kAfterParts; }
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    return {in[0].dtype, in[first_of(a) + kColumns].shape};
  }
  static Placed place(const Attrs& a, const PlaceArgs& args) { return place_joined(args, 1, a.axis); }
  static void run(const Attrs& a, const KernelArgs& k) {
    const JoinedRows whole(k, 1, a.axis);
    kernels::clear_output(k);
    with_dtype(k.out_dtype(), [&]<class T>(T) {
      std::int64_t from = 0;
      whole.for_spans([&](int i, std::int64_t row, std::int64_t, std::int64_t) {
        const SparseRows part = whole.part(i);
        const std::int64_t entries = part.end(row) - part.begin(row);
        if (i == a.index) std::copy_n(k.input<T>(0) + from, entries, k.output<T>() + part.begin(row));
        from += entries;
      });
    });
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy);
};

std::vector<Expr> SparseConcatenate::grad(const Attrs& a, const Expr& y, std::span<const Expr> dy) {
  std::vector<Expr> dx(y.node().inputs.size());
  if (!dy[0]) return dx;
  std::vector<Expr> inputs{dy[0]};
  inputs.insert(inputs.end(), y.node().inputs.begin(), y.node().inputs.end());
  for (std::size_t i = 0; i < dx.size(); i += kAfterParts)
    dx[i] = apply<SparseJoinedPart>(inputs, {a.axis, static_cast<int>(i) / kAfterParts});
  return dx;
}

std::vector<Expr> SparseJoinedPart::grad(const Attrs& a, const Expr& y, const Expr& dy) {
  // Zeros for the other tensors.
  std::vector<Expr> inputs(y.node().inputs.begin() + 1, y.node().inputs.end()), dx(inputs.size() + 1);
  for (std::size_t i = 0; i < inputs.size(); i += kAfterParts)
    inputs[i] = i + 1 == first_of(a) ? dy : zeros_like(inputs[i]);
  dx[0] = apply<SparseConcatenate>(inputs, {a.axis});
  return dx;
}

SYNCLINE_REGISTER_OP(SparseConcatenate)
SYNCLINE_REGISTER_OP(SparseJoinedPart)

}  // namespace

Expr sparse_concatenate(const std::vector<Expr>& tensors, int axis) {
  const int joined = wrap_axis("concatenate", axis, 2);
  if (tensors.size() == 1) return tensors[0];
  std::vector<Expr> inputs, extents;
  for (const Expr& tensor : tensors) {
    inputs.insert(inputs.end(), tensor.node().inputs.begin(), tensor.node().inputs.end());
    extents.push_back(tensor.input(kExtent));
  }
  const Expr whole = apply<SparseConcatenate>(inputs, {joined});
  const Expr extent = joined == 0 ? extents[0] : concatenate(extents, 1);
  return sparse_tensor({whole, Expr(whole.handle(), 1), Expr(whole.handle(), 2), extent});
}

}  // namespace syncline
