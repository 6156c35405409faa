// one_hot, arange, and diagonal_of_ones for eye.
#include <algorithm>
#include <cmath>

#include "base/convert.h"
#include "ops/graph/deferred.h"
#include "ops/graph/leaf.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

struct OneHot {
  static constexpr std::string_view kName = "one_hot";
  struct Attrs {
    std::int64_t num_classes = 0;
  };
  static constexpr auto fields = std::tuple{field("num_classes", &Attrs::num_classes)};
  static Meta infer(const Attrs& a, std::span<const Meta> in) {
    if (!is_integer(in[0].dtype)) fail<DTypeError>(kName, ": indices are ", in[0].dtype, "; cast them to an integer");
    if (a.num_classes < 0) fail<ValueError>(kName, ": num_classes is ", a.num_classes, "; it must not be negative");
    Meta out{DType::kFloat32, in[0].shape};
    out.shape.push_back(a.num_classes);
    return out;
  }
  static Placed place(const Attrs&, const PlaceArgs& args) {
    std::vector<int> axis_out;
    for (int axis = 0; axis < args.in[0].shape.ndim(); ++axis) axis_out.push_back(axis);
    return place_by_axis(args, axis_out, /*linear=*/false);
  }
  static void run(const Attrs& a, const KernelArgs& k) {
    const std::int64_t classes = a.num_classes;
    with_dtype(k.in_dtype(0), [&]<class T>(T) {
      const T* indices = k.input<T>(0);
      float* y = k.output<float>();
      kernels::parallel_for(k.in_shape(0).size(), 1 + 0.3 * static_cast<double>(classes),
                            [&](std::int64_t begin, std::int64_t end) {
                              std::fill(y + begin * classes, y + end * classes, 0.0f);
                              for (std::int64_t i = begin; i < end; ++i) {
                                const auto index = static_cast<std::int64_t>(indices[i]);
                                if (index >= 0 && index < classes) y[i * classes + index] = 1;
                              }
                            });
    });
  }
  static constexpr NoGradient grad{"indices are integers"};
};

SYNCLINE_REGISTER_OP(OneHot)

}  // namespace

Expr one_hot(const Expr& indices, const Dim& num_classes) {
  Meta unknown{DType::kFloat32, indices.shape()};
  unknown.shape.push_back(kUnknown);
  return with_numbers(
      "one_hot", {indices}, Dims::of_numbers("one_hot", {num_classes}), unknown,
      [](std::span<const Expr> operands, const Shape& numbers) { return apply<OneHot>({operands[0]}, {numbers[0]}); });
}

namespace {

// The distance of two int64 numbers may need more than 64 bits.
std::int64_t count_between(std::int64_t start, std::int64_t stop, std::int64_t step) {
  const __int128 distance = static_cast<__int128>(stop) - start, stride = step;
  const __int128 count = (distance + stride + (stride > 0 ? -1 : 1)) / stride;
  return static_cast<std::int64_t>(std::clamp<__int128>(count, 0, kLargestSize + 1));
}
std::int64_t count_between(double start, double stop, double step) {
  const double count = std::ceil((stop - start) / step);
  return static_cast<std::int64_t>(std::clamp(count, 0.0, static_cast<double>(kLargestSize + 1)));
}

// start + i * step, in int64 or in double.
template <class Number>
Expr numbers_between(Number start, Number stop, Number step, DType dtype) {
  const auto text = [&] { return join_text("arange(", start, ", ", stop, ", ", step, "): "); };
  if (step == 0) fail<ValueError>(text(), "step must not be 0");
  const std::int64_t count = count_between(start, stop, step);
  if (count > kLargestSize)
    fail<ShapeError>(text(), (static_cast<double>(stop) - static_cast<double>(start)) / static_cast<double>(step),
                     " elements exceed 2^47; give fewer");
  Array values(dtype, Shape{count});
  with_stored_dtype(dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < count; ++i)
      values.data<T>()[i] =
          convert<T>(static_cast<Number>(wrapping(start) + wrapping(static_cast<Number>(i)) * wrapping(step)));
  });
  return constant_of(std::move(values));
}

}  // namespace

Expr arange(double start, double stop, double step, DType dtype) {
  if (!std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step))
    fail<ValueError>("arange(", start, ", ", stop, ", ", step, "): the numbers must be finite");
  return numbers_between(start, stop, step, dtype);
}
Expr arange(double stop, DType dtype) { return arange(0, stop, 1, dtype); }
Expr arange(const Dim& start, const Dim& stop, const Dim& step, DType dtype) {
  return with_numbers(
      "arange", {}, Dims::of_numbers("arange", {start, stop, step}), {dtype, {kUnknown}},
      [dtype](std::span<const Expr>, const Shape& n) { return numbers_between(n[0], n[1], n[2], dtype); });
}
Expr arange(const Dim& stop, DType dtype) { return arange(Dim(0), stop, 1, dtype); }

Expr diagonal_of_ones(std::int64_t rows, std::int64_t columns, DType dtype) {
  if (rows < 0 || columns < 0) fail<ValueError>("eye: ", rows, " rows and ", columns, " columns; give 0 or more");
  check_size("eye", Shape{rows, columns});
  Array values(DType::kInt8, Shape{rows, columns});
  for (std::int64_t i = 0; i < std::min(rows, columns); ++i) values.data<std::int8_t>()[i * columns + i] = 1;
  return constant_of(values.cast(dtype));
}

}  // namespace syncline
