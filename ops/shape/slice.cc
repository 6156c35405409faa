// slice takes a range of each axis of a tensor, pad adds zeros around a tensor. Each is the other's gradient.
#include <algorithm>
#include <optional>

#include "ops/graph/deferred.h"
#include "ops/kernels/copy/bytes.h"
#include "ops/kernels/copy/strided_copy.h"
#include "ops/shape/join.h"
#include "ops/shape/pads.h"
#include "ops/shape/strides.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

using Numbers = std::vector<std::int64_t>;
using NumberSpan = std::span<const std::int64_t>;

std::string text_of(NumberSpan numbers) {
  std::ostringstream out;
  attrs::print_to(out, Numbers(numbers.begin(), numbers.end()));
  return out.str();
}

void check_lengths(std::string_view op, const Shape& x, NumberSpan a, NumberSpan b) {
  const auto ndim = static_cast<std::size_t>(x.ndim());
  if (a.size() != ndim || b.size() != ndim || x.ndim() > kMaxDims)
    fail<ShapeError>(op, ": x ", x, " needs ", ndim, " numbers in both lists, got ", text_of(a), " and ", text_of(b));
}

std::int64_t offset_of(const Numbers& start, const Strides& strides) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < start.size(); ++axis) offset += start[axis] * strides[axis];
  return offset;
}

// Axes of unchanged size keep a split.
Placed place_slice(const PlaceArgs& args) {
  std::vector<int> axis_out;
  for (int axis = 0; axis < args.in[0].shape.ndim(); ++axis)
    axis_out.push_back(args.in[0].shape[axis] == args.out[0].shape[axis] ? axis : -1);
  return place_by_axis(args, axis_out, /*linear=*/true);
}

// The elements [start, start + size) of x. A negative size omits the last -size - 1 elements: -1 reaches to the end.
struct SliceOp {
  static constexpr std::string_view kName = "slice";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    Numbers start, size;
  };
  static constexpr auto fields = std::tuple{field("start", &Attrs::start), field("size", &Attrs::size)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    const Shape& x = in[0].shape;
    check_lengths(kName, x, a.start, a.size);
    Meta out = in[0];
    for (int axis = 0; axis < x.ndim(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      const std::int64_t start = a.start[i];
      if (a.size[i] >= 0) out.shape[axis] = a.size[i];
      else if (x[axis] >= 0) out.shape[axis] = x[axis] - start + a.size[i] + 1;
      const std::int64_t size = out.shape[axis];
      if (start < 0 || (x[axis] >= 0 && (size < 0 || start > x[axis] - size)))
        fail<ShapeError>(kName, ": start ", text_of(a.start), " and size ", text_of(a.size), " reach outside x ", x,
                         " on axis ", axis);
    }
    return out;
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_slice(args); }
  static void run(const Attrs& a, const KernelArgs& k) {
    // Sizes come from the output, because a split axis is shorter on a rank. It starts at 0.
    const Strides in = strides_of(k.in_shape(0)), out = strides_of(k.out_shape());
    const int ndim = k.out_shape().ndim();
    const std::size_t size = size_of(k.out_dtype());
    kernels::strided_copy(k.out_shape().dims(), first(in, ndim), first(out, ndim), size,
                          k.input<std::byte>(0) + static_cast<std::size_t>(offset_of(a.start, in)) * size, k.out[0]);
  }
  static StridedView strided_view(const Attrs& a, const Meta& in) {
    const Strides strides = strides_of(in.shape);
    const auto used = first(strides, in.shape.ndim());
    return {offset_of(a.start, strides), {used.begin(), used.end()}};
  }
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta& out) {
    if (!out.shape.is_known() || !in[0].shape().is_known()) return {};
    if (in[0].shape() == out.shape) return in[0];
    const Expr part = joined_part(in[0], a.start, out.shape);
    return part ? part : sum_of_slices(a, in[0], out.shape);
  }
  static KnownElements known_elements(const Attrs& a, std::span<const Expr> in, std::span<const KnownElements> known) {
    if (in[0].ndim() != 1 || known[0].empty()) return {};
    const std::int64_t start = a.start[0], size = infer(a, std::vector<Meta>{in[0].meta()}).shape[0];
    return {known[0].begin() + start, known[0].begin() + start + size};
  }
  static Expr sum_of_slices(const Attrs& a, const Expr& x, const Shape& out);
  static std::vector<Expr> grad(const Attrs& a, const Expr& y, const Expr& dy);
};

struct Pad {
  static constexpr std::string_view kName = "pad";
  static constexpr bool kMovesData = true;
  static constexpr bool kTakesFloat16 = true;
  struct Attrs {
    Numbers before, after;
  };
  static constexpr auto fields = std::tuple{field("before", &Attrs::before), field("after", &Attrs::after)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    check_lengths(kName, in[0].shape, a.before, a.after);
    Meta out = in[0];
    for (int axis = 0; axis < out.shape.ndim(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      if (a.before[i] < 0 || a.after[i] < 0)
        fail<ValueError>(kName, ": paddings ", text_of(a.before), " and ", text_of(a.after), " must not be negative");
      out.shape[axis] = size_sum(kName, out.shape[axis], size_sum(kName, a.before[i], a.after[i]));
    }
    return out;
  }
  static Placed place(const Attrs&, const PlaceArgs& args) { return place_slice(args); }
  // Writes row by row along the last padded axis: the row's zeros, and its elements unless the row is padding itself.
  static void run(const Attrs& a, const KernelArgs& k) {
    const Shape &in = k.in_shape(0), &out = k.out_shape();
    int axis = out.ndim() - 1;
    while (axis > 0 && in[axis] == out[axis]) --axis;
    const auto size = static_cast<std::int64_t>(size_of(k.out_dtype()));
    if (axis < 0) return kernels::copy(k.in[0], k.out[0], size);
    const std::int64_t element = size * out.product(axis + 1, out.ndim()), row = out[axis] * element;
    const std::int64_t before = a.before[static_cast<std::size_t>(axis)] * element, copied = in[axis] * element;
    const double cost = 5 + kernels::kNanosecondsPerByte * static_cast<double>(row);
    kernels::parallel_for(out.product(0, axis), cost, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        std::byte* to = k.output<std::byte>() + r * row;
        const std::int64_t from = source_row(a, in, out, axis, r);
        if (from < 0) {
          kernels::clear(to, row);
          continue;
        }
        kernels::clear(to, before);
        kernels::copy(k.input<std::byte>(0) + from * copied, to + before, copied);
        kernels::clear(to + before + copied, row - before - copied);
      }
    });
  }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta& out) {
    return out.shape.is_known() && in[0].shape() == out.shape ? in[0] : Expr{};
  }
  static std::vector<Expr> grad(const Attrs& a, const Expr&, const Expr& dy) { return {trim(dy, a.before, a.after)}; }

 private:
  // The input's row, over the axes before `axis`, at row r of the output; -1 if that row is padding.
  static std::int64_t source_row(const Attrs& a, const Shape& in, const Shape& out, int axis, std::int64_t r) {
    std::int64_t row = 0, stride = 1;
    for (int i = axis - 1; i >= 0; --i) {
      const std::int64_t at = r % out[i] - a.before[static_cast<std::size_t>(i)];
      if (at < 0 || at >= in[i]) return -1;
      row += at * stride;
      stride *= in[i];
      r /= out[i];
    }
    return row;
  }
};

std::vector<Expr> SliceOp::grad(const Attrs& a, const Expr& y, const Expr& dy) {
  const Expr& x = y.input(0);
  // Number of elements after the slice on each axis; empty if that depends on an unknown size of x.
  const auto behind = [a](const Shape& whole) -> std::optional<Numbers> {
    Numbers after;
    for (int axis = 0; axis < whole.ndim(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      if (a.size[i] >= 0 && whole[axis] < 0) return {};
      after.push_back(a.size[i] < 0 ? -a.size[i] - 1 : whole[axis] - a.start[i] - a.size[i]);
    }
    return after;
  };
  if (const auto after = behind(x.shape())) return {pad(dy, a.start, *after)};
  return {once_known_like("pad_like", {dy}, {x}, dy.dtype(),
                          [a, behind](std::span<const Expr> in, std::span<const Shape> shapes) {
                            return pad(in[0], a.start, *behind(shapes[0]));
                          })};
}

// True if x adds at most `adds` times, and its terms lie in memory or are broadcast. Subtracts the additions from
// `adds`.
bool is_sum_of_kernels(const Expr& x, int& adds) {
  if (x.op().name != "add" || --adds < 0) return false;
  const auto& terms = x.node().inputs;
  return std::all_of(terms.begin(), terms.end(), [&](const Expr& term) {
    const bool is_kernel = term.op().block == nullptr && term.op().strided_view == nullptr;
    return is_kernel || term.shape() != x.shape() || is_sum_of_kernels(term, adds);
  });
}

// A slice of a sum as a sum of slices, which elementwise ops read in place: for the gates of a recurrent layer, which
// are slices of a product plus a bias. Returns empty for other sums. Slices of elementwise terms would force these
// terms into memory. The gradients of a chain of concatenations are slices of sums of slices: they would become one
// slice for each pair of layers.
Expr SliceOp::sum_of_slices(const Attrs& a, const Expr& x, const Shape& out) {
  int most_adds = 8;  // also limits the visits of terms that several sums share
  if (!is_sum_of_kernels(x, most_adds)) return {};
  std::vector<Expr> terms;
  for (const Expr& term : x.node().inputs) {
    const int lead = x.ndim() - term.ndim();
    Numbers start, size;
    for (int axis = lead; axis < x.ndim(); ++axis) {
      const bool whole = term.shape()[axis - lead] == 1 && x.shape()[axis] != 1;  // broadcast along the axis
      start.push_back(whole ? 0 : a.start[static_cast<std::size_t>(axis)]);
      size.push_back(whole ? 1 : out[axis]);
    }
    terms.push_back(term.ndim() == 0 ? term : apply<SliceOp>({term}, {std::move(start), std::move(size)}));
  }
  return terms[0] + terms[1];
}

SYNCLINE_REGISTER_OP(SliceOp)
SYNCLINE_REGISTER_OP(Pad)

// The axis that a pad pads; -1 if there is not exactly one.
int padded_axis(const Pad::Attrs& a) {
  int found = -1;
  for (std::size_t axis = 0; axis < a.before.size(); ++axis) {
    if (a.before[axis] == 0 && a.after[axis] == 0) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(axis);
  }
  return found;
}

// The terms of a sum, if all are pads to its shape and can lie side by side along an axis; otherwise nothing.
std::vector<Expr> pads_of(std::span<const Expr> sum) {
  const Shape& shape = sum[0].shape();
  std::int64_t most = 0;
  for (const std::int64_t size : shape) most = std::max(most, size);
  std::vector<Expr> pads, sums;
  const auto take = [&](const std::vector<Expr>& terms) {
    for (const Expr& e : terms) {
      if (e.shape() != shape || !(e.is<Pad>() || e.op().name == "add")) return false;
      (e.is<Pad>() ? pads : sums).push_back(e);
    }
    return std::ssize(pads) + std::ssize(sums) <= most;
  };
  bool fits = take({sum.begin(), sum.end()});
  while (fits && !sums.empty()) {
    const Expr e = sums.back();
    sums.pop_back();
    fits = take(e.node().inputs);
  }
  return fits ? pads : std::vector<Expr>{};
}

}  // namespace

Expr joined_pads(std::span<const Expr> in) {
  const Shape& shape = in[0].shape();
  if (!shape.is_known()) return {};
  std::vector<Expr> pads = pads_of(in), parts;
  if (pads.empty()) return {};
  const int axis = padded_axis(pads[0].attrs<Pad::Attrs>());
  if (axis < 0) return {};
  auto begin = [&](const Expr& e) { return e.attrs<Pad::Attrs>().before[static_cast<std::size_t>(axis)]; };
  std::sort(pads.begin(), pads.end(), [&](const Expr& a, const Expr& b) { return begin(a) < begin(b); });
  std::int64_t end = 0;
  for (const Expr& e : pads) {
    if (padded_axis(e.attrs<Pad::Attrs>()) != axis || begin(e) != end) return {};
    parts.push_back(e.input(0));
    end += parts.back().shape()[axis];
  }
  return end == shape[axis] ? concatenate(std::move(parts), axis) : Expr{};
}

Expr slice(const Expr& x, const Dims& start, const Dims& size) {
  check_lengths("slice", x.shape(), start.numbers().dims(), size.numbers().dims());
  Meta unknown{x.dtype(), size.numbers()};
  for (int axis = 0; axis < x.ndim(); ++axis)  // -1 reaches to the end
    if (unknown.shape[axis] < 0 && !size.is_tensor(axis) && !start.is_tensor(axis) && x.shape()[axis] >= 0)
      unknown.shape[axis] = x.shape()[axis] - start.numbers()[axis];
  Dims both = start;
  both.append(size);
  return with_numbers("slice", {x}, both, unknown, [](std::span<const Expr> operands, const Shape& numbers) {
    const auto middle = numbers.begin() + operands[0].ndim();
    const Numbers from(numbers.begin(), middle), count(middle, numbers.end());
    for (const std::int64_t n : count)
      if (n < -1)
        fail<ValueError>("slice: size ", text_of(count), " contains ", n,
                         "; give numbers of elements, or -1 for all that remain");
    return apply<SliceOp>({operands[0]}, {from, count});
  });
}

Expr trim(const Expr& x, Numbers before, Numbers after) {
  for (std::int64_t& n : after) n = -n - 1;
  return apply<SliceOp>({x}, {std::move(before), std::move(after)});
}

Expr slice_axis(const Expr& x, int axis, std::int64_t start, std::int64_t size) {
  const auto at = static_cast<std::size_t>(wrap_axis("slice_axis", axis, x.ndim()));
  Numbers starts(static_cast<std::size_t>(x.ndim()), 0), sizes(static_cast<std::size_t>(x.ndim()), -1);
  starts[at] = start;
  sizes[at] = size;
  return slice(x, std::move(starts), std::move(sizes));
}

Expr pad(const Expr& x, Numbers before, Numbers after) {
  return apply<Pad>({x}, {std::move(before), std::move(after)});
}

bool is_pad(const Expr& e) { return e.is<Pad>(); }
std::span<const std::int64_t> zeros_before(const Expr& pad) { return pad.attrs<Pad::Attrs>().before; }
std::span<const std::int64_t> zeros_after(const Expr& pad) { return pad.attrs<Pad::Attrs>().after; }

}  // namespace syncline
