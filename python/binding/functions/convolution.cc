// Convolution, pooling and biases.
#include "syncline/backend/convolution.h"

#include <nanobind/stl/string.h>

#include "ops/graph/deferred.h"
#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/tensor.h"
#include "syncline/backend/linalg.h"

namespace syncline::python {
namespace {

using Text = const std::string&;

// n numbers; a single one applies to all axes.
template <std::size_t n>
std::array<int, n> numbers(nb::handle value, const char* what) {
  const std::vector<std::int64_t> given = integers_from(value);
  std::array<int, n> result{};
  if (given.size() != n && given.size() != 1)
    fail<ValueError>(what, ": ", given.size(), " numbers for ", n, " axes; give one number, or one per axis");
  for (std::size_t i = 0; i < n; ++i) result[i] = int_from(given[given.size() == 1 ? 0 : i], what);
  return result;
}

int number(nb::handle value, const char* what) { return numbers<1>(value, what)[0]; }

Conv1DOptions options_1d(nb::handle strides, Text padding, Text data_format, nb::handle dilation_rate) {
  return {number(strides, "strides"), padding, data_format, number(dilation_rate, "dilation_rate")};
}
Conv2DOptions options_2d(nb::handle strides, Text padding, Text data_format, nb::handle dilation_rate) {
  return {numbers<2>(strides, "strides"), padding, data_format, numbers<2>(dilation_rate, "dilation_rate")};
}
Conv3DOptions options_3d(nb::handle strides, Text padding, Text data_format, nb::handle dilation_rate) {
  return {numbers<3>(strides, "strides"), padding, data_format, numbers<3>(dilation_rate, "dilation_rate")};
}

// Calls rule(x, kernel, output_shape) when the sizes of output_shape that are tensors are known. Until then an unknown
// number of rows is x's.
template <class Rule>
Tensor transposed(const char* name, nb::handle x, nb::handle kernel, nb::handle output_shape, Rule rule) {
  const Dims dims = dims_from(output_shape);
  std::vector<Expr> operands{expr_from(x), expr_from(kernel)};
  if (!dims.has_tensors()) return tensor(rule(operands[0], operands[1], dims.numbers()));
  Meta unknown{operands[0].dtype(), dims.numbers()};
  if (unknown.shape.ndim() > 0 && unknown.shape[0] == kUnknown) unknown.shape[0] = operands[0].shape()[0];
  return tensor(with_numbers(
      name, std::move(operands), dims, unknown,
      [rule](std::span<const Expr> known, const Shape& numbers) { return rule(known[0], known[1], numbers); }));
}

void bind_dense(nb::module_& m) {
  m.def("conv1d", [](nb::handle x, nb::handle kernel, nb::handle strides, Text padding, Text format, nb::handle rate) {
    return tensor(conv1d(expr_from(x), expr_from(kernel), options_1d(strides, padding, format, rate)));
  });
  m.def("conv2d", [](nb::handle x, nb::handle kernel, nb::handle strides, Text padding, Text format, nb::handle rate) {
    return tensor(conv2d(expr_from(x), expr_from(kernel), options_2d(strides, padding, format, rate)));
  });
  m.def("conv3d", [](nb::handle x, nb::handle kernel, nb::handle strides, Text padding, Text format, nb::handle rate) {
    return tensor(conv3d(expr_from(x), expr_from(kernel), options_3d(strides, padding, format, rate)));
  });
  m.def("conv2d_transpose", [](nb::handle x, nb::handle kernel, nb::handle output_shape, nb::handle strides,
                               Text padding, Text format, nb::handle rate) {
    const Conv2DOptions options = options_2d(strides, padding, format, rate);
    return transposed("conv2d_transpose", x, kernel, output_shape,
                      [options](const Expr& values, const Expr& weights, const Shape& shape) {
                        return conv2d_transpose(values, weights, shape, options);
                      });
  });
  m.def("conv3d_transpose", [](nb::handle x, nb::handle kernel, nb::handle output_shape, nb::handle strides,
                               Text padding, Text format, nb::handle rate) {
    const Conv3DOptions options = options_3d(strides, padding, format, rate);
    return transposed("conv3d_transpose", x, kernel, output_shape,
                      [options](const Expr& values, const Expr& weights, const Shape& shape) {
                        return conv3d_transpose(values, weights, shape, options);
                      });
  });
}

void bind_separable(nb::module_& m) {
  m.def("separable_conv1d", [](nb::handle x, nb::handle depthwise, nb::handle pointwise, nb::handle strides,
                               Text padding, Text format, nb::handle rate) {
    return tensor(separable_conv1d(expr_from(x), expr_from(depthwise), expr_from(pointwise),
                                   options_1d(strides, padding, format, rate)));
  });
  m.def("separable_conv2d", [](nb::handle x, nb::handle depthwise, nb::handle pointwise, nb::handle strides,
                               Text padding, Text format, nb::handle rate) {
    return tensor(separable_conv2d(expr_from(x), expr_from(depthwise), expr_from(pointwise),
                                   options_2d(strides, padding, format, rate)));
  });
  m.def("depthwise_conv2d",
        [](nb::handle x, nb::handle kernel, nb::handle strides, Text padding, Text format, nb::handle rate) {
          return tensor(depthwise_conv2d(expr_from(x), expr_from(kernel), options_2d(strides, padding, format, rate)));
        });
  m.def("local_conv1d",
        [](nb::handle inputs, nb::handle kernel, nb::handle kernel_size, nb::handle strides, Text format) {
          return tensor(local_conv1d(expr_from(inputs), expr_from(kernel), number(kernel_size, "kernel_size"),
                                     number(strides, "strides"), format));
        });
  m.def("local_conv2d", [](nb::handle inputs, nb::handle kernel, nb::handle kernel_size, nb::handle strides,
                           nb::handle output_shape, Text format) {
    return tensor(local_conv2d(expr_from(inputs), expr_from(kernel), numbers<2>(kernel_size, "kernel_size"),
                               numbers<2>(strides, "strides"), numbers<2>(output_shape, "output_shape"), format));
  });
}

}  // namespace

void bind_convolution(nb::module_& m) {
  bind_dense(m);
  bind_separable(m);
  m.def("pool2d", [](nb::handle x, nb::handle pool_size, nb::handle strides, Text padding, Text format, Text mode) {
    return tensor(pool2d(expr_from(x), numbers<2>(pool_size, "pool_size"),
                         {numbers<2>(strides, "strides"), padding, format, mode}));
  });
  m.def("pool3d", [](nb::handle x, nb::handle pool_size, nb::handle strides, Text padding, Text format, Text mode) {
    return tensor(pool3d(expr_from(x), numbers<3>(pool_size, "pool_size"),
                         {numbers<3>(strides, "strides"), padding, format, mode}));
  });
  m.def("bias_add", [](nb::handle x, nb::handle bias, Text format) {
    return tensor(bias_add(expr_from(x), expr_from(bias), format));
  });
}

}  // namespace syncline::python
