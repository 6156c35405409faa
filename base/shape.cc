#include "syncline/shape.h"

#include <algorithm>

#include "syncline/error.h"

namespace syncline {

namespace {

[[noreturn]] void fail_size(std::string_view what, const Shape& shape) {
  fail<ShapeError>(what, ": a tensor of shape ", shape,
                   " would have more than 2^47 elements, or a negative size; give ", "other sizes");
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > few_.size()) {
    many_.assign(dims.begin(), dims.end());
  } else {
    std::ranges::copy(dims, few_.begin());
    n_few_ = dims.size();
  }
}

bool Shape::is_known() const {
  return std::none_of(begin(), end(), [](auto dim) { return dim < 0; });
}

std::int64_t Shape::size() const { return product(0, ndim()); }

std::int64_t Shape::product(int first, int last) const {
  std::int64_t others = 1;  // all dimensions but zeros
  bool empty = false;
  for (int axis = first; axis < last; ++axis) {
    const std::int64_t dim = (*this)[axis];
    if (dim == 0) empty = true;
    else if (__builtin_mul_overflow(others, dim, &others) || others > kLargestSize) fail_size("shape", *this);
  }
  return empty ? 0 : others;
}

void Shape::insert(int axis, std::int64_t dim) {
  if (ndim() < static_cast<int>(few_.size())) {
    std::copy_backward(few_.begin() + axis, few_.begin() + n_few_, few_.begin() + n_few_ + 1);
    few_[static_cast<std::size_t>(axis)] = dim;
    ++n_few_;
    return;
  }
  std::vector<std::int64_t> dims(begin(), end());
  dims.insert(dims.begin() + axis, dim);
  *this = Shape(dims);
}

void Shape::erase(int axis) {
  std::copy(data() + axis + 1, data() + ndim(), data() + axis);
  *this = Shape(dims().first(dims().size() - 1));
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '(';
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    if (axis > 0) out << ", ";
    if (shape[axis] < 0) out << '?';
    else out << shape[axis];
  }
  return out << (shape.ndim() == 1 ? ",)" : ")");
}

Shape broadcast(std::string_view op, const Shape& a, const Shape& b) {
  Shape result = a.ndim() < b.ndim() ? b : a;
  const int ndim = result.ndim();
  for (int axis = 0; axis < ndim; ++axis) {
    const int ia = axis - (ndim - a.ndim()), ib = axis - (ndim - b.ndim());
    const std::int64_t da = ia < 0 ? 1 : a[ia], db = ib < 0 ? 1 : b[ib];
    if (da != db && da >= 0 && db >= 0 && da != 1 && db != 1)
      fail<ShapeError>(op, ": shapes ", a, " and ", b, " do not broadcast (axis ", axis, ": ", da, " against ", db,
                       "); reshape or expand_dims one of them");
    std::int64_t& dim = result[axis];
    if (da == db) dim = da;
    else if (da == 1) dim = db;
    else if (db == 1) dim = da;
    else dim = std::max(da, db);  // one is unknown; the known one decides
  }
  return result;
}

bool is_possible(const Shape& shape) {
  std::int64_t total = 1;
  return std::all_of(shape.begin(), shape.end(), [&](std::int64_t dim) {
    return dim >= kUnknown && (dim <= 0 || (!__builtin_mul_overflow(total, dim, &total) && total <= kLargestSize));
  });
}

void check_size(std::string_view op, const Shape& shape) {
  if (!is_possible(shape)) fail_size(op, shape);
}

std::int64_t size_product(std::string_view op, std::int64_t a, std::int64_t b) {
  if (a == kUnknown || b == kUnknown) return kUnknown;
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result) || result > kLargestSize)
    fail<ShapeError>(op, ": a size of ", a, " times ", b, " exceeds 2^47; give smaller numbers");
  return result;
}

std::int64_t size_sum(std::string_view op, std::int64_t a, std::int64_t b) {
  if (a == kUnknown || b == kUnknown) return kUnknown;
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result) || result > kLargestSize)
    fail<ShapeError>(op, ": a size of ", a, " plus ", b, " exceeds 2^47; give smaller numbers");
  return result;
}

int wrap_axis(std::string_view op, int axis, int ndim) {
  if (ndim == 0) fail<ValueError>(op, ": axis ", axis, " is out of range for a scalar, which has no axes");
  if (axis < -ndim || axis >= ndim)
    fail<ValueError>(op, ": axis ", axis, " is out of range for a tensor of ", ndim, " dimensions; use ", -ndim, " to ",
                     ndim - 1);
  return axis < 0 ? axis + ndim : axis;
}

bool accepts(const Shape& declared, const Shape& actual) {
  if (declared.ndim() != actual.ndim()) return false;
  for (int axis = 0; axis < declared.ndim(); ++axis)
    if (declared[axis] >= 0 && declared[axis] != actual[axis]) return false;
  return true;
}

}  // namespace syncline
