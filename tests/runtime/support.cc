#include "tests/runtime/support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <sstream>

namespace syncline::testing {

Array doubles(Shape shape, std::vector<double> values) { return Array::from<double>(std::move(shape), values); }

Array doubles(std::vector<double> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return doubles(Shape{n}, std::move(values));
}

Array random_doubles(Shape shape, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  Array a(DType::kFloat64, std::move(shape));
  for (std::int64_t i = 0; i < a.size(); ++i) a.data<double>()[i] = static_cast<double>(engine() >> 11) * 0x1p-52 - 1;
  return a;
}

Array random_ints(Shape shape, std::int64_t below, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  Array a(DType::kInt32, std::move(shape));
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.data<std::int32_t>()[i] = static_cast<std::int32_t>(engine() % static_cast<std::uint64_t>(below));
  return a;
}

std::vector<double> numbers(const Array& a) {
  const Array wide = a.cast(DType::kFloat64);
  return {wide.values<double>().begin(), wide.values<double>().end()};
}

void expect_near(const Array& got, const Array& wanted, double tolerance, std::string_view what) {
  ASSERT_EQ(got.dtype(), wanted.dtype()) << what;
  ASSERT_EQ(got.shape(), wanted.shape()) << what;
  const auto a = numbers(got), b = numbers(wanted);
  const auto near = [&](double x, double y) {
    if (std::isfinite(x) && std::isfinite(y)) return std::abs(x - y) <= tolerance * std::max(1.0, std::abs(y));
    return x == y || (std::isnan(x) && std::isnan(y));
  };
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_TRUE(near(a[i], b[i])) << what << " element " << i << " of " << got.shape() << ": " << a[i] << " instead of "
                                  << b[i];
}

bool same_bits(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

std::vector<std::string> lines(const std::string& plan) {
  std::vector<std::string> result;
  std::istringstream in(plan);
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

int count_lines(const std::string& plan, std::string_view with) {
  const auto all = lines(plan);
  return static_cast<int>(std::count_if(all.begin(), all.end(),
                                        [&](const std::string& line) { return line.find(with) != std::string::npos; }));
}

int first_line(const std::string& plan, std::string_view with) {
  const auto all = lines(plan);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].find(with) != std::string::npos) return static_cast<int>(i);
  return -1;
}

int last_line(const std::string& plan, std::string_view with) {
  const auto all = lines(plan);
  for (std::size_t i = all.size(); i-- > 0;)
    if (all[i].find(with) != std::string::npos) return static_cast<int>(i);
  return -1;
}

void add_missing_exception(std::string_view wanted, std::string_view got) {
  ADD_FAILURE() << "expected an error of the given type, but got " << wanted << (got.empty() ? "" : ": ") << got;
}

}  // namespace syncline::testing
