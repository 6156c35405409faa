// convert() defines the casts that C++ leaves undefined. Array::cast agrees.
#include "base/convert.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "syncline/array.h"

namespace syncline {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

TEST(Convert, FloatingToIntegerGoesTowardsZero) {
  EXPECT_EQ(convert<std::int32_t>(2.9f), 2);
  EXPECT_EQ(convert<std::int64_t>(-2.9), -2);
  EXPECT_EQ(convert<std::uint8_t>(Float16(200.7f)), 200);
}

TEST(Convert, WhatDoesNotFitIsTheLowestValue) {
  EXPECT_EQ(convert<std::int32_t>(2147483647.0), 2147483647);
  for (const double x : {kNan, kInf, -kInf, 2147483648.0, -2147483649.0}) {
    EXPECT_EQ(convert<std::int32_t>(x), std::numeric_limits<std::int32_t>::lowest()) << x;
    EXPECT_EQ(convert<std::uint8_t>(x), 0) << x;
  }
  for (const double x : {kNan, kInf, -kInf, 0x1p63, -0x1.8p63})
    EXPECT_EQ(convert<std::int64_t>(x), std::numeric_limits<std::int64_t>::lowest()) << x;
  EXPECT_EQ(convert<std::int64_t>(-0x1p63f), std::numeric_limits<std::int64_t>::lowest());
  EXPECT_EQ(convert<std::int32_t>(Float16(kInf)), std::numeric_limits<std::int32_t>::lowest());
}

TEST(Convert, NarrowIntegersKeepTheLowBits) {
  EXPECT_EQ(convert<std::uint8_t>(-1.0f), 255);
  EXPECT_EQ(convert<std::uint8_t>(300.0), 44);
  EXPECT_EQ(convert<std::int8_t>(200.0f), -56);
  EXPECT_EQ(convert<std::int8_t>(std::int64_t{511}), -1);
}

TEST(Convert, AnythingButZeroIsTrue) {
  EXPECT_TRUE(convert<bool>(0.5f));
  EXPECT_TRUE(convert<bool>(kNan));
  EXPECT_FALSE(convert<bool>(-0.0));
  EXPECT_FALSE(convert<bool>(Float16::from_bits(0x8000)));
  EXPECT_TRUE(convert<bool>(Float16::from_bits(1)));
  EXPECT_EQ(static_cast<float>(convert<Float16>(true)), 1.0f);
}

TEST(Convert, ArraysCastBetweenAllDtypes) {
  constexpr std::array kAll{DType::kBool,  DType::kUint8,   DType::kInt8,    DType::kInt16,  DType::kInt32,
                            DType::kInt64, DType::kFloat16, DType::kFloat32, DType::kFloat64};
  const Array numbers = Array::from<std::int8_t>(Shape{3}, {0, 1, 100});
  for (const DType from : kAll)
    for (const DType to : kAll) {
      const bool truth = from == DType::kBool || to == DType::kBool;
      const Array result = numbers.cast(from).cast(to);
      EXPECT_EQ(result.dtype(), to);
      EXPECT_EQ(result.rows(0, 1).item(), 0) << from << " to " << to;
      EXPECT_EQ(result.rows(2, 3).item(), truth ? 1 : 100) << from << " to " << to;
    }
}

TEST(Convert, ArraysCastIntoOthers) {
  const Array numbers = Array::from<double>(Shape{2, 2}, {1, 2, 3, 4});
  Array target = Array::from<std::int32_t>(Shape{4}, {0, 0, 0, 0});
  numbers.cast_into(target, 1, 3);
  EXPECT_EQ(std::vector(target.values<std::int32_t>().begin(), target.values<std::int32_t>().end()),
            (std::vector<std::int32_t>{0, 2, 3, 0}));
  EXPECT_THROW(numbers.cast_into(target, 0, 5), ShapeError);
  EXPECT_THROW(numbers.cast_into(target, -1, 2), ShapeError);
  Array smaller = Array::uninitialized(DType::kFloat32, Shape{3});
  EXPECT_THROW(numbers.cast_into(smaller, 0, 3), ShapeError);
  EXPECT_THROW(Array::uninitialized(DType::kFloat32, Shape{kUnknown}), ShapeError);
}

TEST(Convert, NamesOfDtypesAreTheirOwnInverse) {
  for (int code = 0; code <= static_cast<int>(DType::kFloat64); ++code) {
    const auto dtype = static_cast<DType>(code);
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  }
  EXPECT_EQ(name_of(DType::kFloat16), "float16");
  EXPECT_EQ(size_of(DType::kFloat16), 2u);
  EXPECT_THROW(parse_dtype("float15"), DTypeError);
}

}  // namespace
}  // namespace syncline
