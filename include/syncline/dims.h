// Dims: shape arguments that may hold tensors. reshape, tile, fill, slice, random tensors and others take them.
//
// A size tensor usually is an element of shape(x). It follows from the fed shapes, and the plan folds it to a number.
// While the graph is built the dimension is unknown, and the function is deferred (ops/graph/deferred.h). The elements
// of a vector such as shape(x) that are known are numbers (ops/graph/known_elements.h). If a size depends on fed, stored
// or drawn values, a separate plan computes it first (runtime/execution/function_plans.h); each distinct value gets its
// own plan.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

// One entry: a number, an integer scalar, or an integer vector of known length, taken element by element.
class Dim {
 public:
  template <std::integral T>
  Dim(T number) : number_(static_cast<std::int64_t>(number)) {}
  Dim(Expr tensor) : tensor_(std::move(tensor)) {}

  bool is_number() const { return !tensor_; }
  std::int64_t number() const { return number_; }
  const Expr& tensor() const { return tensor_; }

 private:
  std::int64_t number_ = 0;
  Expr tensor_;
};

// Dims{2, 3}, Dims{n, 3, -1} with a tensor n, Dims(shape(x)). Throws DTypeError if a tensor holds no integers and
// ShapeError if it has more than one axis or an unknown length.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<Dim> entries);
  Dims(const Shape& shape) : numbers_(shape) {}
  Dims(std::vector<std::int64_t> numbers) : numbers_(std::move(numbers)) {}
  Dims(const Expr& tensor) { append(Dim(tensor)); }
  // Each entry is one number. Throws ShapeError for a tensor that has axes; the message names `function`.
  static Dims of_numbers(std::string_view function, std::initializer_list<Dim> entries);

  int size() const { return numbers_.ndim(); }
  bool has_tensors() const { return !tensors_.empty(); }
  bool is_tensor(int i) const;
  // The entries, with kUnknown in place of tensors.
  const Shape& numbers() const { return numbers_; }
  // The tensors in order, each with the index of the entry where it begins.
  const std::vector<std::pair<int, Expr>>& tensors() const { return tensors_; }

  void append(const Dim& entry);
  void append(const Dims& others);

 private:
  Shape numbers_;
  std::vector<std::pair<int, Expr>> tensors_;
};

// The entries as one integer vector: K.stack([n, 3]).
Expr stack(const Dims& entries, DType dtype);

// The size of x along an axis: a number where it is known, otherwise an int32 scalar.
Dim dim(const Expr& x, int axis);
// The size of x along every axis.
Dims dims_of(const Expr& x);

}  // namespace syncline
#pragma GCC visibility pop
