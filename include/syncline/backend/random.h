// Random tensors and dropout, counter-based: an element depends on the key, on how often the op has run and on its
// place in the global value, never on how many ranks or threads compute it. Two ops of one seed draw the same sequence.
//
// Results are floating; float64 is drawn with 53 bits, float16 is float32 rounded. All throw ValueError, ShapeError and
// DTypeError while the graph is built.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "syncline/config.h"
#include "syncline/dims.h"

namespace syncline {

// One random operation: all nodes that stand for it, in whatever function or loop, share it.
struct RandomOp {
  std::uint64_t seed = 0;
  std::uint64_t op = 0;  // tells apart the ops of one seed
  bool seed_of_rank =
      false;                 // each rank has drawn the seed for itself: rank 0's counts (runtime/placement/agreement.h)
  std::uint64_t number = 0;  // in the order of creation, from 1; 0 outside a session
  std::uint64_t runs = 0;    // finished steps that had the op
  std::string describe() const;  // what all ranks have alike
};

// Names a random operation. A new key is a new operation, which has not run yet.
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

// In [minval, maxval); integers: each number from minval on and below maxval alike.
Expr random_uniform(const Dims& shape, const RandomKey& key, const UniformOptions& options = {});
Expr random_normal(const Dims& shape, const RandomKey& key, const NormalOptions& options = {});
// The normal distribution without what lies farther than two standard deviations from the mean.
Expr truncated_normal(const Dims& shape, const RandomKey& key, const NormalOptions& options = {});
// 1 with probability p, otherwise 0.
Expr random_binomial(const Dims& shape, const RandomKey& key, const BinomialOptions& options = {});

// The same with the shape of x, which may be unknown yet, and the rows of x where that is split over ranks.
Expr random_uniform_like(const Expr& x, const RandomKey& key, const UniformOptions& options = {});
Expr random_normal_like(const Expr& x, const RandomKey& key, const NormalOptions& options = {});
Expr truncated_normal_like(const Expr& x, const RandomKey& key, const NormalOptions& options = {});
Expr random_binomial_like(const Expr& x, const RandomKey& key, const BinomialOptions& options = {});

// The same with tensors as parameters, of the result's dtype: they broadcast with the shape, and have gradients. A
// probability is a floating tensor.
Expr random_uniform(const Dims& shape, const RandomKey& key, const Expr& minval, const Expr& maxval);
Expr random_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev);
Expr truncated_normal(const Dims& shape, const RandomKey& key, const Expr& mean, const Expr& stddev);
Expr random_binomial(const Dims& shape, const RandomKey& key, const Expr& p, DType dtype);

// A bool tensor, false with probability `level`, of x's shape, or of `noise_shape`: one entry an axis of x, 1 where one
// draw serves the whole axis, and otherwise x's size or -1; fewer belong to the last axes. 0 <= level < 1.
Expr dropout_mask(const Expr& x, double level, const RandomKey& key, const std::optional<Dims>& noise_shape = {});
// x / (1 - level) where the mask holds, otherwise 0.
Expr dropout(const Expr& x, double level, const RandomKey& key, const std::optional<Dims>& noise_shape = {});
// The same with a level that a step computes: a floating scalar. Nothing is kept where it is 1 or more.
Expr dropout_mask(const Expr& x, const Expr& level, const RandomKey& key, const std::optional<Dims>& noise_shape = {});
Expr dropout(const Expr& x, const Expr& level, const RandomKey& key, const std::optional<Dims>& noise_shape = {});

}  // namespace syncline
