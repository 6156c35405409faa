// Random tensors and dropout, counter-based: an element depends on the key, the op's run count and the element's place
// in the global value. The number of ranks and threads does not matter. Two ops of one seed draw the same sequence.
//
// Results are floating; float64 has 53 random bits, float16 is rounded float32. All throw ValueError, ShapeError and
// DTypeError while the graph is built.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "syncline/config.h"
#include "syncline/dims.h"

#pragma GCC visibility push(default)
namespace syncline {

// One random operation. All nodes of the operation share it, across functions and loops.
struct RandomOp {
  std::uint64_t seed = 0;
  std::uint64_t op = 0;          // distinguishes the ops of one seed
  bool seed_of_rank = false;     // each rank drew its own seed; rank 0's applies (runtime/placement/agreement.h)
  std::uint64_t number = 0;      // order of creation, from 1; 0 outside a session
  std::uint64_t runs = 0;        // finished steps that contained the op
  std::string describe() const;  // the part that must be equal on all ranks
};

// Identifies a random operation. A new key is a new operation with zero runs.
class RandomKey {
 public:
  RandomKey(std::uint64_t seed = 0, std::uint64_t op = 0)
      : RandomKey(std::make_shared<RandomOp>(RandomOp{.seed = seed, .op = op})) {}
  explicit RandomKey(std::shared_ptr<RandomOp> op) : op_(std::move(op)) {}
  const std::shared_ptr<RandomOp>& op() const { return op_; }

 private:
  std::shared_ptr<RandomOp> op_;
};

struct UniformOptions {
  double minval = 0;
  double maxval = 1;
  DType dtype = current_config().floatx;
};
struct NormalOptions {
  double mean = 0;
  double stddev = 1;
  DType dtype = current_config().floatx;
};
struct BinomialOptions {
  double p = 0;
  DType dtype = current_config().floatx;
};

// Uniform in [minval, maxval), also for integers.
Expr random_uniform(const Dims& shape, const RandomKey& key, const UniformOptions& options = {});
Expr random_normal(const Dims& shape, const RandomKey& key, const NormalOptions& options = {});
// The normal distribution, truncated at two standard deviations from the mean.
Expr truncated_normal(const Dims& shape, const RandomKey& key, const NormalOptions& options = {});
// 1 with probability p, otherwise 0.
Expr random_binomial(const Dims& shape, const RandomKey& key, const BinomialOptions& options = {});

// Variants in the shape of x, which may be unknown yet; the result has the placement of x if x is split over ranks.
Expr random_uniform_like(const Expr& x, const RandomKey& key, const UniformOptions& options = {});
Expr random_normal_like(const Expr& x, const RandomKey& key, const NormalOptions& options = {});
Expr truncated_normal_like(const Expr& x, const RandomKey& key, const NormalOptions& options = {});
Expr random_binomial_like(const Expr& x, const RandomKey& key, const BinomialOptions& options = {});

// Variants with tensors as parameters, of the result's dtype. They broadcast with the shape and have gradients. A
// probability is a floating tensor.
Expr random_uniform(const Dims& shape, const RandomKey& key, const Expr& minval, const Expr& maxval);
Expr random_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev);
Expr truncated_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev);
Expr random_binomial(const Dims& shape, const RandomKey& key, const Expr& p, DType dtype);

// A bool tensor, false with probability `level`, 0 <= level < 1. Shape: x's, or `noise_shape`, one entry per axis of x:
// 1 shares one draw along the axis, x's size or -1 draws each element. Fewer entries belong to the last axes.
Expr dropout_mask(const Expr& x, double level, const RandomKey& key, const std::optional<Dims>& noise_shape = {});
// x / (1 - level) where the mask is true, otherwise 0.
Expr dropout(const Expr& x, double level, const RandomKey& key, const std::optional<Dims>& noise_shape = {});
// Variants whose level a step computes: a floating scalar. A level of 1 or more drops every element.
Expr dropout_mask(const Expr& x, const Expr& level, const RandomKey& key, const std::optional<Dims>& noise_shape = {});
Expr dropout(const Expr& x, const Expr& level, const RandomKey& key, const std::optional<Dims>& noise_shape = {});

}  // namespace syncline
#pragma GCC visibility pop
