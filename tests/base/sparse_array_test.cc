#include "syncline/sparse_array.h"

#include <gtest/gtest.h>

namespace syncline {
namespace {

using Indices = std::vector<std::int64_t>;

Array floats(std::vector<float> values) {
  return Array::from<float>(Shape{static_cast<std::int64_t>(values.size())}, values);
}

std::vector<float> dense_of(const SparseArray& a) {
  const Array dense = a.to_dense();
  const auto values = dense.values<float>();
  return {values.begin(), values.end()};
}

template <class E, class F>
void expect_refused(F f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "not refused; expected a message with: " << part;
  } catch (const E& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(SparseArray, CoordinatesAreSortedAndSummed) {
  const SparseArray a =
      SparseArray::coo({3, 4}, Indices{2, 0, 2, 0, 2}, Indices{1, 3, 0, 3, 1}, floats({1, 2, 3, 4, 5}));
  EXPECT_EQ(a.count(), 3);
  EXPECT_EQ(dense_of(a), (std::vector<float>{0, 0, 0, 6, 0, 0, 0, 0, 3, 6, 0, 0}));
  EXPECT_EQ(Indices(a.row_splits().begin(), a.row_splits().end()), (Indices{0, 1, 1, 3}));
  EXPECT_EQ(Indices(a.column_indices().begin(), a.column_indices().end()), (Indices{3, 0, 1}));
  EXPECT_EQ(a.count_in_rows(1, 3), 2);
}

TEST(SparseArray, CompressedRows) {
  const SparseArray a = SparseArray::csr({2, 3}, Indices{0, 2, 3}, Indices{2, 0, 1}, floats({1, 2, 0}));
  EXPECT_EQ(dense_of(a), (std::vector<float>{2, 0, 1, 0, 0, 0}));
  EXPECT_EQ(a.count(), 3);  // an explicit zero stays an entry
  EXPECT_EQ(SparseArray::from_dense(a.to_dense()).count(), 2);
  EXPECT_EQ(dense_of(a.slice_rows(1, 2)), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(dense_of(a.slice_rows(0, 1)), (std::vector<float>{2, 0, 1}));
  EXPECT_EQ(a.slice_rows(1, 1).shape(), (Shape{0, 3}));
}

TEST(SparseArray, EveryDtype) {
  for (const DType dtype : {DType::kBool, DType::kUint8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const Array dense = Array::from<float>(Shape{2, 3}, {0, 1, 0, 1, 0, 1}).cast(dtype);
    const SparseArray a = SparseArray::from_dense(dense);
    EXPECT_EQ(a.count(), 3) << dtype;
    EXPECT_EQ(a.dtype(), dtype);
    EXPECT_EQ(dense_of(a.cast(DType::kFloat32)), (std::vector<float>{0, 1, 0, 1, 0, 1})) << dtype;
    const SparseArray twice = SparseArray::coo({1, 1}, Indices{0, 0}, Indices{0, 0}, a.values().rows(0, 2));
    EXPECT_EQ(dense_of(twice.cast(DType::kFloat32)), (std::vector<float>{dtype == DType::kBool ? 1.0F : 2.0F}))
        << dtype;
  }
}

TEST(SparseArray, Empty) {
  EXPECT_EQ(SparseArray().shape(), (Shape{0, 0}));
  EXPECT_EQ(SparseArray::coo({3, 0}, Indices{}, Indices{}, floats({})).count(), 0);
  EXPECT_EQ(SparseArray::from_dense(Array(DType::kFloat32, {0, 4})).row_splits().size(), 1U);
}

TEST(SparseArray, Refusals) {
  expect_refused<ShapeError>([] { SparseArray::coo({3}, Indices{}, Indices{}, floats({})); }, "(3,)");
  expect_refused<ShapeError>([] { SparseArray::coo({3, 2}, Indices{0}, Indices{0}, floats({})); }, "1 columns");
  expect_refused<ShapeError>([] { SparseArray::coo({3, 2}, Indices{}, Indices{0}, floats({1})); }, "0 row numbers");
  expect_refused<ValueError>(
      [] {
        SparseArray::coo({3, 2}, Indices{3}, Indices{0}, floats({1}));
      },
      "row 3 of entry 0 is outside [0, 3)");
  expect_refused<ValueError>([] { SparseArray::coo({3, 2}, Indices{0}, Indices{-1}, floats({1})); }, "column -1");
  expect_refused<ShapeError>([] { SparseArray::csr({2, 2}, Indices{0, 1}, Indices{0}, floats({1})); }, "2 row splits");
  expect_refused<ValueError>(
      [] {
        SparseArray::csr({2, 2}, Indices{0, 1, 0}, Indices{0}, floats({1}));
      },
      "decrease from 1");
  expect_refused<ValueError>([] { SparseArray::csr({1, 2}, Indices{0, 2}, Indices{0}, floats({1})); }, "from 0 to 2");
  expect_refused<ShapeError>([] { SparseArray::from_dense(Array(DType::kFloat32, {2})); }, "it must be a matrix");
  expect_refused<ShapeError>([] { SparseArray().slice_rows(0, 1); }, "rows 0 to 1");
}

}  // namespace
}  // namespace syncline
