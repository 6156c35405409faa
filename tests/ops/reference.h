// Building blocks of references: plain loops over indices, in double.
#pragma once

#include <functional>
#include <vector>

#include "tests/ops/op_case.h"

namespace syncline::testing {

using Index = std::vector<std::int64_t>;

// f(index) for each index of the shape, in C order.
Tensor tabulate(const Shape& shape, const std::function<double(const Index&)>& f);
// The element of x at an index of a shape that x broadcasts to: aligned at the last axis, axes of one element repeat.
double at(const Tensor& x, const Index& index);
Shape broadcast_shape(const Shape& a, const Shape& b);

// y = f(x), y = f(x0, x1), y = f(x0, x1, x2), element by element.
Reference elementwise(double (*f)(double));
Reference elementwise(double (*f)(double, double));
Reference elementwise(double (*f)(double, double, double));

// y = f(the elements of x along `axes`).
using Fold = std::function<double(const std::vector<double>&)>;
Reference folding(std::vector<int> axes, bool keepdims, Fold f);

// Fixed numbers, from NumPy or computed by hand.
Reference literal(Shape shape, std::vector<double> values);

}  // namespace syncline::testing
