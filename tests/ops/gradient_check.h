// Compares gradients() with central differences, in double.
#pragma once

#include <string>
#include <vector>

#include "tests/ops/op_case.h"

namespace syncline::testing {

// sum(y * fixed random weights): a loss in which every element of y has a part of its own.
Expr weighted_sum(const Expr& y, std::uint64_t key);

// Placeholders for these arrays.
std::vector<Expr> placeholders_for(const std::vector<Array>& feeds);

// Empty if all gradients of `build` at `at` agree with central differences; otherwise what differs. Floating inputs
// must be float64.
std::string compare_gradients(const Builder& build, const std::vector<Array>& at, double tolerance);

// The first derivatives of a builder as one more builder, to be differentiated again.
Builder gradient_of(const Builder& build);

}  // namespace syncline::testing
