// pow: the C library's special cases and its accuracy.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/session.h"

namespace syncline::testing {
namespace {

template <class T>
std::vector<T> numbers() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x{0,
                   Limits::infinity(),
                   Limits::quiet_NaN(),
                   Limits::denorm_min(),
                   Limits::min(),
                   Limits::max(),
                   1,
                   2,
                   3,
                   T(0.5),
                   T(1.5),
                   T(1) + Limits::epsilon(),
                   T(1) - Limits::epsilon(),
                   T(8388607.5),
                   T(16777215),
                   T(16777216),
                   T(1e-3),
                   T(37.25)};
  const std::size_t positive = x.size();
  for (std::size_t i = 0; i < positive; ++i) x.push_back(-x[i]);
  return x;
}

// The result's class, sign and value; relative errors count in units in the last place.
template <class T>
void expect_power(T got, T x, T y) {
  const T wanted = std::pow(x, y);
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got)) << x << " ^ " << y << " = " << got;
    return;
  }
  EXPECT_EQ(std::signbit(got), std::signbit(wanted)) << x << " ^ " << y << " = " << got;
  if (wanted == 0 || std::isinf(wanted)) {
    EXPECT_EQ(got, wanted) << x << " ^ " << y;
    return;
  }
  const T unit = std::max(std::abs(wanted) * std::numeric_limits<T>::epsilon(), std::numeric_limits<T>::denorm_min());
  EXPECT_LE(std::abs(got - wanted), unit) << x << " ^ " << y << " = " << got;
}

template <class T>
void check() {
  Session session(1);
  SessionScope scope(session);
  const std::vector<T> values = numbers<T>();
  std::vector<T> bases, exponents;
  for (const T x : values)
    for (const T y : values) {
      bases.push_back(x);
      exponents.push_back(y);
    }
  for (int i = 0; i < 5000; ++i) {
    bases.push_back(static_cast<T>(std::exp(0.004 * (i - 2500))));
    exponents.push_back(static_cast<T>(std::sin(0.7 * i) * 8));
  }
  const auto count = static_cast<std::int64_t>(bases.size());
  const Expr x = placeholder({.shape = {kUnknown}, .dtype = dtype_of<T>()}),
             y = placeholder({.shape = {kUnknown}, .dtype = dtype_of<T>()});
  Function f({x, y}, {pow(x, y)});
  const Array got = f({Array::from<T>({count}, bases), Array::from<T>({count}, exponents)})[0];
  for (std::size_t i = 0; i < bases.size(); ++i) expect_power(got.template data<T>()[i], bases[i], exponents[i]);
  for (std::size_t i = 0; i < bases.size(); i += 37) {
    const Array alone = f({Array::from<T>({1}, {bases[i]}), Array::from<T>({1}, {exponents[i]})})[0];
    const T together = got.template data<T>()[i], single = alone.template data<T>()[0];
    EXPECT_TRUE(single == together || (std::isnan(single) && std::isnan(together)))
        << bases[i] << " ^ " << exponents[i];
  }
}

TEST(Pow, IsTheLibrarysInFloat32) { check<float>(); }
TEST(Pow, IsTheLibrarysInFloat64) { check<double>(); }

// A constant exponent that becomes products.
TEST(Pow, CubesOfSpecialNumbers) {
  Session session(1);
  SessionScope scope(session);
  const std::vector<float> values = numbers<float>();
  const auto count = static_cast<std::int64_t>(values.size());
  const Expr x = placeholder({.shape = {kUnknown}});
  const Array got = Function({x}, {pow(x, 3.0)})({Array::from<float>({count}, values)})[0];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float wanted = std::pow(values[i], 3.0f);
    EXPECT_TRUE(got.data<float>()[i] == wanted || (std::isnan(wanted) && std::isnan(got.data<float>()[i])) ||
                std::abs(got.data<float>()[i] - wanted) <= 2e-7f * std::abs(wanted))
        << values[i] << " ^ 3 = " << got.data<float>()[i];
  }
}

}  // namespace
}  // namespace syncline::testing
