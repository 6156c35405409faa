#include "tools/array_diff.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace syncline::tools {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

Array floats(std::initializer_list<float> values) {
  return Array::from<float>({static_cast<std::int64_t>(values.size())}, values);
}

TEST(ArrayDiff, EqualValues) {
  const ArrayDifference same = compare(floats({1, kNan, kInf, 0}), floats({1, -kNan, kInf, -0.0f}), {});
  EXPECT_EQ(same.elements, 4);
  EXPECT_EQ(same.differing, 0);
  EXPECT_EQ(same.absolute.at, -1);
}

TEST(ArrayDiff, LargestDifferencesAndWhereTheyAre) {
  // The largest absolute difference is in the last pair, the relative one across zero, that in ULPs in the first pair.
  const ArrayDifference d = compare(floats({1, 5, -0x1p-149f, 1000}), floats({4, 5, 0x1p-149f, 1010}), {});
  EXPECT_EQ(d.differing, 3);
  EXPECT_EQ(d.absolute.value, 10);
  EXPECT_EQ(d.absolute.at, 3);
  EXPECT_EQ(d.relative.value, 2);
  EXPECT_EQ(d.relative.at, 2);
  EXPECT_EQ(d.ulps->value, std::uint64_t{0x1000000});
  EXPECT_EQ(d.ulps->at, 0);
  EXPECT_EQ(d.special, 0);
}

TEST(ArrayDiff, Ulps) {
  const auto between = [](float a, float b) { return compare(floats({a}), floats({b}), {}).ulps->value; };
  EXPECT_EQ(between(1, std::nextafter(1.0f, 2.0f)), 1u);
  EXPECT_EQ(between(-1, std::nextafter(-1.0f, 0.0f)), 1u);
  EXPECT_EQ(between(-0x1p-149f, 0x1p-149f), 2u);
  EXPECT_EQ(between(0, 0x1p-149f), 1u);
  const Array one = Array::from<double>({1}, {1.0}), next = Array::from<double>({1}, {std::nextafter(1.0, 0.0)});
  EXPECT_EQ(compare(one, next, {}).ulps->value, 1u);
  const double huge = std::numeric_limits<double>::max();
  EXPECT_EQ(compare(Array::from<double>({1}, {-huge}), Array::from<double>({1}, {huge}), {}).ulps->value,
            2 * std::uint64_t{0x7fefffffffffffff});
  EXPECT_EQ(
      compare(Array::scalar(Float16(1.0f)), Array::scalar(Float16::from_bits(Float16(1.0f).bits + 3)), {}).ulps->value,
      3u);
}

TEST(ArrayDiff, Tolerances) {
  const Array a = floats({100, 1e-3f}), b = floats({101, 2e-3f});
  EXPECT_EQ(compare(a, b, {}).differing, 2);
  EXPECT_EQ(compare(a, b, {.atol = 0.01}).differing, 1);
  EXPECT_EQ(compare(a, b, {.rtol = 0.01}).differing, 1);
  EXPECT_EQ(compare(a, b, {.atol = 0.01, .rtol = 0.01}).differing, 0);
  EXPECT_EQ(compare(a, b, {.ulps = 131072}).differing, 1);
  EXPECT_EQ(compare(a, b, {.ulps = 131071}).differing, 2);
}

TEST(ArrayDiff, NoToleranceCoversNanAndInfinity) {
  const ArrayDifference d =
      compare(floats({1, kNan, kInf, kInf}), floats({1, 1, -kInf, 5}), {.atol = 1e30, .rtol = 1, .ulps = ~0ull});
  EXPECT_EQ(d.differing, 3);
  EXPECT_EQ(d.special, 3);
  EXPECT_EQ(d.special_at, 1);
}

TEST(ArrayDiff, IntegersAreExact) {
  const std::int64_t big = std::numeric_limits<std::int64_t>::max();
  const ArrayDifference d = compare(Array::scalar(big), Array::scalar(big - 1), {});
  EXPECT_EQ(d.differing, 1);
  EXPECT_EQ(d.absolute.value, 1);
  EXPECT_FALSE(d.ulps);
  EXPECT_EQ(compare(Array::scalar(big), Array::scalar(big - 1), {.atol = 1}).differing, 0);
  EXPECT_EQ(compare(Array::scalar(true), Array::scalar(false), {}).differing, 1);
}

TEST(ArrayDiff, RefusesOtherShapesAndDtypes) {
  EXPECT_THROW(compare(floats({1}), floats({1, 2}), {}), ValueError);
  EXPECT_THROW(compare(Array::scalar(1.0f), Array::scalar(1.0), {}), ValueError);
}

}  // namespace
}  // namespace syncline::tools
