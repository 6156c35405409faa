// Array: dtype, shape and bytes in C order. The type of feeds, fetches, variables' values, rows of a data set and
// entries of a checkpoint.
//
// Ownership: copying an Array shares its bytes (reference counted); `copy()` duplicates them. `borrow` makes a view of
// memory that the caller keeps alive. Threads: concurrent reads are safe, writes are not.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "syncline/dtype.h"
#include "syncline/shape.h"

#pragma GCC visibility push(default)
namespace syncline {

class Array {
 public:
  Array() = default;  // a float32 array of shape (0,)
  // Zero-filled, aligned to 64 bytes. `shape` must be known.
  Array(DType dtype, Shape shape);
  // The same with unspecified elements; write before reading. Takes a tenth of the time if all are written soon.
  static Array uninitialized(DType dtype, Shape shape);

  // A scalar.
  template <class T>
  static Array scalar(T value) {
    Array a(dtype_of<T>(), Shape{});
    a.data<T>()[0] = value;
    return a;
  }
  // Copies `values`. Throws ShapeError unless values.size() == shape.size().
  template <class T>
  static Array from(Shape shape, std::span<const T> values) {
    Array a(dtype_of<T>(), std::move(shape));
    a.check_count(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) a.data<T>()[i] = values[i];
    return a;
  }
  template <class T>
  static Array from(Shape shape, std::initializer_list<T> values) {
    return from<T>(std::move(shape), std::span<const T>(values.begin(), values.size()));
  }
  template <class T>
  static Array from(Shape shape, const std::vector<T>& values) {
    return from<T>(std::move(shape), std::span<const T>(values));
  }
  // A view of memory that the caller keeps alive.
  static Array borrow(DType dtype, Shape shape, void* bytes);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size() const { return shape_.size(); }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * size_of(dtype_); }

  std::byte* raw() { return bytes_.get(); }
  const std::byte* raw() const { return bytes_.get(); }
  // Throws DTypeError if T is not the array's type.
  template <class T>
  T* data() {
    check_type(dtype_of<T>());
    return reinterpret_cast<T*>(raw());
  }
  template <class T>
  const T* data() const {
    check_type(dtype_of<T>());
    return reinterpret_cast<const T*>(raw());
  }
  template <class T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<std::size_t>(size())};
  }
  // The only element of a one-element array, converted to double.
  double item() const;

  Array copy() const;
  // The same bytes under another shape of equal size.
  Array reshaped(Shape shape) const;
  // Rows [begin, end) along axis 0, sharing the bytes.
  Array rows(std::int64_t begin, std::int64_t end) const;
  // Converts each element (base/convert.h).
  Array cast(DType dtype) const;
  // Converts elements [begin, end) into `target`, which has as many elements as this array.
  void cast_into(Array& target, std::int64_t begin, std::int64_t end) const;

 private:
  void check_type(DType wanted) const;
  void check_count(std::size_t count) const;

  DType dtype_ = DType::kFloat32;
  Shape shape_{0};
  std::shared_ptr<std::byte> bytes_;
};

}  // namespace syncline
#pragma GCC visibility pop
