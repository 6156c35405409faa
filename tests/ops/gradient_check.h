// Compares gradients() with central differences, in double.
#pragma once

#include <string>
#include <vector>

#include "tests/ops/op_case.h"

namespace syncline::testing {

// sum(y * fixed weights): a loss in which each element of y has its own weight.
Expr weighted_sum(const Expr& y, std::uint64_t key);

// Placeholders with the arrays' shapes and dtypes.
std::vector<Expr> placeholders_for(const std::vector<Array>& feeds);

// Empty if all gradients of `build` at `at` agree with central differences; otherwise the first difference. Floating
// inputs must be float64.
std::string compare_gradients(const Builder& build, const std::vector<Array>& at, double tolerance);

// A builder of the weighted sum of the first derivatives of `build`, for second derivatives.
Builder gradient_of(const Builder& build);

}  // namespace syncline::testing
