// Philox against its published vectors. Draws: the same from any first element, with the right moments.
#include "ops/random/draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "ops/kernels/parallel.h"
#include "ops/random/inverse_normal.h"
#include "ops/random/philox.h"
#include "syncline/array.h"
#include "syncline/backend/random.h"

namespace syncline {
namespace {

constexpr Stream kStream{0x0123456789abcdef, 7};

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

template <class T>
Moments moments_of(const std::vector<T>& x) {
  Moments m;
  for (const T v : x) m.mean += v / static_cast<double>(x.size());
  double third = 0, fourth = 0;
  for (const T v : x) {
    const double d = v - m.mean;
    m.variance += d * d, third += d * d * d, fourth += d * d * d * d;
  }
  const auto n = static_cast<double>(x.size());
  m.variance /= n;
  m.skewness = third / n / std::pow(m.variance, 1.5);
  m.kurtosis = fourth / n / (m.variance * m.variance);
  return m;
}

// The known answers that are published with the Random123 library.
TEST(Philox, GivesThePublishedWords) {
  using philox::philox4x32;
  using philox::Words;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, VectorsGiveTheSameWordsAsOneCounterAtATime) {
  const Stream stream{0xa4093822299f31d0, 0x1234567800000003};
  // The last range crosses the limit of the counter's low word.
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{0xfffffff0}}) {
    constexpr int kBlocks = 700;
    std::vector<std::uint32_t> words(4 * kBlocks);
    draw_words(stream, first, kBlocks, words.data());
    for (std::uint64_t b = 0; b < kBlocks; ++b) {
      const std::uint64_t c = first + b;
      const philox::Words want =
          philox::philox4x32({static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(c >> 32), 3, 0x12345678},
                             {0x299f31d0, 0xa4093822});
      for (std::size_t w = 0; w < 4; ++w) ASSERT_EQ(words[4 * b + w], want[w]) << "block " << c << ", word " << w;
    }
  }
}

template <class T, class Draw>
void expect_same_from_any_place(Draw draw) {
  constexpr std::int64_t kCount = 5000;
  std::vector<T> all(kCount);
  draw(0, kCount, all.data());
  for (const std::int64_t first : {1, 2, 3, 4, 63, 1021, 1024, 2047}) {
    for (const std::int64_t n : {1, 2, 5, 64, 1000, 1024, 2500}) {
      std::vector<T> part(static_cast<std::size_t>(n));
      draw(static_cast<std::uint64_t>(first), n, part.data());
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_EQ(part[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(first + i)]) << first << " + " << i;
    }
  }
}

TEST(Draw, IsTheSameFromAnyPlaceOn) {
  expect_same_from_any_place<float>([](auto first, auto n, float* out) { draw_uniform(kStream, first, n, out); });
  expect_same_from_any_place<double>([](auto first, auto n, double* out) { draw_uniform(kStream, first, n, out); });
  expect_same_from_any_place<float>([](auto first, auto n, float* out) { draw_normal(kStream, first, n, out); });
  expect_same_from_any_place<double>([](auto first, auto n, double* out) { draw_normal(kStream, first, n, out); });
  expect_same_from_any_place<char>(
      [](auto first, auto n, char* out) { draw_mask(kStream, first, n, 0x40000000, reinterpret_cast<bool*>(out)); });
}

TEST(Draw, StreamsOfOtherSeedsOpsAndStepsDiffer) {
  const auto first_word = [](Stream s) {
    std::uint32_t words[4];
    draw_words(s, 0, 1, words);
    return words[0];
  };
  const std::uint32_t base = first_word(stream_of({1, 2}, 3));
  EXPECT_EQ(base, first_word(stream_of({1, 2}, 3)));
  EXPECT_NE(base, first_word(stream_of({2, 2}, 3)));
  EXPECT_NE(base, first_word(stream_of({1, 3}, 3)));
  EXPECT_NE(base, first_word(stream_of({1, 2}, 4)));
  EXPECT_NE(first_word(stream_of({1, 2}, 3)), first_word(stream_of({2, 1}, 3)));
}

template <class T>
class Moment : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(Moment, Floats);

constexpr std::size_t kDraws = 1'000'000;  // standard error of a mean: 1e-3 standard deviations

TYPED_TEST(Moment, UniformIsUniform) {
  std::vector<TypeParam> x(kDraws);
  draw_uniform(kStream, 0, kDraws, x.data());
  int histogram[20] = {};
  for (const TypeParam v : x) {
    ASSERT_GE(v, 0);
    ASSERT_LT(v, 1);
    ++histogram[static_cast<int>(v * 20)];
  }
  for (const int n : histogram) EXPECT_NEAR(n, kDraws / 20.0, 5 * std::sqrt(kDraws / 20.0));
  const Moments m = moments_of(x);
  EXPECT_NEAR(m.mean, 0.5, 0.0015);
  EXPECT_NEAR(m.variance, 1 / 12.0, 0.0005);
}

TYPED_TEST(Moment, NormalIsNormal) {
  std::vector<TypeParam> x(kDraws);
  draw_normal(kStream, 0, kDraws, x.data());
  const Moments m = moments_of(x);
  EXPECT_NEAR(m.mean, 0, 0.005);
  EXPECT_NEAR(m.variance, 1, 0.008);
  EXPECT_NEAR(m.skewness, 0, 0.015);
  EXPECT_NEAR(m.kurtosis, 3, 0.03);
  // Neighbours use one pair of words; they must not be correlated.
  double neighbours = 0;
  for (std::size_t i = 0; i + 1 < kDraws; i += 2) neighbours += static_cast<double>(x[i]) * x[i + 1];
  EXPECT_NEAR(neighbours / (kDraws / 2), 0, 0.008);
}

TEST(Draw, MaskKeepsTheRightShare) {
  const auto x = std::make_unique<bool[]>(kDraws);
  draw_mask(kStream, 0, kDraws, 0x40000000, x.get());  // a quarter is dropped
  const auto kept = std::count(x.get(), x.get() + kDraws, true);
  EXPECT_NEAR(static_cast<double>(kept) / kDraws, 0.75, 0.002);
}

TEST(InverseNormal, UndoesTheDistributionFunction) {
  for (double z = -3; z <= 3; z += 1.0 / 64) {
    const double p = 0.5 * std::erfc(-z / std::sqrt(2.0));
    EXPECT_NEAR(inverse_normal(p), z, 1e-13);
  }
}

// Runs a random op like a rank that owns [begin, begin + shape[axis]) of the `size` elements along the slice's axis.
template <class T>
std::vector<T> run_slice(const Expr& e, const Shape& shape, OutputSlice slice) {
  std::vector<T> out(static_cast<std::size_t>(shape.size()));
  // vector<bool> has no data(), so T is char for an op with bool results.
  void* buffers[] = {out.data()};
  const Meta meta[] = {{e.dtype(), shape}};
  const std::uint64_t step = 11;
  KernelArgs k;
  k.out = buffers;
  k.in_meta = meta;
  k.out_meta = meta;
  k.random_runs = &step;
  k.slice = slice;
  e.op().run(e.node().attrs.get(), k);
  return out;
}

template <class T>
void expect_slices_of_whole(const Expr& e) {
  const Shape& shape = e.shape();
  const auto whole = run_slice<T>(e, shape, {0, 0, shape[0]});
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    const std::int64_t size = shape[axis], begin = size / 3, end = 2 * size / 3;  // rank 2 of 3
    Shape local = shape;
    local[axis] = end - begin;
    const auto part = run_slice<T>(e, local, {axis, begin, size});
    const std::int64_t inner = shape.product(axis + 1, shape.ndim());
    for (std::int64_t i = 0; i < local.size(); ++i) {
      const std::int64_t outer = i / (local[axis] * inner), within = i % (local[axis] * inner);
      const std::int64_t global = (outer * size + begin) * inner + within;
      ASSERT_EQ(part[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(global)])
          << e.op().name << ", axis " << axis << ", element " << i;
    }
  }
}

TEST(RandomOps, ARanksSliceIsThatPartOfTheWhole) {
  const Shape shape{31, 14, 5};
  const RandomKey key{42, 3};
  const auto wide = constant_of(Array(DType::kFloat32, shape));
  expect_slices_of_whole<float>(random_uniform(shape, key));
  expect_slices_of_whole<double>(random_uniform(shape, key, {.dtype = DType::kFloat64}));
  expect_slices_of_whole<float>(random_normal(shape, key));
  expect_slices_of_whole<double>(random_normal(shape, key, {.dtype = DType::kFloat64}));
  expect_slices_of_whole<float>(truncated_normal(shape, key));
  expect_slices_of_whole<float>(random_binomial(shape, key, {.p = 0.3}));
  expect_slices_of_whole<char>(dropout_mask(wide, 0.4, key));
}

TEST(RandomOps, BitsDoNotDependOnTheNumberOfThreads) {
  const Expr e = random_normal({300, 1000}, {1, 2});
  const int before = thread_count();
  set_thread_count(1);
  const auto one = run_slice<float>(e, e.shape(), {0, 0, 300});
  set_thread_count(2);
  const auto two = run_slice<float>(e, e.shape(), {0, 0, 300});
  set_thread_count(before);
  EXPECT_EQ(one, two);
}

TEST(RandomOps, StayInsideTheirBounds) {
  const auto uniform = random_uniform({100'000}, {1, 1}, {.minval = -3, .maxval = -1});
  for (const float v : run_slice<float>(uniform, uniform.shape(), {0, 0, 100'000})) {
    ASSERT_GE(v, -3);
    ASSERT_LT(v, -1);
  }
  const auto normal = truncated_normal({1'000'000}, {1, 1}, {.mean = 1, .stddev = 0.5});
  const auto x = run_slice<float>(normal, normal.shape(), {0, 0, 1'000'000});
  for (const float v : x) {
    ASSERT_GE(v, 0);
    ASSERT_LE(v, 2);
  }
  const Moments m = moments_of(x);
  EXPECT_NEAR(m.mean, 1, 0.002);
  EXPECT_NEAR(m.variance, 0.25 * 0.77374, 0.001);  // of the normal distribution cut at 2 standard deviations
}

TEST(RandomOps, EdgesOfProbabilities) {
  const auto never = random_binomial({1000}, {1, 1}, {.p = 0}), always = random_binomial({1000}, {1, 1}, {.p = 1});
  for (const float v : run_slice<float>(never, never.shape(), {0, 0, 1000})) ASSERT_EQ(v, 0);
  for (const float v : run_slice<float>(always, always.shape(), {0, 0, 1000})) ASSERT_EQ(v, 1);
  const auto x = constant_of(Array(DType::kFloat32, {1000}));
  const auto all = dropout_mask(x, 0, {1, 1});
  for (const char kept : run_slice<char>(all, all.shape(), {0, 0, 1000})) ASSERT_EQ(kept, 1);
}

TEST(RandomOps, BadArgumentsAreRefused) {
  EXPECT_THROW(random_uniform({2, kUnknown}, {}), ShapeError);
  EXPECT_THROW(random_normal({2}, {}, {.dtype = DType::kInt32}), DTypeError);
  EXPECT_THROW(random_uniform({2}, {}, {.minval = 0.5, .maxval = 3, .dtype = DType::kInt32}), ValueError);
  EXPECT_THROW(random_uniform({2}, {}, {.minval = 1, .maxval = 0}), ValueError);
  EXPECT_THROW(random_normal({2}, {}, {.stddev = -1}), ValueError);
  EXPECT_THROW(random_binomial({2}, {}, {.p = 1.5}), ValueError);
  const auto x = constant_of(Array(DType::kFloat32, {4, 3}));
  EXPECT_THROW(dropout(x, 1.0, {}), ValueError);
  EXPECT_THROW(dropout(x, -0.1, {}), ValueError);
  EXPECT_THROW(dropout(x, 0.5, {}, Shape{4}), ShapeError);
  EXPECT_THROW(dropout(x, 0.5, {}, Shape{2, 3}), ShapeError);
  EXPECT_THROW(dropout(constant_of(Array(DType::kInt32, {4})), 0.5, {}), DTypeError);
  EXPECT_EQ(dropout_mask(x, 0.5, {}, Shape{kUnknown, 1}).shape(), (Shape{4, 1}));
}

TEST(RandomOps, BoundsMustBeOfTheDtype) {
  const auto draw = [](double low, double high, DType dtype) {
    return random_uniform({3}, {1, 2}, {.minval = low, .maxval = high, .dtype = dtype});
  };
  EXPECT_THROW(draw(0, 1000, DType::kInt8), ValueError);
  EXPECT_THROW(draw(0, 129, DType::kInt8), ValueError);
  EXPECT_THROW(draw(-1, 5, DType::kUint8), ValueError);
  EXPECT_THROW(draw(0, 1e20, DType::kInt64), ValueError);
  EXPECT_THROW(draw(0, 1e39, DType::kFloat32), ValueError);
  EXPECT_THROW(draw(-3e38, 3e38, DType::kFloat32), ValueError);
  draw(-128, 128, DType::kInt8);
  draw(0, 256, DType::kUint8);
  draw(-0x1p63, 0x1p63, DType::kInt64);
  draw(-3e38, 3e38, DType::kFloat64);
}

// Rounding must not reach maxval: 2^63 is not an int64.
TEST(RandomOps, LargeIntegersStayBelowMaxval) {
  const Expr e = random_uniform({100}, {1, 2}, {.minval = 0x1p63 - 1024, .maxval = 0x1p63, .dtype = DType::kInt64});
  std::vector<std::int64_t> values(100);
  void* out[] = {values.data()};
  const std::uint64_t step = 0;
  KernelArgs k;
  k.out = out, k.out_meta = std::span(&e.meta(), 1), k.random_runs = &step;
  e.op().run(e.node().attrs.get(), k);
  for (const std::int64_t value : values) EXPECT_EQ(value, std::numeric_limits<std::int64_t>::max() - 1023);
}

}  // namespace
}  // namespace syncline
