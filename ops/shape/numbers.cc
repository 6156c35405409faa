// one_hot, arange and what eye is made of.
#include <algorithm>
#include <cmath>

#include "base/convert.h"
#include "ops/kernels/parallel.h"
#include "ops/leaf.h"
#include "ops/shape.h"

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

Expr arange(double start, double stop, double step, DType dtype) {
  if (step == 0 || !std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step))
    fail<ValueError>("arange(", start, ", ", stop, ", ", step, "): step must not be 0, and all numbers finite");
  const double size = std::max(0.0, std::ceil((stop - start) / step));
  if (!(size <= static_cast<double>(kLargestSize)))
    fail<ShapeError>("arange(", start, ", ", stop, ", ", step, "): ", size, " elements are beyond 2^47; give fewer");
  const auto n = static_cast<std::int64_t>(size);
  Array values(dtype, Shape{n});
  with_stored_dtype(dtype, [&]<class T>(T) {
    for (std::int64_t i = 0; i < n; ++i) values.data<T>()[i] = convert<T>(start + static_cast<double>(i) * step);
  });
  return constant_of(std::move(values));
}
Expr arange(double stop, DType dtype) { return arange(0, stop, 1, dtype); }
Expr arange(const Dim& start, const Dim& stop, const Dim& step, DType dtype) {
  return with_numbers("arange", {}, Dims::of_numbers("arange", {start, stop, step}), {dtype, {kUnknown}},
                      [dtype](std::span<const Expr>, const Shape& n) {
                        return arange(static_cast<double>(n[0]), static_cast<double>(n[1]), static_cast<double>(n[2]),
                                      dtype);
                      });
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
