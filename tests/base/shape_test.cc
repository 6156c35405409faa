// Shapes that broadcast, and sizes that are rejected.
#include "syncline/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <vector>

#include "syncline/array.h"
#include "tests/ops/refusal.h"

namespace syncline::testing {
namespace {

TEST(Broadcast, OnlyOneMeetsOtherSizes) {
  EXPECT_EQ(broadcast("f", {2, 1}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast("f", {0, 3}, {1, 3}), (Shape{0, 3}));
  EXPECT_EQ(broadcast("f", {}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast("f", {0}, {0}), (Shape{0}));
  expect_refused<ShapeError>([] { broadcast("f", {0, 3}, {4, 3}); }, "f: shapes (0, 3) and (4, 3) do not broadcast");
  expect_refused<ShapeError>([] { broadcast("f", {2}, {0}); }, "axis 0: 2 against 0");
  expect_refused<ShapeError>([] { broadcast("f", {2}, {3}); }, "axis 0: 2 against 3");
}

TEST(Broadcast, AnUnknownSizeMeetsAny) {
  EXPECT_EQ(broadcast("f", {kUnknown}, {3}), (Shape{3}));
  EXPECT_EQ(broadcast("f", {kUnknown}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast("f", {1}, {kUnknown}), (Shape{kUnknown}));
}

// Against a vector, across the number of dimensions from which on a shape allocates.
TEST(Dimensions, ComeAndGoAtEachAxis) {
  for (int ndim = 0; ndim < 8; ++ndim)
    for (int axis = 0; axis <= ndim; ++axis) {
      std::vector<std::int64_t> dims(static_cast<std::size_t>(ndim));
      std::iota(dims.begin(), dims.end(), 2);
      const Shape before(dims);
      Shape shape = before;
      shape.insert(axis, ndim > 0 ? shape[ndim - 1] : 9);
      dims.insert(dims.begin() + axis, ndim > 0 ? dims.back() : 9);
      EXPECT_TRUE(std::ranges::equal(shape, dims)) << shape;
      EXPECT_EQ(shape.ndim(), ndim + 1);
      EXPECT_NE(shape, before);
      shape.erase(axis);
      EXPECT_EQ(shape, before);
    }
}

TEST(Dimensions, OfEqualProductsDiffer) {
  EXPECT_NE((Shape{1}), (Shape{1, 1}));
  EXPECT_NE((Shape{}), (Shape{1}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_EQ(std::ranges::size(Shape{2, 3}), 2u);
}

TEST(Dimensions, AreCopiedAndMoved) {
  const Shape few{2, 3}, many{2, 3, 4, 5, 6};
  for (const Shape& from : {few, many})
    for (Shape to : {Shape{}, few, many}) {
      Shape copy = from;
      to = copy;
      EXPECT_EQ(to, from);
      copy.push_back(7);
      EXPECT_EQ(to, from);
      EXPECT_EQ(copy.back(), 7);
      Shape moved = std::move(to);
      EXPECT_EQ(moved, from);
      to = std::move(moved);
      EXPECT_EQ(to, from);
    }
  Shape emptied = many;
  const Shape taken = std::move(emptied);
  EXPECT_EQ(emptied.ndim(), static_cast<int>(emptied.dims().size()));
  EXPECT_EQ(taken, many);
}

constexpr std::int64_t kMany = std::int64_t{1} << 32;

TEST(Sizes, BeyondMemoryAreRefused) {
  expect_refused<ShapeError>([] { (Shape{kMany, kMany}).size(); }, "(4294967296, 4294967296)");
  expect_refused<ShapeError>([] { (Shape{2, kMany, kMany, 0}).size(); }, "2^47");
  expect_refused<ShapeError>([] { (Shape{kLargestSize, 2}).product(0, 2); }, "2^47");
  EXPECT_EQ((Shape{kLargestSize}).size(), kLargestSize);
  EXPECT_EQ((Shape{3, 0, 5}).size(), 0);
  EXPECT_EQ((Shape{kMany, kMany}).product(1, 2), kMany);
  expect_refused<ShapeError>([] { check_size("f", {kUnknown, kMany, kMany}); }, "f: a tensor of shape (?, 4294967296");
  expect_refused<ShapeError>([] { check_size("f", {2, -2}); }, "f: a tensor of shape (2, ?)");
  EXPECT_TRUE(is_possible({kUnknown, 0, kLargestSize}));
  EXPECT_FALSE(is_possible({0, kMany, kMany}));
}

TEST(Sizes, ProductsAndSumsAreChecked) {
  EXPECT_EQ(size_product("f", 3, 4), 12);
  EXPECT_EQ(size_product("f", kUnknown, 4), kUnknown);
  EXPECT_EQ(size_sum("f", 3, kUnknown), kUnknown);
  expect_refused<ShapeError>([] { size_product("f", kMany, kMany); }, "f: a size of 4294967296 times 4294967296");
  expect_refused<ShapeError>([] { size_sum("f", std::numeric_limits<std::int64_t>::max(), 1); }, "plus 1");
}

TEST(Sizes, MoreThanTheMachineHasIsNoMemory) {
  try {
    const Array a = Array::uninitialized(DType::kFloat64, Shape{kLargestSize / 2});
    ADD_FAILURE() << "there is no such machine";
  } catch (const std::bad_alloc& e) {
    EXPECT_NE(std::string(e.what()).find("562949953421312 bytes"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace syncline::testing
