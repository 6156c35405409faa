// Shape: the dimensions of a tensor. A dimension may be unknown (kUnknown) until values are fed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

namespace syncline {

inline constexpr std::int64_t kUnknown = -1;
// A tensor has at most so many elements, and a dimension is at most so long: no process addresses more bytes.
inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 47;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<std::int64_t> dims) : dims_(std::move(dims)) {}

  int ndim() const { return static_cast<int>(dims_.size()); }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t back() const { return dims_.back(); }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }

  // True if no dimension is unknown.
  bool is_known() const;
  // Number of elements. The shape must be known. Throws ShapeError beyond kLargestSize, as `product` does.
  std::int64_t size() const;
  // Product of the dimensions [first, last), which must be known.
  std::int64_t product(int first, int last) const;

  void push_back(std::int64_t dim) { dims_.push_back(dim); }
  void insert(int axis, std::int64_t dim) { dims_.insert(dims_.begin() + axis, dim); }
  void erase(int axis) { dims_.erase(dims_.begin() + axis); }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::vector<std::int64_t> dims_;
};

// Prints as (2, ?, 3).
std::ostream& operator<<(std::ostream& out, const Shape& shape);

// NumPy's broadcasting rule; an unknown dimension meets 1 or any other. Throws ShapeError naming `op` and both shapes.
Shape broadcast(std::string_view op, const Shape& a, const Shape& b);

// Whether a tensor may have that shape: no dimension but kUnknown is negative, and the known ones, without zeros, make
// at most kLargestSize elements.
bool is_possible(const Shape& shape);
// Throws ShapeError naming `op` otherwise.
void check_size(std::string_view op, const Shape& shape);
// a * b and a + b of dimensions or counts that are not negative; unknown if one of them is. Throws ShapeError naming
// `op` beyond kLargestSize.
std::int64_t size_product(std::string_view op, std::int64_t a, std::int64_t b);
std::int64_t size_sum(std::string_view op, std::int64_t a, std::int64_t b);

// Turns a negative axis into a positive one. Throws ValueError naming `op` if it is outside [-ndim, ndim).
int wrap_axis(std::string_view op, int axis, int ndim);

// True if a value of shape `actual` (known) may be fed where `declared` was promised.
bool accepts(const Shape& declared, const Shape& actual);

// Both sizes are known, and not the same.
constexpr bool sizes_differ(std::int64_t a, std::int64_t b) { return a >= 0 && b >= 0 && a != b; }

}  // namespace syncline
