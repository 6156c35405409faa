// References of functions: plain loops in double.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/array.h"
#include "syncline/dtype.h"

namespace syncline::graphs {

// "" if `out` agrees with the reference of the elementwise op on `in`, or if the op has no reference; else the
// difference. Shapes that NumPy does not broadcast are a difference.
std::string check_elementwise(std::string_view op, const std::vector<Array>& in, const Array& out);

// The same for lines; `tape` is the line's tape.
std::string check_relu(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_sum(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_prod(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_max(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_min(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_mean(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);

// The same for lines of large matrices and images, where a kernel computes blocks. Some elements of products are
// checked.
std::string check_dot(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_dot_transposed(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_dot_kernel_grad(const std::vector<std::int64_t>& tape, const std::vector<Array>& in,
                                  const Array& out);
std::string check_conv2d(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
// Row 1 of the kernel's gradient.
std::string check_conv2d_gradient(const std::vector<std::int64_t>& tape, const std::vector<Array>& in,
                                  const Array& out);
std::string check_argmax(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_argmin(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);

// "" if `got` is about `wanted`, a sum of terms whose magnitudes sum to `size`, in this dtype; else the difference.
// Sums that may overflow on their way are not judged.
std::string check_sum_of_terms(std::int64_t element, double got, double wanted, double size, DType dtype);

}  // namespace syncline::graphs
