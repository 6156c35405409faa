// Computes a graph node by node: each op's kernel, or a plan of this op only, on the values of its inputs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline::graphs {

using Values = std::unordered_map<Expr, Array, ExprHash>;

// True for ops whose rounding depends on the order of summation.
bool sums(const Expr& node);
// True for an addition of 0, which `simplify` drops: -0 + 0 is 0.
bool adds_zero(const Expr& node);

inline constexpr std::uint64_t kNoiseOfResults = 16;

class OneByOne {
 public:
  // `noise`: 0, or the key of random errors that are added to the results of ops that sum, as large as rounding errors;
  // above kNoiseOfResults also to the operands of loops and branches that sum, where each iteration may enlarge them.
  OneByOne(Values leaves, std::uint64_t random_step, std::uint64_t noise = 0)
      : values_(std::move(leaves)), random_step_(random_step), noise_(noise) {}

  // Throws the errors of the kernels.
  void run(const std::vector<Expr>& roots);
  const Array& of(const Expr& e) const { return values_.at(e); }
  // The first difference between an op's result and its reference, or "".
  const std::string& problem() const { return problem_; }
  // For each node, in the order of computation: all its numbers are finite.
  const std::vector<bool>& finite() const { return finite_; }

 private:
  void compute(const std::shared_ptr<const Node>& node);
  std::vector<Array> kernel_alone(const Node& node, const std::vector<Array>& in) const;
  std::vector<Array> plan_alone(const Node& node, const std::vector<Array>& in) const;
  void keep_zeros(const Array& rows, Array& product) const;
  // The largest magnitude of the terms that sum to the value.
  double largest_terms(const Expr& e, const std::vector<Array>& in) const;
  void cancel(const Expr& e);
  void add_noise(const Expr& node, const std::vector<Array>& in);
  void move_by_rounding(std::vector<Array>& in) const;
  // Where the order of the factors decides whether a product overflows or underflows on its way: one of the results.
  void reorder_factors(const Expr& product, const Array& factors);

  Values values_;
  std::unordered_map<Expr, double, ExprHash> terms_;  // with noise
  std::uint64_t random_step_, noise_;
  std::string problem_;
  std::vector<bool> finite_;
};

}  // namespace syncline::graphs
