// References of functions: plain loops in double.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/array.h"

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

}  // namespace syncline::graphs
