// Arrays from numbers, comparisons, and searches in a plan's text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline::testing {

Array doubles(Shape shape, std::vector<double> values);
Array doubles(std::vector<double> values);  // a vector
// Uniform in [-1, 1), the same for the same seed.
Array random_doubles(Shape shape, std::uint64_t seed);
// int32 in [0, below).
Array random_ints(Shape shape, std::int64_t below, std::uint64_t seed);

std::vector<double> numbers(const Array& a);

// Compares dtype, shape and every element: |difference| <= tolerance * max(1, |wanted|).
void expect_near(const Array& got, const Array& wanted, double tolerance, std::string_view what = {});
inline void expect_values(const Array& got, std::vector<double> wanted, double tolerance = 1e-12) {
  expect_near(got.cast(DType::kFloat64), doubles(got.shape(), std::move(wanted)), tolerance);
}
bool same_bits(const Array& a, const Array& b);

// The message of the E that `call` throws. Otherwise the test fails, and the result is "".
template <class E, class F>
std::string message_of(F&& call);

// A plan's lines; how many contain a text; the index of the first and of the last such line, or -1.
std::vector<std::string> lines(const std::string& plan);
int count_lines(const std::string& plan, std::string_view with);
int first_line(const std::string& plan, std::string_view with);
int last_line(const std::string& plan, std::string_view with);

void add_missing_exception(std::string_view wanted, std::string_view got);

template <class E, class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    add_missing_exception("another exception", e.what());
    return {};
  }
  add_missing_exception("no exception", "");
  return {};
}

}  // namespace syncline::testing
