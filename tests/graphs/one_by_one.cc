#include "tests/graphs/one_by_one.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <span>

#include "ops/graph/deferred.h"
#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "runtime/graph/evaluate.h"
#include "runtime/graph/half_precision.h"
#include "syncline/backend/function.h"
#include "syncline/session.h"
#include "tests/graphs/compare.h"
#include "tests/graphs/program.h"
#include "tests/graphs/reference.h"
#include "tests/graphs/ways.h"

namespace syncline::graphs {

bool adds_zero(const Expr& node) {
  double value = 1;
  const auto& in = node.node().inputs;
  return node.op().name == "add" &&
         std::any_of(in.begin(), in.end(), [&](const Expr& e) { return scalar_value(e, value) && value == 0; });
}

bool sums(const Expr& node) {
  static const std::set<std::string_view> kSums{"sum",
                                                "sums_of_moments",
                                                "prod",
                                                "cumsum",
                                                "cumprod",
                                                "dot",
                                                "dot_kernel_grad",
                                                "batch_dot",
                                                "average_pool",
                                                "average_pool_grad",
                                                "max_pool_grad",
                                                "softmax",
                                                "softmax_gradient",
                                                "categorical_crossentropy",
                                                "normalize_batch_in_training",
                                                "local_conv",
                                                "local_conv_grad_input",
                                                "local_conv_grad_kernel",
                                                "loop",
                                                "branch",
                                                "ctc_batch_cost",
                                                "ctc_batch_cost_grad",
                                                "sparse_dot",
                                                "sparse_dot_transposed",
                                                "sparse_dot_values",
                                                "to_dense",
                                                "scatter_rows",
                                                "scatter_sub",
                                                "scatter_along_axis",
                                                "deferred",
                                                "linear_scan",
                                                "ctc_greedy",
                                                "ctc_beam_search",
                                                "random_normal",
                                                "truncated_normal",
                                                "pow"};  // a plan squares by a product
  const std::string_view name = node.op().name;
  return kSums.contains(name) || name.find("conv") != std::string_view::npos ||
         name.find("broadcast_axis") != std::string_view::npos;
}

namespace {

// True for a gradient that a plan keeps as rows and indices (docs/graph.md, sparse gradients).
bool is_rows(const Expr& e) {
  const std::string_view op = is_deferred(e.node()) ? deferred_name(e.node()) : e.op().name;
  if (op == "scatter_rows" || op == "scatter_rows_like") return true;
  const std::vector<Expr>& in = e.node().inputs;
  if (op == "neg" || op == "div") return is_rows(in[0]);
  // The gradient of a side that is not taken is 0, and a plan omits it.
  const auto left_out = [](const Expr& side) {
    return side.op().name == "choose" || side.op().name == "fill" || deferred_name(side.node()) == "fill_like";
  };
  if (op == "add") return (is_rows(in[0]) || left_out(in[0])) && (is_rows(in[1]) || left_out(in[1]));
  return op == "mul" && (is_rows(in[0]) || is_rows(in[1]));
}

// True for a sum that a plan forms row by row.
bool adds_rows(const Expr& e) {
  const std::string_view op = e.op().name;
  return (op == "add" || op == "sub") && (is_rows(e.input(0)) || is_rows(e.input(1)));
}

// The ulp of the coarsest dtype in the body of a loop or branch.
double ulp_of_body(const Expr& node) {
  double ulp = 0;
  for (const auto& inner : nodes_under(body_of(node)))
    ulp = std::max({ulp, ulp_of(inner->outputs[0].dtype), ulp_of_body(Expr(inner))});
  return ulp;
}

// The largest finite magnitude of the elements of `a` or, with `inverse`, of their reciprocals.
double largest_of(const Array& a, bool inverse = false) {
  double largest = 0;
  if (!is_floating(a.dtype())) return largest;
  const Array wide = a.cast(DType::kFloat64);
  for (const double v : wide.values<double>())
    if (const double size = std::abs(inverse ? 1 / v : v); std::isfinite(size)) largest = std::max(largest, size);
  return largest;
}

// True if ranks may compute this op on partial sums: of all operands, or of operand `i` alone.
bool carries_parts(const Node& node, std::size_t i) {
  std::vector<Meta> metas;
  for (const Expr& in : node.inputs) metas.push_back({in.dtype(), in.shape()});
  const auto partial = [&](const std::vector<Placement>& at) {
    return node.op->place(node.attrs.get(), {metas, node.outputs, at, 1}).out[0].is_partial();
  };
  std::vector<Placement> one(metas.size());
  one[i] = Placement::partial();
  return partial(one) || partial(std::vector<Placement>(metas.size(), Placement::partial()));
}

struct Exponents {
  double least_normal, least, largest;  // of powers of two: the least normal and the least number, the first too large
};

Exponents exponents(DType dtype) {
  if (dtype == DType::kFloat16) return {-14, -24, 16};
  return dtype == DType::kFloat32 ? Exponents{-126, -149, 128} : Exponents{-1022, -1074, 1024};
}

bool is_finite(const Array& a) {
  if (!is_floating(a.dtype())) return true;
  const Array wide = a.cast(DType::kFloat64);
  return std::all_of(wide.values<double>().begin(), wide.values<double>().end(),
                     [](double v) { return std::isfinite(v); });
}

}  // namespace

void OneByOne::run(const std::vector<Expr>& roots) {
  for (const auto& node : nodes_under(roots)) compute(node);
}

void OneByOne::compute(const std::shared_ptr<const Node>& node) {
  const Expr first(node);
  if (values_.contains(first) || node->op->sparse) return;
  if (first.is<Placeholder>()) {  // not fed: the learning phase
    values_[first] = Array(first.dtype(), first.shape());
    return;
  }
  std::vector<Array> in;
  for (const Expr& input : node->inputs) in.push_back(values_.at(input));
  const bool bare = node->outputs.size() == 1 && random_op_of(*node) == nullptr && !computes_on_float16(*node) &&
                    (node->op->run != nullptr || node->op->block != nullptr || node->op->view || is_constant(first));
  if (noise_ > kNoiseOfResults && sums(first) && !body_of(first).empty()) move_by_rounding(in);
  std::vector<Array> out;
  if (node->op->effect) out = {in[0]};
  else out = bare ? kernel_alone(*node, in) : plan_alone(*node, in);
  for (std::size_t i = 0; i < out.size(); ++i) values_[Expr(node, static_cast<int>(i))] = out[i];
  if (noise_ == 0 && problem_.empty() && out.size() == 1) {
    const std::string wrong = check_elementwise(node->op->name, in, out[0]);
    if (!wrong.empty()) {
      problem_ = join_text("the op ", node->op->name, " of");
      for (const Array& a : in) problem_ += join_text(" ", a.dtype(), a.shape());
      problem_ += ": " + wrong;
    }
  }
  if (noise_ != 0) {
    terms_[first] = largest_terms(first, in);
    if (node->op->name == "prod" || node->op->name == "cumprod") reorder_factors(first, in[0]);
    if (sums(first) || adds_rows(first)) add_noise(first, in);
    else if (node->op->name == "add" || node->op->name == "sub") cancel(first);
  }
  const bool scales = node->op->name == "mul" || node->op->name == "div";
  for (std::size_t i = 0; noise_ != 0 && scales && i < in.size(); ++i)
    if (is_rows(node->inputs[i]) && in[1 - i].size() == 1) keep_zeros(in[i], values_[first]);
  finite_.push_back(is_finite(values_[first]));
}

std::vector<Array> OneByOne::kernel_alone(const Node& node, const std::vector<Array>& in) const {
  std::vector<Expr> inputs;
  for (const Array& a : in) inputs.push_back(constant_of(a));
  return {evaluate(Expr(make_node(*node.op, node.attrs, std::move(inputs))))};
}

// For ops that a plan rewrites, and for kernels that need a plan: several outputs, random numbers, float16 computed in
// float32.
std::vector<Array> OneByOne::plan_alone(const Node& node, const std::vector<Array>& in) const {
  std::vector<Expr> inputs, fed, outputs;
  std::vector<Array> feeds;
  for (const Array& a : in) {
    if (a.dtype() == DType::kBool && a.shape().ndim() == 0) {
      // A fed condition would be known to the plan, which would drop the other side and its errors.
      inputs.push_back(variable(a).expr());
      continue;
    }
    const bool size = is_integer(a.dtype()) && a.shape().ndim() <= 1 && a.size() <= 8;
    inputs.push_back(size ? constant_of(a) : placeholder({.shape = a.shape(), .dtype = a.dtype()}));
    if (size) continue;
    fed.push_back(inputs.back());
    feeds.push_back(a);
  }
  const auto alone = make_node(*node.op, node.attrs, std::move(inputs));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) outputs.emplace_back(alone, static_cast<int>(i));
  set_runs(outputs, random_step_);
  return Function(fed, outputs, {}, "alone")(feeds);
}

// A plan scales only used rows. Unused rows stay 0 even for an infinite factor, while a kernel's product is NaN.
void OneByOne::keep_zeros(const Array& rows, Array& product) const {
  if (rows.shape() != product.shape()) return;
  product = product.copy();
  const Array wide = rows.cast(DType::kFloat64);
  const std::size_t size = size_of(product.dtype());
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows.size()); ++i)
    if (wide.values<double>()[i] == 0) std::memset(product.raw() + i * size, 0, size);
}

// Terms may cancel in one process, while each rank has only some of the terms and rounds their sum.
double OneByOne::largest_terms(const Expr& e, const std::vector<Array>& in) const {
  const Node& node = e.node();
  double largest = 0, product = 1;
  const auto note = [&](double size) { largest = std::isfinite(size) ? std::max(largest, size) : largest; };
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto found = terms_.find(node.inputs[i]);
    if (!is_floating(in[i].dtype())) continue;
    const double own = std::max(largest_of(in[i]), found == terms_.end() ? 0 : found->second);
    product *= own;
    if (sums(e)) {
      note(own);
      note(product);
    } else if (node.op->name == "mul") {
      note(own * largest_of(in[1 - i]));
    } else if (carries_parts(node, i)) {
      note(own * (node.op->name == "div" ? largest_of(in[1], true) : 1));
    }
  }
  return largest;
}

// A difference that consists of rounding errors may be 0, or -0, in another order of summation, for example in a
// variance.
void OneByOne::cancel(const Expr& e) {
  Random random(noise_ * 1000003 + finite_.size() * 7);
  if (!is_floating(e.dtype()) || random.uniform() >= (adds_zero(e) ? 0.9 : 0.25)) return;
  const double most = 64 * ulp_of(e.dtype()) * terms_.at(e);
  Array wide = values_.at(e).cast(DType::kFloat64).copy();
  for (std::int64_t i = 0; i < wide.size(); ++i)
    if (double& v = wide.data<double>()[i]; std::abs(v) <= most) v = std::copysign(0.0, random.uniform() - 0.5);
  values_[e] = wide.cast(e.dtype());
}

namespace {

// True if sums of the terms of these operands may overflow both ways: all are finite, and some have another sign.
bool may_overflow_both_ways(const std::vector<Array>& in) {
  bool positive = false, negative = false;
  for (const Array& a : in) {
    if (!is_floating(a.dtype())) continue;
    const Array wide = a.cast(DType::kFloat64);
    for (const double v : wide.values<double>()) {
      if (!std::isfinite(v)) return false;
      positive = positive || v > 0;
      negative = negative || v < 0;
    }
  }
  return positive && negative;
}

// A sum in another order, with a rounding error of up to `most`. The sign of a zero or of an overflow may differ, and a
// sum that overflows both ways is NaN.
double reordered(double v, double most, bool both_ways, Random& random) {
  const double error = (2 * random.uniform() - 1) * most, choice = random.uniform();
  if (std::isfinite(v)) {
    const bool cancels = std::abs(v) <= most && (most == 0 || choice < 0.25);  // terms may cancel exactly
    return cancels ? std::copysign(0.0, error) : v + error;
  }
  if (!both_ways) return v;
  return choice < 0.2 ? std::numeric_limits<double>::quiet_NaN() : std::copysign(HUGE_VAL, error);
}

}  // namespace

void OneByOne::add_noise(const Expr& node, const std::vector<Array>& in) {
  const double scale = terms_.at(node);
  std::int64_t terms = 1;
  for (const Array& a : in)
    if (is_floating(a.dtype())) terms = std::max(terms, a.size());
  const double body_ulp = ulp_of_body(node);
  const bool both_ways = node.op().name != "pow" && may_overflow_both_ways(in);
  for (int k = 0; k < static_cast<int>(node.node().outputs.size()); ++k) {
    Array& value = values_[Expr(node.handle(), k)];
    if (!is_floating(value.dtype())) continue;
    const double ulp = std::max(ulp_of(value.dtype()), body_ulp);
    Random random(noise_ * 1000003 + finite_.size() * 7 + static_cast<std::uint64_t>(k));
    const double size = ulp * std::sqrt(static_cast<double>(terms));
    Array wide = value.cast(DType::kFloat64).copy();
    for (double& v : std::span(wide.data<double>(), static_cast<std::size_t>(wide.size())))
      v = reordered(v, size * (std::abs(v) + scale), both_ways, random);
    value = wide.cast(value.dtype());
  }
}

void OneByOne::move_by_rounding(std::vector<Array>& in) const {
  Random random(noise_ * 1000003 + finite_.size() * 7);
  for (Array& a : in) {
    if (!is_floating(a.dtype())) continue;
    Array wide = a.cast(DType::kFloat64).copy();
    for (double& v : std::span(wide.data<double>(), static_cast<std::size_t>(wide.size())))
      v *= 1 + (2 * random.uniform() - 1) * ulp_of(a.dtype());
    a = wide.cast(a.dtype());
  }
}

void OneByOne::reorder_factors(const Expr& product, const Array& factors) {
  if (!is_floating(product.dtype())) return;
  // The sum over each element's factors, of what `of` makes of a magnitude.
  const auto total = [&](const auto& of) {
    Array terms = factors.cast(DType::kFloat64).copy();
    for (double& v : std::span(terms.data<double>(), static_cast<std::size_t>(terms.size()))) v = of(std::abs(v));
    const OpDef& sum = *find_op(product.op().name == "prod" ? "sum" : "cumsum");
    return evaluate(Expr(make_node(sum, product.node().attrs, {constant_of(terms)})));
  };
  const auto is_plain = [](double size) { return size > 0 && std::isfinite(size); };
  const Array ups = total([&](double size) { return is_plain(size) ? std::max(std::log2(size), 0.0) : 0; });
  const Array downs = total([&](double size) { return is_plain(size) ? std::min(std::log2(size), 0.0) : 0; });
  const Array zeros = total([](double size) { return size == 0 ? 1 : 0; });
  const Array infinite = total([](double size) { return std::isinf(size) ? 1 : 0; });
  const Array nans = total([](double size) { return std::isnan(size) ? 1 : 0; });
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto [least_normal, least, largest] = exponents(product.dtype());
  Random random(noise_ * 1000003 + finite_.size() * 7);
  Array wide = values_.at(product).cast(DType::kFloat64).copy();
  for (std::int64_t i = 0; i < wide.size(); ++i) {
    double& v = wide.data<double>()[i];
    const double up = ups.data<double>()[i], down = downs.data<double>()[i];
    const bool zero = zeros.data<double>()[i] > 0, inf = infinite.data<double>()[i] > 0;
    if (nans.data<double>()[i] > 0 || (zero && inf)) continue;  // NaN in every order
    // Some order overflows or underflows on the way; one that always does so at the end has one result.
    const bool over = up >= largest - 1 && (zero || up + down < largest + 1);
    const bool under = down <= least_normal + 1 && (inf || up + down > least - 1);
    std::vector<double> results;
    if (zero) results = over ? std::vector{0, kNaN} : results;
    else if (inf) results = under ? std::vector{kInfinity, kNaN} : results;
    else if (over && under) results = {v, kInfinity, 0, kNaN};
    else if (over) results = {v, kInfinity};
    else if (under) results = {v, 0};
    if (results.empty()) continue;
    v = std::copysign(results[static_cast<std::size_t>(random.uniform() * static_cast<double>(results.size()))], v);
  }
  values_[product] = wide.cast(product.dtype());
}

}  // namespace syncline::graphs
