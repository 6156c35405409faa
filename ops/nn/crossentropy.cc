// The crossentropies, -sum(target * log(output)) and its variants, composed of other ops. As in TensorFlow, those of a
// softmax or a sigmoid are computed from its operand, because a probability next to 0 or 1 has no gradient left.
#include "ops/graph/op.h"
#include "ops/nn/softmax.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"

namespace syncline {
namespace {

void check_output(std::string_view op, const Expr& output) {
  if (!is_floating(output.dtype()))
    fail<DTypeError>(op, ": output is ", output.dtype(), "; cast it to a floating dtype first");
}

Expr bounded(const Expr& probability, double epsilon) { return clip(probability, epsilon, 1 - epsilon); }

// x - max(x): shifted logits have the same softmax, and their exponentials do not overflow.
Expr shifted(const Expr& logits, int axis) { return logits - stop_gradient(max(logits, {axis}, /*keepdims=*/true)); }

}  // namespace

Expr categorical_crossentropy(const Expr& target, const Expr& output, const CrossentropyOptions& options) {
  constexpr std::string_view kName = "categorical_crossentropy";
  check_output(kName, output);
  const int axis = wrap_axis(kName, options.axis, output.ndim());
  const int at = axis - output.ndim();  // from the end, because a target of more axes adds axes in front
  if (const Expr logits = options.from_logits ? output : logits_of_softmax(output, axis)) {
    const Expr x = shifted(logits, at);
    const Expr log_probability = x - log(sum(exp(x), {at}, /*keepdims=*/true));
    const Expr terms = target * log_probability;
    // A class that is masked by a logit of -inf has no term, as it has none beside a bounded probability.
    const Expr none = scalar_like(0, target);
    return neg(sum(options.from_logits ? terms : select(equal(target, none), scalar_like(0, terms), terms), {at}));
  }
  const Expr probability = output / sum(output, {at}, /*keepdims=*/true);
  return neg(sum(target * log(bounded(probability, options.epsilon)), {at}));
}

Expr sparse_categorical_crossentropy(const Expr& target, const Expr& output, const CrossentropyOptions& options) {
  constexpr std::string_view kName = "sparse_categorical_crossentropy";
  check_output(kName, output);
  const int axis = wrap_axis(kName, options.axis, output.ndim());
  const Expr index = cast(target, DType::kInt64);
  if (const Expr logits = options.from_logits ? output : logits_of_softmax(output, axis)) {
    const Expr x = shifted(logits, axis);
    return log(sum(exp(x), {axis})) - gather_along_axis(x, index, axis);
  }
  // Equal to Keras, which takes the logarithms of the bounded probabilities as logits, but without exp(log(...)).
  const Expr probability = bounded(output, options.epsilon);
  return log(sum(probability, {axis})) - log(gather_along_axis(probability, index, axis));
}

Expr binary_crossentropy(const Expr& target, const Expr& output, const BinaryCrossentropyOptions& options) {
  check_output("binary_crossentropy", output);
  const bool is_sigmoid = output.op().name == "sigmoid";
  if (options.from_logits || is_sigmoid) {
    // softplus(x) - x * target, without the difference of two nearly equal numbers.
    const Expr& x = options.from_logits ? output : output.input(0);
    const Expr zero = scalar_like(0, x), up = greater_equal(x, zero);
    return select(up, x, zero) - x * target + softplus(select(up, neg(x), x));
  }
  // Keras 2.3 adds epsilon a second time; its tests require the resulting values at 0 and 1.
  const Expr p = bounded(output, options.epsilon);
  return neg(target * log(p + options.epsilon) + (1.0 - target) * log(1.0 - p + options.epsilon));
}

}  // namespace syncline
