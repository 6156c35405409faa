// concatenate and stack.
#include "ops/shape/join.h"

#include <algorithm>

#include "ops/graph/deferred.h"
#include "ops/kernels/copy/strided_copy.h"
#include "ops/shape/strides.h"
#include "ops/sparse/tensor.h"
#include "syncline/backend/core.h"
#include "syncline/backend/shape.h"
#include "syncline/backend/sparse.h"

namespace syncline {
namespace {

// The meta of the concatenation of `in`.
Meta infer_joined(std::string_view op, int axis, std::span<const Meta> in) {
  if (in.empty()) fail<ValueError>(op, ": there are no tensors to join; give at least one");
  Meta out = in[0];
  const int joined = wrap_axis(op, axis, out.shape.ndim());
  if (out.shape.ndim() > kMaxDims) fail<ShapeError>(op, ": ", out.shape, " has more than ", kMaxDims, " dimensions");
  for (const Meta& m : in.subspan(1)) {
    if (m.dtype != out.dtype) fail<DTypeError>(op, ": operands of ", out.dtype, " and ", m.dtype, "; cast one of them");
    bool fits = m.shape.ndim() == out.shape.ndim();
    for (int i = 0; fits && i < out.shape.ndim(); ++i) {
      std::int64_t& dim = out.shape[i];
      if (i == joined) dim = size_sum(op, dim, m.shape[i]);
      else if (dim < 0) dim = m.shape[i];
      else fits = m.shape[i] < 0 || m.shape[i] == dim;
    }
    if (!fits) fail<ShapeError>(op, ": shapes ", in[0].shape, " and ", m.shape, " must agree on every axis but ", axis);
  }
  return out;
}

struct JoinAttrs {
  int axis = -1;
};

struct Concatenate {
  static constexpr std::string_view kName = "concatenate";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  using Attrs = JoinAttrs;
  static constexpr auto fields = std::tuple{field("axis", &Attrs::axis)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) { return infer_joined(kName, a.axis, in); }
  static Placed place(const Attrs& a, const PlaceArgs& args) {
    const int joined = wrap_axis(kName, a.axis, args.out[0].shape.ndim());
    if (std::all_of(args.at.begin(), args.at.end(), [](Placement p) { return p.is_partial(); }))
      return {{args.at.begin(), args.at.end()}, {Placement::partial()}};
    for (const Placement p : args.at)
      if (p.is_split() && p.axis != joined) return {std::vector<Placement>(args.in.size(), p), {p}};
    return gathered(args);
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const int ndim = k.out_shape().ndim(), joined = wrap_axis(kName, a.axis, ndim);
    const Strides out = strides_of(k.out_shape());
    const std::size_t size = size_of(k.out_dtype());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < k.in_meta.size(); ++i) {
      const Shape& shape = k.in_meta[i].shape;
      const Strides in = strides_of(shape);
      const auto offset = static_cast<std::size_t>(at * out[static_cast<std::size_t>(joined)]);
      kernels::strided_copy(shape.dims(), first(in, ndim), first(out, ndim), size, k.in[i],
                            k.output<std::byte>() + offset * size);
      at += shape[joined];
    }
  }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta&) { return in.size() == 1 ? in[0] : Expr{}; }
  static KnownElements known_elements(const Attrs&, std::span<const Expr> in, std::span<const KnownElements> known) {
    KnownElements joined;
    for (std::size_t i = 0; in[0].ndim() == 1 && i < in.size(); ++i) {
      joined.insert(joined.end(), known[i].begin(), known[i].end());
      if (known[i].empty()) joined.resize(joined.size() + static_cast<std::size_t>(in[i].shape()[0]));
    }
    return joined;
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy);
};

// dx of each operand is its part of dy.
std::vector<Expr> Concatenate::grad(const Attrs& a, const Expr& y, const Expr& dy) {
  const std::vector<Expr>& parts = y.node().inputs;
  const int axis = wrap_axis(kName, a.axis, y.ndim());
  std::vector<Expr> dx;
  std::int64_t start = 0;  // kUnknown after an operand of unknown size
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t size = parts[i].shape()[axis];
    if (start >= 0 && size >= 0) {
      dx.push_back(slice_axis(dy, axis, start, size));
      start += size;
      continue;
    }
    start = kUnknown;
    const std::vector<Expr> likes(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    dx.push_back(once_known_like("joined_part", {dy}, likes, dy.dtype(),
                                 [axis](std::span<const Expr> in, std::span<const Shape> shapes) {
                                   std::int64_t before = 0;
                                   for (const Shape& shape : shapes.first(shapes.size() - 1)) before += shape[axis];
                                   return slice_axis(in[0], axis, before, shapes.back()[axis]);
                                 }));
  }
  return dx;
}

SYNCLINE_REGISTER_OP(Concatenate)

}  // namespace

Expr joined_part(const Expr& joined, std::span<const std::int64_t> start, const Shape& size) {
  if (!joined.is<Concatenate>() || !joined.shape().is_known()) return {};
  const auto axis = static_cast<std::size_t>(wrap_axis("slice", joined.attrs<JoinAttrs>().axis, joined.ndim()));
  std::int64_t at = 0;
  for (const Expr& part : joined.node().inputs) {
    bool same = part.shape() == size;
    for (std::size_t i = 0; i < start.size(); ++i) same = same && start[i] == (i == axis ? at : 0);
    if (same) return part;
    at += part.shape()[static_cast<int>(axis)];
  }
  return {};
}

std::vector<StridedView> joined_views(const Expr& joined, std::span<const Meta> in) {
  if (!joined.is<Concatenate>()) return {};
  const int ndim = in[0].shape.ndim(), axis = wrap_axis(Concatenate::kName, joined.attrs<JoinAttrs>().axis, ndim);
  Shape whole = in[0].shape;
  for (const Meta& m : in.subspan(1)) whole[axis] += m.shape[axis];
  const Strides strides = strides_of(whole);
  const auto used = first(strides, ndim);
  std::vector<StridedView> views;
  std::int64_t at = 0;
  for (const Meta& m : in) {
    views.push_back({at * strides[static_cast<std::size_t>(axis)], {used.begin(), used.end()}});
    at += m.shape[axis];
  }
  return views;
}

Expr concatenate(std::vector<Expr> tensors, int axis) {
  if (!tensors.empty() && std::all_of(tensors.begin(), tensors.end(), is_sparse))
    return sparse_concatenate(tensors, axis);
  for (Expr& x : tensors) x = to_dense(x);
  return apply<Concatenate>(std::move(tensors), {axis});
}

Expr stack(const std::vector<Expr>& tensors, int axis) {
  std::vector<Expr> expanded;
  for (const Expr& x : tensors) expanded.push_back(expand_dims(x, axis));
  return concatenate(std::move(expanded), axis);
}

}  // namespace syncline
