// A graph computed node by node, without a plan: the kernel of each op alone on the values of its inputs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline::graphs {

using Values = std::unordered_map<Expr, Array, ExprHash>;

// Ops whose result other orders of summation may round otherwise.
bool sums(const Expr& node);

class OneByOne {
 public:
  // `noise`: 0, or the key of small errors that are added to what ops that sum compute, as large as the rounding errors
  // of a sum.
  OneByOne(Values leaves, std::uint64_t random_step, std::uint64_t noise = 0)
      : values_(std::move(leaves)), random_step_(random_step), noise_(noise) {}

  // Throws what a kernel throws.
  void run(const std::vector<Expr>& roots);
  const Array& of(const Expr& e) const { return values_.at(e); }
  // What an op's reference says against it, or "".
  const std::string& problem() const { return problem_; }
  // Whether all numbers of each node were finite, in the order of computing.
  const std::vector<bool>& finite() const { return finite_; }

 private:
  void compute(const std::shared_ptr<const Node>& node);
  std::vector<Array> kernel_alone(const Node& node, const std::vector<Array>& in) const;
  std::vector<Array> plan_alone(const Node& node, const std::vector<Array>& in) const;
  void keep_zeros(const Array& rows, Array& product) const;
  // The largest of the numbers whose sum the value is.
  double largest_terms(const Expr& e, const std::vector<Array>& in) const;
  void cancel(const Expr& e);
  void add_noise(const Expr& node, const std::vector<Array>& in);

  Values values_;
  std::unordered_map<Expr, double, ExprHash> terms_;  // with noise
  std::uint64_t random_step_, noise_;
  std::string problem_;
  std::vector<bool> finite_;
};

}  // namespace syncline::graphs
