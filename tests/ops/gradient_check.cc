#include "tests/ops/gradient_check.h"

#include <cmath>

#include "ops/graph/leaf.h"
#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline::testing {
namespace {

struct Differentiated {
  std::vector<Expr> x, gradients;  // of the floating inputs; an absent gradient is zeros
  std::vector<std::size_t> inputs;
  Expr loss;
};

Differentiated differentiate(const Builder& build, const std::vector<Array>& at) {
  Differentiated d;
  d.x = placeholders_for(at);
  const Expr y = build(d.x);
  if (!is_floating(y.dtype())) return d;
  d.loss = weighted_sum(y, 7);
  std::vector<Expr> wrt;
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (!is_floating(at[i].dtype())) continue;
    d.inputs.push_back(i);
    wrt.push_back(d.x[i]);
  }
  d.gradients = gradients(d.loss, wrt);
  for (std::size_t k = 0; k < wrt.size(); ++k)
    if (!d.gradients[k]) d.gradients[k] = zeros_like(wrt[k]);
  return d;
}

}  // namespace

Expr weighted_sum(const Expr& y, std::uint64_t key) {
  if (!y.shape().is_known()) {
    const Expr numbers = arange(count(y, {}, DType::kInt32), y.dtype()) + static_cast<double>(key);
    return sum(y * reshape_like(1 + 0.5 * sin(numbers), y));
  }
  return sum(y * constant_of(random_array(y.dtype(), y.shape(), 0.5, 1.5, key)));
}

std::vector<Expr> placeholders_for(const std::vector<Array>& feeds) {
  std::vector<Expr> x;
  for (const Array& feed : feeds) x.push_back(placeholder({.shape = feed.shape(), .dtype = feed.dtype()}));
  return x;
}

std::string compare_gradients(const Builder& build, const std::vector<Array>& at, double tolerance) {
  const Differentiated d = differentiate(build, at);
  if (!d.loss || d.inputs.empty()) return {};
  Function loss(d.x, {d.loss}), analytic(d.x, d.gradients);
  const std::vector<Array> gradients = analytic(at);
  std::vector<Array> feeds;
  for (const Array& a : at) feeds.push_back(a.copy());
  for (std::size_t k = 0; k < d.inputs.size(); ++k) {
    Array& x = feeds[d.inputs[k]];
    if (gradients[k].shape() != x.shape())
      return join_text("input ", d.inputs[k], " of shape ", x.shape(), " has a gradient of shape ",
                       gradients[k].shape());
    for (std::int64_t i = 0; i < x.size(); ++i) {
      double& element = x.data<double>()[i];
      const double before = element, step = 1e-5 * std::max(1.0, std::abs(before));
      element = before + step;
      const double above = loss(feeds)[0].item();
      element = before - step;
      const double below = loss(feeds)[0].item();
      element = before;
      const double wanted = (above - below) / (2 * step), got = gradients[k].cast(DType::kFloat64).data<double>()[i];
      if (!(std::abs(got - wanted) <= tolerance * std::max(1.0, std::abs(wanted))))
        return join_text("input ", d.inputs[k], ", element ", i, ": gradient ", got, ", central difference ", wanted);
    }
  }
  return {};
}

Builder gradient_of(const Builder& build) {
  return [build](const std::vector<Expr>& x) {
    const Expr y = build(x);
    std::vector<Expr> wrt;
    for (const Expr& e : x)
      if (is_floating(e.dtype())) wrt.push_back(e);
    Expr total = scalar(0, y.dtype());
    if (!is_floating(y.dtype())) return total;
    const std::vector<Expr> dx = gradients(weighted_sum(y, 7), wrt);
    for (std::size_t k = 0; k < dx.size(); ++k)
      if (dx[k]) total = total + weighted_sum(dx[k], 11 + k);
    return total;
  };
}

}  // namespace syncline::testing
