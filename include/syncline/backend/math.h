// Elementwise functions of the Keras backend, and operators. Operands broadcast as in NumPy and have one dtype (cast
// first); plain numbers take the tensor's dtype (docs/dtypes.md). Integers wrap around. Results have the broadcast
// shape. All throw ShapeError and DTypeError while the graph is built. Semantics: Keras 2 backend documentation,
// sections on element-wise operations.
#pragma once

#include <optional>

#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

Expr add(const Expr& x, const Expr& y);
Expr sub(const Expr& x, const Expr& y);
Expr mul(const Expr& x, const Expr& y);  // of two bools: logical_and
// True division, as in Python and TensorFlow: float32 for int8, uint8 and int16, float64 for int32 and int64.
Expr div(const Expr& x, const Expr& y);
// Python's x // y: rounds down. x // 0 of integers is 0.
Expr floordiv(const Expr& x, const Expr& y);
// Python's x % y: has y's sign. x % 0 of integers is x.
Expr floormod(const Expr& x, const Expr& y);
Expr neg(const Expr& x);
Expr maximum(const Expr& x, const Expr& y);
Expr minimum(const Expr& x, const Expr& y);
// An integer to a negative power throws ValueError when the step runs.
Expr pow(const Expr& x, const Expr& a);
Expr pow(const Expr& x, double a);

Expr square(const Expr& x);
Expr abs(const Expr& x);
Expr sqrt(const Expr& x);  // of max(x, 0), as in Keras; NaN of NaN
Expr exp(const Expr& x);
Expr log(const Expr& x);
Expr round(const Expr& x);  // halves to even; integers unchanged
Expr sign(const Expr& x);
Expr sin(const Expr& x);
Expr cos(const Expr& x);
// Either bound may be absent. A max_value below min_value counts as min_value.
Expr clip(const Expr& x, std::optional<double> min_value, std::optional<double> max_value);

// bool results
Expr equal(const Expr& x, const Expr& y);
Expr not_equal(const Expr& x, const Expr& y);
Expr greater(const Expr& x, const Expr& y);
Expr greater_equal(const Expr& x, const Expr& y);
Expr less(const Expr& x, const Expr& y);
Expr less_equal(const Expr& x, const Expr& y);
// condition (bool) ? x : y, element by element.
Expr select(const Expr& condition, const Expr& x, const Expr& y);
Expr logical_and(const Expr& x, const Expr& y);
Expr logical_not(const Expr& x);

// bool becomes 0 and 1; floating to integer truncates; to bool: != 0. base/convert.h defines values out of range. A
// sparse x stays sparse.
Expr cast(const Expr& x, DType dtype);

// A scalar of x's dtype. Throws DTypeError for a fraction if x holds integers; whole numbers out of range wrap around.
Expr scalar_like(double value, const Expr& x);

inline Expr operator+(const Expr& x, const Expr& y) { return add(x, y); }
inline Expr operator-(const Expr& x, const Expr& y) { return sub(x, y); }
inline Expr operator*(const Expr& x, const Expr& y) { return mul(x, y); }
inline Expr operator/(const Expr& x, const Expr& y) { return div(x, y); }
inline Expr operator-(const Expr& x) { return neg(x); }
inline Expr operator+(const Expr& x, double y) { return add(x, scalar_like(y, x)); }
inline Expr operator-(const Expr& x, double y) { return sub(x, scalar_like(y, x)); }
inline Expr operator*(const Expr& x, double y) { return mul(x, scalar_like(y, x)); }
inline Expr operator/(const Expr& x, double y) { return div(x, scalar_like(y, x)); }
inline Expr operator+(double x, const Expr& y) { return add(scalar_like(x, y), y); }
inline Expr operator-(double x, const Expr& y) { return sub(scalar_like(x, y), y); }
inline Expr operator*(double x, const Expr& y) { return mul(scalar_like(x, y), y); }
inline Expr operator/(double x, const Expr& y) { return div(scalar_like(x, y), y); }

}  // namespace syncline
#pragma GCC visibility pop
