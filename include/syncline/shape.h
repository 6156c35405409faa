// Shape: the dimensions of a tensor. A dimension may be unknown (kUnknown) until values are fed. A value type.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace syncline {

inline constexpr std::int64_t kUnknown = -1;
// Upper bound of a dimension and of a tensor's number of elements; no process addresses more bytes.
inline constexpr std::int64_t kLargestSize = std::int64_t{1} << 47;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  int ndim() const { return static_cast<int>(dims().size()); }
  std::int64_t operator[](int axis) const { return dims()[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return data()[axis]; }
  std::int64_t back() const { return dims().back(); }
  // Valid until the shape changes, moves or ends, as are `begin` and `end`.
  std::span<const std::int64_t> dims() const {
    return many_.empty() ? std::span(few_.data(), n_few_) : std::span(many_);
  }
  const std::int64_t* begin() const { return dims().data(); }
  const std::int64_t* end() const { return begin() + ndim(); }

  // True if no dimension is unknown.
  bool is_known() const;
  // Number of elements. The shape must be known. Throws ShapeError beyond kLargestSize; so does `product`.
  std::int64_t size() const;
  // Product of the dimensions [first, last), which must be known.
  std::int64_t product(int first, int last) const;

  void push_back(std::int64_t dim) { insert(ndim(), dim); }
  void insert(int axis, std::int64_t dim);
  void erase(int axis);

  friend bool operator==(const Shape& a, const Shape& b) { return std::ranges::equal(a.dims(), b.dims()); }

 private:
  std::int64_t* data() { return many_.empty() ? few_.data() : many_.data(); }

  std::array<std::int64_t, 4> few_{};  // avoids an allocation for most shapes
  std::size_t n_few_ = 0;
  std::vector<std::int64_t> many_;  // all dimensions if there are more than four, otherwise empty
};

// Prints as (2, ?, 3).
std::ostream& operator<<(std::ostream& out, const Shape& shape);

// NumPy's broadcasting rule; an unknown dimension is compatible with every dimension. Throws ShapeError that names `op`
// and both shapes.
Shape broadcast(std::string_view op, const Shape& a, const Shape& b);

// True if a tensor can have this shape: the only negative dimension is kUnknown, and the product of the known, nonzero
// dimensions is at most kLargestSize.
bool is_possible(const Shape& shape);
// Throws ShapeError that names `op` unless is_possible(shape).
void check_size(std::string_view op, const Shape& shape);
// a * b and a + b of non-negative dimensions or counts; kUnknown if an operand is unknown. Throws ShapeError that names
// `op` beyond kLargestSize.
std::int64_t size_product(std::string_view op, std::int64_t a, std::int64_t b);
std::int64_t size_sum(std::string_view op, std::int64_t a, std::int64_t b);

// Turns a negative axis into a positive one. Throws ValueError naming `op` if it is outside [-ndim, ndim).
int wrap_axis(std::string_view op, int axis, int ndim);

// True if a value of known shape `actual` may be fed to a placeholder of shape `declared`.
bool accepts(const Shape& declared, const Shape& actual);

// True if both sizes are known and different.
constexpr bool sizes_differ(std::int64_t a, std::int64_t b) { return a >= 0 && b >= 0 && a != b; }

}  // namespace syncline

// The range is that of the dimensions, but size() is the tensor's.
template <>
inline constexpr bool std::ranges::disable_sized_range<syncline::Shape> = true;
#pragma GCC visibility pop
