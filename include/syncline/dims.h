// Shape arguments that may hold tensors: the sizes of reshape, tile, fill, slice, random tensors and the like.
//
// Such a tensor says how large something is, usually as an element of shape(x): it follows from the shapes that are
// fed, and the plan folds it to a number. Until then the dimension is unknown, and the function is deferred
// (ops/graph/deferred.h). A size that depends on values that are fed, stored or
// drawn is computed by a plan of its own first (runtime/execution/function_plans.h), and each of its values has its own
// plan.
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

namespace syncline {

// One entry: a number, an integer scalar, or an integer vector of known length, which stands for its elements.
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
  // Each entry is one number. Throws ShapeError if one is a tensor that has axes; `function` is for the message.
  static Dims of_numbers(std::string_view function, std::initializer_list<Dim> entries);

  int size() const { return numbers_.ndim(); }
  bool has_tensors() const { return !tensors_.empty(); }
  bool is_tensor(int i) const;
  // The entries, with kUnknown in place of tensors.
  const Shape& numbers() const { return numbers_; }
  // The tensors in order, and the entry where each begins.
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
// All of them.
Dims dims_of(const Expr& x);

}  // namespace syncline
