// Activations, losses and normalization of the Keras backend, with Keras's names and defaults. Convolution is in
// syncline/backend/convolution.h.
//
// Tensors are floating unless stated otherwise. All functions throw ShapeError, DTypeError and ValueError while the
// graph is built, or at the first feeds whose shapes do not fit. `epsilon` is Keras's fuzz factor.
#pragma once

#include <optional>
#include <vector>

#include "syncline/axes.h"
#include "syncline/config.h"
#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

// Activations: results have the shape and dtype of x.

struct ReluOptions {
  double alpha = 0;  // slope below the threshold
  std::optional<double> max_value{};
  double threshold = 0;
};
// min(x, max_value) for x >= threshold, alpha * (x - threshold) below. Any numeric dtype.
Expr relu(const Expr& x, const ReluOptions& options = {});
Expr elu(const Expr& x, double alpha = 1);  // x for x > 0, alpha * (exp(x) - 1) otherwise
// Parameters that a step computes; they broadcast. An empty Expr means absent.
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
// exp(x) / sum(exp(x)) along `axis`, without overflow for large x.
Expr softmax(const Expr& x, int axis = -1);

// Losses, one value per sample: the shape of output without `axis` (binary: the shape of output).

struct CrossentropyOptions {
  bool from_logits = false;                   // false: `output` holds probabilities, normalized along the axis
  int axis = -1;                              // axis of the classes
  double epsilon = current_config().epsilon;  // probabilities are clipped to [epsilon, 1 - epsilon]
};
// target: probabilities, of output's shape and dtype.
Expr categorical_crossentropy(const Expr& target, const Expr& output, const CrossentropyOptions& options = {});
// target: class numbers of any dtype, in output's shape without `axis` or with 1 there. A step throws ValueError for a
// class number out of range.
Expr sparse_categorical_crossentropy(const Expr& target, const Expr& output, const CrossentropyOptions& options = {});
struct BinaryCrossentropyOptions {
  bool from_logits = false;
  double epsilon = current_config().epsilon;
};
Expr binary_crossentropy(const Expr& target, const Expr& output, const BinaryCrossentropyOptions& options = {});

// x[..., index[...], ...]: one element of each slice along `axis`. x: any dtype; index: int32 or int64, in x's shape
// without `axis` or with 1 there. The result has x's shape without `axis`. A step throws ValueError for an index
// outside the slice.
Expr gather_along_axis(const Expr& x, const Expr& index, int axis = -1);

// bool (batch): true if predictions[i, targets[i]] is among the k largest of predictions[i, :], ties included; false
// for a target that is not a class and for a row with a value that is not finite. predictions: (batch, classes);
// targets: (batch), int32 or int64.
Expr in_top_k(const Expr& predictions, const Expr& targets, int k);

// Normalization.

// x / sqrt(max(sum(x^2), 1e-12)), summed over `axes` (default: all).
Expr l2_normalize(const Expr& x, Axes axes = {});

// (x - mean) / sqrt(var + epsilon) * gamma + beta. The four are vectors along `axis`, or broadcast with x. beta and
// gamma may be empty.
Expr batch_normalization(const Expr& x, const Expr& mean, const Expr& var, const Expr& beta, const Expr& gamma,
                         int axis = -1, double epsilon = 1e-3);

struct NormalizedBatch {
  Expr normalized;  // of x's shape
  Expr mean;        // of x's shape without the reduction axes; variance too
  Expr variance;    // biased: mean((x - mean)^2)
};
// Takes the statistics of the global batch, over all ranks. gamma and beta may be empty.
NormalizedBatch normalize_batch_in_training(const Expr& x, const Expr& gamma, const Expr& beta, Axes reduction_axes,
                                            double epsilon = 1e-3);

}  // namespace syncline
#pragma GCC visibility pop
