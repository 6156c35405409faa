#include "syncline/array.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/alignment.h"
#include "base/convert.h"

namespace syncline {
namespace {

// Large arrays request huge pages: fewer TLB misses, and a third to a half of the time when another process reads them,
// as ranks of one node do.
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLarge = kHugePage / 2;

// Reports the requested size; becomes Python's MemoryError.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(std::size_t bytes)
      : text_(join_text("array: cannot allocate ", bytes, " bytes: not enough memory; use smaller sizes")) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// With overcommit, the kernel would kill the process at the first use of memory that does not exist.
std::size_t physical_memory() {
  static const auto bytes =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::shared_ptr<std::byte> allocate(std::size_t bytes, bool zeros) {
  if (bytes >= kLarge && bytes > physical_memory()) throw OutOfMemory(bytes);
  const std::size_t alignment = bytes >= kLarge ? kHugePage : kAlignment;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, std::max(rounded, alignment));
  if (memory == nullptr) throw OutOfMemory(bytes);
  if (bytes >= kLarge) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: without huge pages the array is only slower
  if (zeros) std::memset(memory, 0, bytes);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

}  // namespace

Array::Array(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  if (!shape_.is_known()) fail<ShapeError>("array: shape ", shape_, " has unknown dimensions");
  bytes_ = allocate(bytes(), true);
}

Array Array::uninitialized(DType dtype, Shape shape) {
  if (!shape.is_known()) fail<ShapeError>("array: shape ", shape, " has unknown dimensions");
  Array a;
  a.dtype_ = dtype;
  a.shape_ = std::move(shape);
  a.bytes_ = allocate(a.bytes(), false);
  return a;
}

Array Array::borrow(DType dtype, Shape shape, void* bytes) {
  Array a;
  a.dtype_ = dtype;
  a.shape_ = std::move(shape);
  a.bytes_ = std::shared_ptr<std::byte>(std::shared_ptr<void>{}, static_cast<std::byte*>(bytes));
  return a;
}

double Array::item() const {
  if (size() != 1) fail<ShapeError>("array: item() needs exactly one element, but the shape is ", shape_);
  return with_stored_dtype(dtype_, [&]<class T>(T) { return convert<double>(*data<T>()); });
}

Array Array::copy() const {
  Array a = uninitialized(dtype_, shape_);
  if (bytes() > 0) std::memcpy(a.raw(), raw(), bytes());
  return a;
}

Array Array::reshaped(Shape shape) const {
  if (shape.size() != size())
    fail<ShapeError>("array: shape ", shape_, " has ", size(), " elements and cannot become ", shape,
                     "; the numbers of elements must be equal");
  Array a = *this;
  a.shape_ = std::move(shape);
  return a;
}

Array Array::rows(std::int64_t begin, std::int64_t end) const {
  if (shape_.ndim() == 0 || begin < 0 || end < begin || end > shape_[0])
    fail<ShapeError>("array: rows ", begin, " to ", end, " are out of range for shape ", shape_);
  Array a = *this;
  a.shape_[0] = end - begin;
  const std::size_t row = size_of(dtype_) * static_cast<std::size_t>(shape_.product(1, shape_.ndim()));
  a.bytes_ = std::shared_ptr<std::byte>(bytes_, bytes_.get() + row * static_cast<std::size_t>(begin));
  return a;
}

Array Array::cast(DType dtype) const {
  Array a = uninitialized(dtype, shape_);
  cast_into(a, 0, size());
  return a;
}

void Array::cast_into(Array& target, std::int64_t begin, std::int64_t end) const {
  target.check_count(static_cast<std::size_t>(size()));
  if (begin < 0 || end > size())
    fail<ShapeError>("array: elements ", begin, " to ", end, " are out of range for shape ", shape_);
  with_stored_dtype(dtype_, [&]<class From>(From) {
    with_stored_dtype(target.dtype(), [&]<class To>(To) {
      const From* from = data<From>();
      To* to = target.data<To>();
      for (std::int64_t i = begin; i < end; ++i) to[i] = convert<To>(from[i]);
    });
  });
}

void Array::check_type(DType wanted) const {
  if (wanted != dtype_) fail<DTypeError>("array: it is read as ", wanted, ", but holds ", dtype_, "; cast it first");
}

void Array::check_count(std::size_t count) const {
  if (count != static_cast<std::size_t>(size()))
    fail<ShapeError>("array: ", count, " values are given for shape ", shape_, ", which has ", size(), " elements");
}

}  // namespace syncline
