#include "ops/shape/checked_index.h"

#include <algorithm>
#include <atomic>

#include "ops/graph/deferred.h"
#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"

namespace syncline {
namespace {

// Position in the whole value of element i of this rank's part.
std::int64_t whole_position(const KernelArgs& k, std::int64_t i) {
  const Shape& part = k.in_shape(0);
  if (part.ndim() == 0) return i;
  const int axis = k.slice.axis;
  const std::int64_t inner = part.product(axis + 1, part.ndim()), along = i / inner % part[axis];
  const std::int64_t outer = i / inner / part[axis], size = std::max(part[axis], k.slice.size);
  return (outer * size + k.slice.begin + along) * inner + i % inner;
}

struct CheckedIndex {
  static constexpr std::string_view kName = "checked_index";
  static constexpr bool kInPlace = true;
  struct Attrs {
    std::string op;
    std::int64_t size = 0;
  };
  static constexpr auto fields = std::tuple{field("op", &Attrs::op), field("size", &Attrs::size)};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static bool may_throw(const Attrs&, std::span<const Meta>) { return true; }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    return args.at[0].is_split() ? Placed{{args.at[0]}, {args.at[0]}} : gathered(args);
  }
  // Drops a second check: a gradient may check the indices of its forward op again.
  static Expr simplify(const Attrs& a, std::span<const Expr> in, const Meta&) {
    return in[0].is<CheckedIndex>() && in[0].attrs<Attrs>().size <= a.size ? in[0] : Expr{};
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    with_index(k.in_dtype(0), [&]<class I>(I) {
      const I* index = k.input<I>(0);
      const std::int64_t count = k.in_shape(0).size();
      std::atomic<bool> outside = false;
      kernels::parallel_for(count, 2.0, [&](std::int64_t begin, std::int64_t end) {
        bool any = false;
        for (std::int64_t i = begin; i < end; ++i) any |= index[i] < 0 || index[i] >= a.size;
        if (any) outside = true;
        if (k.out[0] != k.in[0]) std::copy(index + begin, index + end, k.output<I>() + begin);
      });
      if (outside) {
        const I* first = std::find_if(index, index + count, [&](I at) { return at < 0 || at >= a.size; });
        fail<ValueError>(a.op, ": index ", *first, " at position ", whole_position(k, first - index),
                         " of the indices is outside [0, ", a.size, ")");
      }
    });
  }
  static constexpr NoGradient grad{"indices are integers"};
};

SYNCLINE_REGISTER_OP(CheckedIndex)

}  // namespace

Expr checked_index(std::string op, const Expr& indices, const Dim& size) {
  return with_numbers("indices of " + op, {indices}, {size}, indices.meta(),
                      [op](std::span<const Expr> operands, const Shape& numbers) {
                        return apply<CheckedIndex>({operands[0]}, {op, numbers[0]});
                      });
}

}  // namespace syncline
