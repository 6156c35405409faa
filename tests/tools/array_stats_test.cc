#include "tools/array_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace syncline::tools {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ArrayStats, OfFiniteValuesOnly) {
  const ArrayStats stats = stats_of(Array::from<float>({6}, {3, kNan, -4, kInf, -kInf, 0}), 0);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.infinite, 2);
  EXPECT_EQ(stats.finite, 3);
  EXPECT_EQ(std::get<double>(stats.min.value()), -4);
  EXPECT_EQ(std::get<double>(stats.max.value()), 3);
  EXPECT_DOUBLE_EQ(stats.mean, -1.0 / 3);
  EXPECT_DOUBLE_EQ(stats.norm, 5);
  EXPECT_TRUE(stats.histogram.empty());
}

TEST(ArrayStats, NothingFinite) {
  for (const Array& array : {Array::from<float>({2}, {kNan, kInf}), Array(DType::kFloat32, {0, 3})}) {
    const ArrayStats stats = stats_of(array, 4);
    EXPECT_FALSE(stats.min || stats.max);
    EXPECT_EQ(stats.norm, 0);
    EXPECT_TRUE(stats.histogram.empty());
  }
}

TEST(ArrayStats, IntegersAreExact) {
  const std::int64_t big = std::numeric_limits<std::int64_t>::max(), small = std::numeric_limits<std::int64_t>::min();
  const ArrayStats stats = stats_of(Array::from<std::int64_t>({2}, {big, small}), 2);
  EXPECT_EQ(std::get<std::int64_t>(stats.min.value()), small);
  EXPECT_EQ(std::get<std::int64_t>(stats.max.value()), big);
  EXPECT_EQ(stats.mean, -0.5);
  EXPECT_EQ(stats.histogram, (std::vector<std::int64_t>{1, 1}));
}

TEST(ArrayStats, SquaresDoNotOverflow) {
  const double huge = std::numeric_limits<double>::max();
  const ArrayStats stats = stats_of(Array::from<double>({2}, {huge, -huge}), 3);
  EXPECT_EQ(stats.mean, 0);
  EXPECT_TRUE(std::isinf(stats.norm));  // the norm exceeds every double
  EXPECT_EQ(stats.histogram, (std::vector<std::int64_t>{1, 0, 1}));
  EXPECT_DOUBLE_EQ(stats_of(Array::from<double>({2}, {3e200, 4e200}), 0).norm, 5e200);
}

TEST(ArrayStats, Histogram) {
  const Array array = Array::from<float>({7}, {0, 0.5f, 1, 1.5f, 2, 4, kNan});
  EXPECT_EQ(stats_of(array, 4).histogram, (std::vector<std::int64_t>{2, 2, 1, 1}));
  EXPECT_EQ(stats_of(Array::from<float>({3}, {7, 7, 7}), 3).histogram, (std::vector<std::int64_t>{3, 0, 0}));
}

TEST(ArrayStats, EveryDtype) {
  for (const DType dtype : {DType::kBool, DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const ArrayStats stats = stats_of(Array::from<float>({4}, {0, 1, 1, 0}).cast(dtype), 2);
    EXPECT_EQ(stats.mean, 0.5) << dtype;
    EXPECT_EQ(stats.histogram, (std::vector<std::int64_t>{2, 2})) << dtype;
    EXPECT_EQ(std::holds_alternative<double>(stats.max.value()), is_floating(dtype)) << dtype;
  }
}

}  // namespace
}  // namespace syncline::tools
