// References of kernels that compute blocks.
#include <algorithm>
#include <cmath>

#include "syncline/error.h"
#include "tests/graphs/reference.h"

namespace syncline::graphs {
namespace {

constexpr std::int64_t kMostChecked = 150;  // elements of a result

std::vector<double> numbers(const Array& a) {
  const Array wide = a.cast(DType::kFloat64);
  return {wide.values<double>().begin(), wide.values<double>().end()};
}

// Elements from the first to the last one, at most about kMostChecked.
std::vector<std::int64_t> some_of(std::int64_t size) {
  std::vector<std::int64_t> elements;
  for (std::int64_t i = 0; i < size; i += 1 + size / kMostChecked) elements.push_back(i);
  if (size > 0 && elements.back() != size - 1) elements.push_back(size - 1);
  return elements;
}

// A sum of products, and of their magnitudes.
struct Sum {
  double value = 0, size = 0;
  void add(double a, double b) {
    value += a * b;
    size += std::abs(a * b);
  }
};

double largest_of(const std::vector<double>& all) {
  double largest = 0;
  for (const double v : all) largest = std::abs(v) <= largest ? largest : std::abs(v);  // NaN stays
  return largest;
}

// A convolution of images (samples, rows, columns, channels) with strides of 1, valid or same.
struct Convolution {
  Shape x, kernel, y;
  std::int64_t taps() const { return kernel[0] * kernel[1]; }
  // The pixel of the images under a tap that makes a pixel of the result, or -1 outside the image.
  std::int64_t under(std::int64_t pixel, std::int64_t tap) const {
    const std::int64_t row = pixel / y[2] % y[1] + tap / kernel[1] - before(1);
    const std::int64_t column = pixel % y[2] + tap % kernel[1] - before(2);
    if (row < 0 || row >= x[1] || column < 0 || column >= x[2]) return -1;
    return (pixel / (y[1] * y[2]) * x[1] + row) * x[2] + column;
  }
  // False if `y` is the gradient of another shape, which was broadcast.
  bool fits() const {
    const auto is_size = [&](int axis) { return y[axis] == x[axis] || y[axis] == x[axis] - kernel[axis - 1] + 1; };
    return y[0] == x[0] && is_size(1) && is_size(2) && y[3] == kernel[3];
  }
  std::int64_t before(int axis) const { return y[axis] == x[axis] ? (kernel[axis - 1] - 1) / 2 : 0; }
};

// The product of matrices; a transposed one has its terms' axis where a plain one has the other axis.
std::string check_product(const std::vector<Array>& in, const Array& out, bool first_transposed,
                          bool second_transposed) {
  const Array &x = in[0], &y = in[1];
  const std::int64_t terms = x.shape()[first_transposed ? 0 : 1];
  const Shape wanted{x.shape()[first_transposed ? 1 : 0], y.shape()[second_transposed ? 0 : 1]};
  if (out.shape() != wanted) return join_text("has the shape ", out.shape(), ", wanted ", wanted);
  const std::vector<double> a = numbers(x), b = numbers(y), got = numbers(out);
  const auto at = [](const std::vector<double>& from, std::int64_t row, std::int64_t column, std::int64_t columns) {
    return from[static_cast<std::size_t>(row * columns + column)];
  };
  for (const std::int64_t element : some_of(out.size())) {
    const std::int64_t i = element / wanted[1], j = element % wanted[1];
    Sum sum;
    for (std::int64_t k = 0; k < terms; ++k)
      sum.add(first_transposed ? at(a, k, i, wanted[0]) : at(a, i, k, terms),
              second_transposed ? at(b, j, k, terms) : at(b, k, j, wanted[1]));
    // Equal terms round alike: the error may grow with their number.
    const double size = sum.size * (1 + static_cast<double>(terms) / 256);
    std::string wrong =
        check_sum_of_terms(element, got[static_cast<std::size_t>(element)], sum.value, size, out.dtype());
    if (!wrong.empty()) return wrong;
  }
  return {};
}

// The first extreme element along the axis of a matrix; a NaN is extreme.
std::string check_arg(const Array& x, std::int64_t axis, const Array& out, double sign) {
  axis = axis < 0 ? axis + 2 : axis;
  const std::int64_t length = x.shape()[static_cast<int>(axis)], step = axis == 1 ? 1 : x.shape()[1];
  const std::vector<double> all = numbers(x), got = numbers(out);
  for (std::int64_t slice = 0; slice < out.size(); ++slice) {
    const auto at = [&](std::int64_t i) {
      return sign * all[static_cast<std::size_t>(i * step + slice * (axis == 1 ? length : 1))];
    };
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < length; ++i)
      if (at(i) > at(best) || (std::isnan(at(i)) && !std::isnan(at(best)))) best = i;
    if (got[static_cast<std::size_t>(slice)] != static_cast<double>(best))
      return join_text("element ", slice, " is ", got[static_cast<std::size_t>(slice)], ", wanted ", best);
  }
  return {};
}

}  // namespace

std::string check_dot(const std::vector<std::int64_t>& /*tape*/, const std::vector<Array>& in, const Array& out) {
  return check_product(in, out, false, false);
}
std::string check_dot_transposed(const std::vector<std::int64_t>& /*tape*/, const std::vector<Array>& in,
                                 const Array& out) {
  return check_product(in, out, false, true);
}
std::string check_dot_kernel_grad(const std::vector<std::int64_t>& /*tape*/, const std::vector<Array>& in,
                                  const Array& out) {
  return check_product(in, out, true, false);
}

std::string check_conv2d(const std::vector<std::int64_t>& /*tape*/, const std::vector<Array>& in, const Array& out) {
  const Convolution at{in[0].shape(), in[1].shape(), out.shape()};
  const std::int64_t channels = at.x[3], outputs = at.y[3];
  const std::vector<double> image = numbers(in[0]), kernel = numbers(in[1]), got = numbers(out);
  // Winograd's errors are as large as those of the largest elements nearby.
  const double size = largest_of(image) * largest_of(kernel) * static_cast<double>(at.taps() * channels);
  for (const std::int64_t element : some_of(out.size())) {
    Sum sum;
    for (std::int64_t tap = 0; tap < at.taps(); ++tap) {
      const std::int64_t from = at.under(element / outputs, tap);
      for (std::int64_t c = 0; from >= 0 && c < channels; ++c)
        sum.add(image[static_cast<std::size_t>(from * channels + c)],
                kernel[static_cast<std::size_t>((tap * channels + c) * outputs + element % outputs)]);
    }
    std::string wrong =
        check_sum_of_terms(element, got[static_cast<std::size_t>(element)], sum.value, size, out.dtype());
    if (!wrong.empty()) return wrong;
  }
  return {};
}

std::string check_conv2d_gradient(const std::vector<std::int64_t>& /*tape*/, const std::vector<Array>& in,
                                  const Array& out) {
  const Convolution at{in[0].shape(), in[1].shape(), in[2].shape()};
  const std::int64_t channels = at.x[3], outputs = at.y[3], pixels = at.y[0] * at.y[1] * at.y[2];
  if (!at.fits()) return {};
  const std::vector<double> image = numbers(in[0]), dy = numbers(in[2]), got = numbers(out);
  const double size = largest_of(image) * largest_of(dy) * static_cast<double>(pixels);
  for (const std::int64_t element : some_of(out.size())) {
    const std::int64_t tap = at.kernel[1] + element / (channels * outputs), c = element / outputs % channels;
    Sum sum;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
      if (const std::int64_t from = at.under(pixel, tap); from >= 0)
        sum.add(image[static_cast<std::size_t>(from * channels + c)],
                dy[static_cast<std::size_t>(pixel * outputs + element % outputs)]);
    std::string wrong =
        check_sum_of_terms(element, got[static_cast<std::size_t>(element)], sum.value, size, out.dtype());
    if (!wrong.empty()) return wrong;
  }
  return {};
}

// The last two numbers of these lines' tapes are the axis and the flag `least`.
std::string check_argmax(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out) {
  return check_arg(in[0], tape[tape.size() - 2], out, 1);
}
std::string check_argmin(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out) {
  return check_arg(in[0], tape[tape.size() - 2], out, -1);
}

}  // namespace syncline::graphs
