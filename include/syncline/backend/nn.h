// Activations, losses and normalization of the Keras backend, with Keras's names and defaults. Convolution is in
// syncline/backend/convolution.h.
//
// Tensors are floating where nothing else is said. All functions throw ShapeError, DTypeError and ValueError while the
// graph is built, or when shapes that were unknown then do not fit once they are fed. `epsilon` is Keras's fuzz factor.
#pragma once

#include <optional>
#include <vector>

#include "syncline/axes.h"
#include "syncline/config.h"
#include "syncline/expr.h"

namespace syncline {

// Activations: results have the shape and dtype of x.

struct ReluOptions {
  double alpha = 0;  // slope below the threshold
  std::optional<double> max_value{};
  double threshold = 0;
};
// max_value for x >= max_value, x for threshold < x < max_value, alpha * (x - threshold) otherwise. Any number.
Expr relu(const Expr& x, const ReluOptions& options = {});
Expr elu(const Expr& x, double alpha = 1);  // x for x > 0, alpha * (exp(x) - 1) otherwise
// The same with parameters that a step computes, which broadcast; empty ones are absent.
struct ReluTensors {
  Expr alpha{}, max_value{}, threshold{};
};
Expr relu(const Expr& x, const ReluTensors& tensors);
Expr elu(const Expr& x, const Expr& alpha);
Expr sigmoid(const Expr& x);
Expr hard_sigmoid(const Expr& x);  // 0.2 * x + 0.5, clipped to [0, 1]
Expr tanh(const Expr& x);
Expr softplus(const Expr& x);  // log(1 + exp(x))
Expr softsign(const Expr& x);  // x / (1 + |x|)
// exp(x) / sum(exp(x)) along `axis`, safe for large x.
Expr softmax(const Expr& x, int axis = -1);

// Losses, one value a sample: the shape of output without `axis` (binary: the shape of output).

struct CrossentropyOptions {
  bool from_logits = false;                   // otherwise `output` holds probabilities, made to sum to 1 along the axis
  int axis = -1;                              // of the classes
  double epsilon = current_config().epsilon;  // probabilities are kept in [epsilon, 1 - epsilon]
};
// target: probabilities, of output's shape and dtype.
Expr categorical_crossentropy(const Expr& target, const Expr& output, const CrossentropyOptions& options = {});
// target: class numbers of any dtype, of output's shape without `axis` or with 1 there. A class number outside
// the range throws ValueError when the step runs.
Expr sparse_categorical_crossentropy(const Expr& target, const Expr& output, const CrossentropyOptions& options = {});
struct BinaryCrossentropyOptions {
  bool from_logits = false;
  double epsilon = current_config().epsilon;
};
Expr binary_crossentropy(const Expr& target, const Expr& output, const BinaryCrossentropyOptions& options = {});

// x[..., index[...], ...]: one element of each lane along `axis`. x of any dtype; index: int32 or int64, of x's shape
// without `axis` or with 1 there. The result has x's shape without `axis`. An index outside the lane throws ValueError
// when the step runs.
Expr pick(const Expr& x, const Expr& index, int axis = -1);

// bool (batch): is predictions[i, targets[i]] among the k largest of predictions[i, :]? Ties count as among them; a
// target that is no class, and a row with a value that is not finite, as not. predictions: (batch, classes); targets:
// (batch), int32 or int64.
Expr in_top_k(const Expr& predictions, const Expr& targets, int k);

// Normalization.

// x / sqrt(max(sum(x^2), 1e-12)), the sum over `axes`; empty: over all.
Expr l2_normalize(const Expr& x, Axes axes = {});

// (x - mean) / sqrt(var + epsilon) * gamma + beta. The four are vectors along `axis`, or broadcast to x as they are;
// beta and gamma may be empty.
Expr batch_normalization(const Expr& x, const Expr& mean, const Expr& var, const Expr& beta, const Expr& gamma,
                         int axis = -1, double epsilon = 1e-3);

struct NormalizedBatch {
  Expr normalized;  // of x's shape
  Expr mean;        // of x's shape without the reduction axes, as is variance
  Expr variance;    // of the values themselves, mean((x - mean)^2)
};
// Statistics are those of the whole batch, on however many ranks it lies. gamma and beta may be empty.
NormalizedBatch normalize_batch_in_training(const Expr& x, const Expr& gamma, const Expr& beta, Axes reduction_axes,
                                            double epsilon = 1e-3);

}  // namespace syncline
