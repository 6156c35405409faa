// Normalization by given statistics, by the batch's statistics, and by length, composed of other ops. Their placement
// rules determine the sums over ranks.
#include <limits>

#include "ops/reduce/axes.h"
#include "ops/reduce/moments.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// Reshapes a vector along `axis` of x so that it broadcasts to x; returns other tensors unchanged.
Expr along_axis(const Expr& v, const Expr& x, int axis) {
  if (!v || v.ndim() != 1 || axis == x.ndim() - 1) return v;
  Shape shape(std::vector<std::int64_t>(static_cast<std::size_t>(x.ndim()), 1));
  shape[axis] = v.shape()[0];
  return reshape(v, std::move(shape));
}

Expr scale_and_shift(const Expr& x, const Expr& gamma, const Expr& beta) {
  Expr y = gamma ? x * gamma : x;
  return beta ? y + beta : y;
}

// 1 / sqrt(var + epsilon), in the variance's small shape: this saves a division per element of x. NaN below 0, where
// sqrt gives 0.
Expr inverse_deviation(const Expr& var, double epsilon) {
  const Expr square = var + epsilon;
  return select(less(square, scalar_like(0, square)), scalar_like(std::numeric_limits<double>::quiet_NaN(), square),
                1.0 / sqrt(square));
}

}  // namespace

Expr l2_normalize(const Expr& x, Axes axes) {
  axis_mask("l2_normalize", axes.of(x.ndim()), x.ndim());
  const Expr length2 = sum(square(x), std::move(axes), /*keepdims=*/true);
  return x * (1.0 / sqrt(maximum(length2, scalar_like(1e-12, x))));
}

Expr batch_normalization(const Expr& x, const Expr& mean, const Expr& var, const Expr& beta, const Expr& gamma,
                         int axis, double epsilon) {
  axis = wrap_axis("batch_normalization", axis, x.ndim());
  // Multiply gamma by the factor, not by x: the factor is small.
  const Expr inverse = inverse_deviation(along_axis(var, x, axis), epsilon);
  const Expr factor = gamma ? inverse * along_axis(gamma, x, axis) : inverse;
  return scale_and_shift(x - along_axis(mean, x, axis), factor, along_axis(beta, x, axis));
}

NormalizedBatch normalize_batch_in_training(const Expr& x, const Expr& gamma, const Expr& beta, Axes reduction_axes,
                                            double epsilon) {
  constexpr std::string_view kName = "normalize_batch_in_training";
  if (reduction_axes.are_all() || reduction_axes.of(x.ndim()).empty())
    fail<ValueError>(kName, ": no reduction_axes are given for x of shape ", x.shape(),
                     "; give the axes over which the statistics are computed");
  std::vector<bool> reduced(static_cast<std::size_t>(x.ndim()), false);
  for (const int axis : reduction_axes.of(x.ndim()))
    reduced[static_cast<std::size_t>(wrap_axis(kName, axis, x.ndim()))] = true;
  Dims kept, broadcastable;  // shapes of the statistics; of gamma and beta
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const bool stays = !reduced[static_cast<std::size_t>(axis)];
    broadcastable.append(stays ? dim(x, axis) : Dim(1));
    if (stays) kept.append(dim(x, axis));
  }
  const auto wide = [&](const Expr& v) { return v && v.ndim() < x.ndim() ? reshape(v, broadcastable) : v; };

  const auto [average, variance] = moments_of(x, reduction_axes);
  const Expr inverse = inverse_deviation(variance, epsilon), factor = gamma ? inverse * wide(gamma) : inverse;
  // (x - average) * factor + beta, the same for every constant c. With c = average, the shift's gradient gives that of
  // the average: it takes no other sum over x.
  const Expr c = stop_gradient(average), drift = (c - average) * factor;
  const Expr normalized = scale_and_shift(x - c, factor, beta ? wide(beta) + drift : drift);
  return {normalized, reshape(average, kept), reshape(variance, kept)};
}

}  // namespace syncline
