// Convolution, pooling and biases.
#include "syncline/backend/convolution.h"

#include <nanobind/stl/string.h>

#include "ops/graph/deferred.h"
#include "python/binding/binding.h"
#include "python/binding/conversion.h"
#include "python/binding/tensor.h"

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

template <class Options>
Options options(nb::handle strides, Text padding, Text data_format, nb::handle dilation_rate) {
  if constexpr (std::is_same_v<Options, Conv1DOptions>) {
    return {number(strides, "strides"), padding, data_format, number(dilation_rate, "dilation_rate")};
  } else {
    constexpr std::size_t n = std::tuple_size_v<decltype(Options::strides)>;
    return {numbers<n>(strides, "strides"), padding, data_format, numbers<n>(dilation_rate, "dilation_rate")};
  }
}

template <class Options>
void plain(nb::module_& m, const char* name, Expr (*op)(const Expr&, const Expr&, const Options&)) {
  m.def(name, [op](nb::handle x, nb::handle kernel, nb::handle strides, Text padding, Text format, nb::handle rate) {
    return tensor(op(expr_from(x), expr_from(kernel), options<Options>(strides, padding, format, rate)));
  });
}

template <class Options>
void separable(nb::module_& m, const char* name, Expr (*op)(const Expr&, const Expr&, const Expr&, const Options&)) {
  m.def(name, [op](nb::handle x, nb::handle depthwise, nb::handle pointwise, nb::handle strides, Text padding,
                   Text format, nb::handle rate) {
    return tensor(
        op(expr_from(x), expr_from(depthwise), expr_from(pointwise), options<Options>(strides, padding, format, rate)));
  });
}

// Calls op when the sizes of output_shape that are tensors are known. Until then an unknown number of rows is x's.
template <class Options>
void transposed(nb::module_& m, const char* name, Expr (*op)(const Expr&, const Expr&, const Shape&, const Options&)) {
  m.def(name, [name, op](nb::handle x, nb::handle kernel, nb::handle output_shape, nb::handle strides, Text padding,
                         Text format, nb::handle rate) {
    const Options given = options<Options>(strides, padding, format, rate);
    const Dims dims = dims_from(output_shape);
    std::vector<Expr> operands{expr_from(x), expr_from(kernel)};
    Meta unknown{operands[0].dtype(), dims.numbers()};
    if (dims.has_tensors() && unknown.shape[0] == kUnknown) unknown.shape[0] = operands[0].shape()[0];
    return tensor(with_numbers(name, std::move(operands), dims, unknown,
                               [op, given](std::span<const Expr> known, const Shape& numbers) {
                                 return op(known[0], known[1], numbers, given);
                               }));
  });
}

void bind_dense(nb::module_& m) {
  plain(m, "conv1d", conv1d);
  plain(m, "conv2d", conv2d);
  plain(m, "conv3d", conv3d);
  transposed(m, "conv2d_transpose", conv2d_transpose);
  transposed(m, "conv3d_transpose", conv3d_transpose);
}

void bind_separable(nb::module_& m) {
  separable(m, "separable_conv1d", separable_conv1d);
  separable(m, "separable_conv2d", separable_conv2d);
  plain(m, "depthwise_conv2d", depthwise_conv2d);
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
