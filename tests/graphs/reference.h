// What functions compute, by other means: plain loops in double.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/array.h"

namespace syncline::graphs {

// Of an elementwise op by its name, where there is a reference: "" if `out` is what it computes of `in`, or what is
// wrong. Refuses what NumPy's broadcasting refuses.
std::string check_elementwise(std::string_view op, const std::vector<Array>& in, const Array& out);

// Of lines; `tape` as their entries write it.
std::string check_relu(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_sum(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_prod(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_max(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_min(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);
std::string check_mean(const std::vector<std::int64_t>& tape, const std::vector<Array>& in, const Array& out);

}  // namespace syncline::graphs
