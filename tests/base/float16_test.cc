// Float16 against the definition of the format, in double arithmetic.
#include "syncline/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace syncline {
namespace {

// The value that the bits stand for: sign, five bits of exponent with a bias of 15, ten bits of fraction.
double value_of(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 != 0 ? -magnitude : magnitude;
}

TEST(Float16, EveryHalfWidensToItsValueAndComesBack) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const Float16 half = Float16::from_bits(static_cast<std::uint16_t>(i));
    const double wanted = value_of(half.bits);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(half))) << i;
      ASSERT_TRUE(std::isnan(static_cast<float>(Float16(static_cast<float>(half))))) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(half), wanted) << i;
    ASSERT_EQ(std::signbit(static_cast<float>(half)), std::signbit(wanted)) << i;
    ASSERT_EQ(Float16(static_cast<float>(half)).bits, half.bits) << i;
    ASSERT_EQ(Float16(static_cast<double>(half)).bits, half.bits) << i;
  }
}

// Between two neighbours: the midpoint rounds to the even one, any other number to the nearer one.
TEST(Float16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint16_t low = 0; low < 0x7bff; ++low) {
    const std::uint16_t high = low + 1, even = low % 2 == 0 ? low : high;
    const double middle = (value_of(low) + value_of(high)) / 2;
    const auto narrow = static_cast<float>(middle);  // exact
    ASSERT_EQ(Float16(narrow).bits, even) << low;
    ASSERT_EQ(Float16(std::nextafter(narrow, 0.0f)).bits, low) << low;
    ASSERT_EQ(Float16(std::nextafter(narrow, 1e9f)).bits, high) << low;
    ASSERT_EQ(Float16(-narrow).bits, even | 0x8000) << low;
    // Closer to the midpoint than any float: rounding to float first would be wrong.
    ASSERT_EQ(Float16(middle).bits, even) << low;
    ASSERT_EQ(Float16(std::nextafter(middle, 0.0)).bits, low) << low;
    ASSERT_EQ(Float16(std::nextafter(middle, 1e9)).bits, high) << low;
    ASSERT_EQ(Float16(-std::nextafter(middle, 1e9)).bits, high | 0x8000) << low;
  }
}

TEST(Float16, WhatIsTooLargeIsInfinite) {
  EXPECT_EQ(Float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Float16(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Float16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(Float16(1e300).bits, 0x7c00);
  EXPECT_EQ(Float16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
  EXPECT_EQ(Float16(std::numeric_limits<std::int64_t>::lowest()).bits, 0xfc00);
  EXPECT_EQ(Float16(65519).bits, 0x7bff);
}

TEST(Float16, WhatIsTooSmallIsZeroWithItsSign) {
  EXPECT_EQ(Float16(0x1p-25f).bits, 0);
  EXPECT_EQ(Float16(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
  EXPECT_EQ(Float16(-0x1p-26f).bits, 0x8000);
  EXPECT_EQ(Float16(-1e-300).bits, 0x8000);
  EXPECT_EQ(Float16(0.0f).bits, 0);
}

}  // namespace
}  // namespace syncline
