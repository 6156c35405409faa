// Random tensors and dropout, counter-based: an element depends on the key, the number of the step and its place in the
// global value, never on how many ranks or threads compute it. Two ops of one key draw the same numbers.
//
// Results are floating; float64 is drawn with 53 bits, float16 is float32 rounded. All throw ValueError, ShapeError and
// DTypeError while the graph is built.
#pragma once

#include <cstdint>
#include <optional>

#include "ops/config.h"
#include "ops/dims.h"

namespace syncline {

struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t op = 0;  // tells apart the ops of one seed
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
Expr random_uniform(const Dims& shape, RandomKey key, const UniformOptions& options = {});
Expr random_normal(const Dims& shape, RandomKey key, const NormalOptions& options = {});
// The normal distribution without what lies farther than two standard deviations from the mean.
Expr truncated_normal(const Dims& shape, RandomKey key, const NormalOptions& options = {});
// 1 with probability p, otherwise 0.
Expr random_binomial(const Dims& shape, RandomKey key, const BinomialOptions& options = {});

// The same with the shape of x, which may be unknown yet, and the rows of x where that is split over ranks.
Expr random_uniform_like(const Expr& x, RandomKey key, const UniformOptions& options = {});
Expr random_normal_like(const Expr& x, RandomKey key, const NormalOptions& options = {});
Expr truncated_normal_like(const Expr& x, RandomKey key, const NormalOptions& options = {});
Expr random_binomial_like(const Expr& x, RandomKey key, const BinomialOptions& options = {});

// A bool tensor, false with probability `level`, of x's shape, or of `noise_shape`: one entry an axis of x, 1 where one
// draw serves the whole axis, and otherwise x's size or -1. 0 <= level < 1.
Expr dropout_mask(const Expr& x, double level, RandomKey key, const std::optional<Dims>& noise_shape = {});
// x / (1 - level) where the mask holds, otherwise 0.
Expr dropout(const Expr& x, double level, RandomKey key, const std::optional<Dims>& noise_shape = {});

}  // namespace syncline
