// Tensors made from other tensors without arithmetic: fills, identity, shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "syncline/array.h"
#include "syncline/axes.h"
#include "syncline/dims.h"
#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

// A tensor filled with one value.
Expr fill(const Dims& shape, double value, DType dtype = DType::kFloat32);
// A tensor filled with one value in the shape of x, which may be unknown yet. dtype: x's unless given.
Expr fill_like(const Expr& x, double value);
Expr fill_like(const Expr& x, double value, DType dtype);
struct TensorOptions {
  std::optional<DType> dtype = {};  // x's unless given
  std::string name = {};
};
Expr zeros_like(const Expr& x, const TensorOptions& options = {});
Expr ones_like(const Expr& x, const TensorOptions& options = {});

Expr identity(const Expr& x, std::string name = {});
// x; gradients() treats it as a constant.
Expr stop_gradient(const Expr& x);
std::vector<Expr> stop_gradient(std::vector<Expr> tensors);

// ---- what is known of a tensor while the graph is built ----
inline int ndim(const Expr& x) { return x.ndim(); }
inline DType dtype(const Expr& x) { return x.dtype(); }
// kUnknown for dimensions that depend on the feeds.
inline const Shape& int_shape(const Expr& x) { return x.shape(); }
inline const Shape& get_variable_shape(const Expr& x) { return x.shape(); }
// The number of elements, which must be known: throws ShapeError otherwise.
std::int64_t count_params(const Expr& x);

// Accepts any type: an Expr or a Variable is a tensor, arrays and numbers are not.
template <class T>
bool is_tensor(const T& x) {
  if constexpr (std::is_convertible_v<const T&, const Expr&>) return static_cast<bool>(static_cast<const Expr&>(x));
  else return false;
}
// True if the tensor is a variable.
bool is_variable_tensor(const Expr& x);
template <class T>
bool is_variable(const T& x) {
  if constexpr (std::is_convertible_v<const T&, const Expr&>) return is_variable_tensor(x);
  else return false;
}
// True if x is the output of a Keras layer. Always false here: C++ has no layers, and the Python package marks the
// outputs of its own. Throws ValueError if x is not a tensor.
template <class T>
bool is_keras_tensor(const T& x) {
  if (!is_tensor(x)) fail<ValueError>("is_keras_tensor: x is not a tensor; give a value of the graph");
  return false;
}

// The global shape of x as an int32 vector of ndim(x) elements.
Expr shape(const Expr& x);
// The global number of elements of x along `axes`, as a scalar of the given dtype.
Expr count(const Expr& x, Axes axes, DType dtype);

}  // namespace syncline
#pragma GCC visibility pop
