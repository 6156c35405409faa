#include "runtime/graph/share_sums.h"

#include <algorithm>
#include <utility>

#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "ops/graph/substitute.h"
#include "ops/graph/value_map.h"
#include "ops/reduce/axes.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

constexpr int kMostSplits = 16;  // of an operand; a normalization needs about 6

bool is_op(const Expr& e, std::string_view name) { return e.op().name == name; }
bool is_sum(const Expr& e) { return is_op(e, "sum") && is_floating(e.dtype()); }
AxisMask mask_of(const Expr& sum) { return axis_mask("sum", sum.attrs<ReduceAttrs>().axes, sum.input(0).ndim()); }

// A term of a sum's operand: base * factors, where the factors have one element along the summed axes.
struct Term {
  Expr base;
  std::vector<Expr> factors;
  bool negative = false;
};

class SumSharer {
 public:
  std::vector<Expr> run(std::span<const Expr> roots) {
    for (const auto& node : nodes_under(roots))
      if (const Expr e(graph_.rebuild(node)); is_sum(e)) share(Expr(node), e);
    return graph_.now(roots);
  }

 private:
  void share(const Expr& old, const Expr& total) {
    const Expr other = other_form(total);
    if (!other) return sums_[total.input(0)].push_back(total);
    check_rewrite(total, other);
    graph_.set(old, other);
  }

  // Empty unless the operand is one term whose sum is known and terms that sum to 0.
  Expr other_form(const Expr& total) const {
    const AxisMask mask = mask_of(total);
    std::vector<Term> open{{total.input(0), {}, false}};
    Expr known, zero;
    for (int splits = 0; !open.empty();) {
      Term term = std::move(open.back());
      open.pop_back();
      if (is_centred(term.base, mask)) {
        // mean - mean: 0, or NaN where the sum is NaN
        const Expr none = scaled(reshape(term.base.input(1) - term.base.input(1), total.shape()), term, mask, total);
        zero = zero ? zero + none : none;
      } else if (const Expr sum = known_sum(term.base, mask, total.meta())) {
        if (known) return {};
        known = scaled(sum, term, mask, total);
      } else if (++splits > kMostSplits || !split(std::move(term), mask, open)) {
        return {};
      }
    }
    return known && zero ? known + zero : Expr{};
  }

  static Expr scaled(Expr sum, const Term& term, const AxisMask& mask, const Expr& total) {
    for (const Expr& factor : term.factors) sum = sum * reshape(factor, reduced(factor, mask, total));
    return term.negative ? neg(sum) : sum;
  }

  // Replaces a term by its parts; false if it has none.
  static bool split(Term term, const AxisMask& mask, std::vector<Term>& open) {
    const Expr base = term.base;
    if (is_op(base, "neg")) {
      open.push_back({base.input(0), std::move(term.factors), !term.negative});
      return true;
    }
    if (is_op(base, "mul"))
      for (const int i : {0, 1}) {
        const Expr &factor = base.input(i), &rest = base.input(1 - i);
        if (!is_constant_along(factor, mask) || rest.shape() != base.shape()) continue;
        term.base = rest;
        term.factors.push_back(factor);
        open.push_back(std::move(term));
        return true;
      }
    const bool difference = is_op(base, "sub");
    if (!difference && !is_op(base, "add")) return false;
    if (base.input(0).shape() != base.shape() || base.input(1).shape() != base.shape()) return false;
    open.push_back({base.input(0), term.factors, term.negative});
    open.push_back({base.input(1), term.factors, term.negative != difference});
    return true;
  }

  static bool is_constant_along(const Expr& e, const AxisMask& mask) {
    const int lead = mask.ndim - e.ndim();
    for (int axis = 0; axis < e.ndim(); ++axis)
      if (mask[axis + lead] && e.shape()[axis] != 1) return false;
    return lead >= 0;
  }

  // x - mean(x) over the summed axes.
  static bool is_centred(const Expr& e, const AxisMask& mask) {
    if (!is_op(e, "sub") || e.input(0).shape() != e.shape()) return false;
    const Expr &x = e.input(0), &mean = e.input(1);
    double count = 0;
    if (!is_op(mean, "div") || !scalar_value(mean.input(1), count)) return false;
    const Expr& total = mean.input(0);
    if (!is_sum(total) || !(total.input(0) == x) || !total.attrs<ReduceAttrs>().keepdims) return false;
    const AxisMask own = mask_of(total);
    return std::ranges::equal(own.span(), mask.span()) &&
           count * static_cast<double>(total.shape().size()) == static_cast<double>(x.shape().size());
  }

  // The shape of a factor beside the sum: the summed axes are gone, unless the sum keeps them.
  static Shape reduced(const Expr& factor, const AxisMask& mask, const Expr& total) {
    if (total.attrs<ReduceAttrs>().keepdims) return factor.shape();
    const int lead = mask.ndim - factor.ndim();
    Shape shape;
    for (int axis = 0; axis < factor.ndim(); ++axis)
      if (!mask[axis + lead]) shape.push_back(factor.shape()[axis]);
    return shape;
  }

  Expr known_sum(const Expr& base, const AxisMask& mask, const Meta& wanted) const {
    const auto* sums = sums_.find(base);
    if (sums == nullptr) return {};
    for (const Expr& sum : *sums)
      if (std::ranges::equal(mask_of(sum).span(), mask.span()))
        return sum.shape() == wanted.shape ? sum : reshape(sum, wanted.shape);
    return {};
  }

  Rewritten graph_;
  ValueMap<std::vector<Expr>> sums_;  // by operand
};

}  // namespace

std::vector<Expr> share_sums(std::span<const Expr> roots) { return SumSharer().run(roots); }

}  // namespace syncline
