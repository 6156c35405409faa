// argmax and argmin against a plain search: every length around a vector's, rows and columns, ties, NaN, every dtype.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "syncline/backend/function.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"

namespace syncline::testing {
namespace {

template <class T>
std::int64_t best_of(const T* x, std::int64_t length, std::int64_t inner, bool largest) {
  std::int64_t best = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    if (std::isnan(static_cast<double>(x[i * inner]))) return i;
    if (largest ? x[i * inner] > x[best * inner] : x[i * inner] < x[best * inner]) best = i;
  }
  return best;
}

template <class T>
std::vector<T> elements(std::int64_t count, std::mt19937& random) {
  std::vector<T> x;
  for (std::int64_t i = 0; i < count; ++i) {
    x.push_back(static_cast<T>(random() % 7));  // ties
    if constexpr (std::is_floating_point_v<T>) {
      if (random() % 40 == 0) x.back() = std::numeric_limits<T>::quiet_NaN();
      if (random() % 40 == 0) x.back() = -std::numeric_limits<T>::infinity();
      if (random() % 9 == 0) x.back() = T(-0.0);
    }
  }
  return x;
}

template <class T>
void check() {
  Session session(2);
  SessionScope scope(session);
  const Expr x = placeholder({.shape = {kUnknown, kUnknown, kUnknown}, .dtype = dtype_of<T>()});
  Function f({x}, {argmax(x, 1), argmin(x, 1)});
  std::mt19937 random(3);
  for (const std::int64_t inner : {1, 2, 17})
    for (std::int64_t length = 1; length < 70; length += length < 36 ? 1 : 11) {
      const std::int64_t outer = 5;
      const std::vector<T> values = elements<T>(outer * length * inner, random);
      const std::vector<Array> got = f({Array::from<T>({outer, length, inner}, values)});
      for (std::int64_t i = 0; i < outer * inner; ++i) {
        const T* slice = values.data() + i / inner * length * inner + i % inner;
        ASSERT_EQ(got[0].data<std::int64_t>()[i], best_of(slice, length, inner, true)) << length << " by " << inner;
        ASSERT_EQ(got[1].data<std::int64_t>()[i], best_of(slice, length, inner, false)) << length << " by " << inner;
      }
    }
}

// The best element, an equal one behind it (of zeros, 0 and -0), and a NaN, at the borders of the blocks in which a
// long row is searched.
template <class T>
void check_long_rows() {
  const Expr x = placeholder({.shape = {kUnknown}, .dtype = dtype_of<T>()});
  Function f({x}, {argmax(x, 0), argmin(x, 0)});
  constexpr std::size_t kPlaces[] = {0, 1, 4090, 4095, 4096, 8191, 8192, 9000};
  for (const bool largest : {true, false})
    for (const std::size_t first : kPlaces)
      for (const std::size_t second : kPlaces) {
        std::vector<T> values(9001);
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<T>(1 + i % 100);
          if (largest && std::is_signed_v<T>) values[i] = static_cast<T>(-values[i]);
        }
        const T best = largest && !std::is_signed_v<T> ? T(101) : T(0);
        values[first] = best;
        values[second] = static_cast<T>(-best);
        if constexpr (!std::is_signed_v<T>) values[second] = best;
        const auto index = [&] {
          return f({Array::from<T>({9001}, values)})[largest ? 0 : 1].template data<std::int64_t>()[0];
        };
        ASSERT_EQ(index(), static_cast<std::int64_t>(std::min(first, second))) << largest;
        if constexpr (std::is_floating_point_v<T>) {
          values[second] = std::numeric_limits<T>::quiet_NaN();
          ASSERT_EQ(index(), static_cast<std::int64_t>(second)) << first << ", " << largest;
        }
      }
}

TEST(Arg, OfLongRows) {
  check_long_rows<float>();
  check_long_rows<double>();
  check_long_rows<std::int32_t>();
  check_long_rows<std::int64_t>();
  check_long_rows<std::int16_t>();
  check_long_rows<std::uint8_t>();
}

TEST(Arg, OfFloat32) { check<float>(); }
TEST(Arg, OfFloat64) { check<double>(); }
TEST(Arg, OfInt32) { check<std::int32_t>(); }
TEST(Arg, OfInt64) { check<std::int64_t>(); }
TEST(Arg, OfInt16) { check<std::int16_t>(); }
TEST(Arg, OfUint8) { check<std::uint8_t>(); }

}  // namespace
}  // namespace syncline::testing
