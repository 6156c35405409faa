// Axes: an argument that names one or several axes, sum(x, -1) or sum(x, {0, 2}). Axes() means all axes. An empty list
// means none: a reduction over it returns its operand.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "syncline/error.h"

#pragma GCC visibility push(default)
namespace syncline {

class Axes {
 public:
  Axes() = default;
  // Throws ValueError for an axis beyond 32 bits. Functions check axes against the tensor later.
  Axes(std::int64_t axis) : Axes({axis}) {}
  Axes(std::initializer_list<std::int64_t> axes) : Axes(std::vector(axes)) {}
  template <std::integral I>
  Axes(const std::vector<I>& axes) : numbers_(std::in_place) {
    for (const I axis : axes) numbers_->push_back(narrow(axis));
  }

  bool are_all() const { return !numbers_; }
  // The axes as given; 0 .. ndim - 1 if all are meant.
  std::vector<int> of(int ndim) const {
    if (numbers_) return *numbers_;
    std::vector<int> all(static_cast<std::size_t>(ndim));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  static int narrow(std::int64_t axis) {
    if (axis < std::numeric_limits<int>::min() || axis > std::numeric_limits<int>::max())
      fail<ValueError>("axis ", axis, " is out of range: no tensor has that many dimensions");
    return static_cast<int>(axis);
  }

 private:
  std::optional<std::vector<int>> numbers_;
};

}  // namespace syncline
#pragma GCC visibility pop
