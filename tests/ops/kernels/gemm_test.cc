#include "ops/kernels/product/gemm.h"
#include "ops/kernels/product/blas.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel.h"
#include "ops/kernels/part_tree.h"
#include "ops/kernels/product/blocked_product.h"
#include "ops/kernels/product/rows_product.h"
#include "tests/ops/kernels/random_values.h"

namespace syncline::kernels {
namespace {

using Index = std::int64_t;

struct Shape {
  Index m, n, k;
};

const std::vector<Shape> kShapes = {{1, 1, 1},       {32, 64, 64},    {32, 10, 64},    {64, 64, 32},   {5, 1, 17},
                                    {1, 9, 300},     {17, 33, 7},     {400, 3, 50},    {3, 4, 0},      {0, 4, 3},
                                    {130, 530, 780}, {700, 130, 300}, {70, 1100, 400}, {8, 33, 20},    {16, 64, 48},
                                    {250, 40, 18},   {9, 200, 700},   {16, 1000, 90},  {530, 540, 100}};

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// Operands and result with `gap` unused elements at the end of each row.
template <class T>
struct Product {
  Shape s;
  Trans ta, tb;
  Index lda, ldb, ldc;
  std::vector<T> a, b, c;

  Product(Shape shape, Trans ta, Trans tb, Index gap)
      : s(shape),
        ta(ta),
        tb(tb),
        lda((ta == Trans::kYes ? s.m : s.k) + gap),
        ldb((tb == Trans::kYes ? s.k : s.n) + gap),
        ldc(s.n + gap),
        a(random_values<T>(at((ta == Trans::kYes ? s.k : s.m) * lda), 1)),
        b(random_values<T>(at((tb == Trans::kYes ? s.n : s.k) * ldb), 2)),
        c(random_values<T>(at(s.m * ldc), 3)) {}

  std::vector<double> expected(double alpha, double beta) const {
    std::vector<double> result(c.begin(), c.end());
    for (Index i = 0; i < s.m; ++i)
      for (Index j = 0; j < s.n; ++j) {
        double sum = 0;
        for (Index l = 0; l < s.k; ++l) {
          sum += static_cast<double>(a[at(ta == Trans::kYes ? l * lda + i : i * lda + l)]) *
                 static_cast<double>(b[at(tb == Trans::kYes ? j * ldb + l : l * ldb + j)]);
        }
        double& out = result[at(i * ldc + j)];
        out = alpha * sum + (beta == 0 ? 0 : beta * out);
      }
    return result;
  }

  std::vector<T> run(T alpha, T beta) const {
    std::vector<T> result = c;
    gemm(ta, tb, s.m, s.n, s.k, alpha, a.data(), lda, b.data(), ldb, beta, result.data(), ldc);
    return result;
  }
};

template <class T>
void check_all(double tolerance) {
  for (const Shape& s : kShapes)
    for (Trans ta : {Trans::kNo, Trans::kYes})
      for (Trans tb : {Trans::kNo, Trans::kYes})
        for (Index gap : {0, 3}) {
          const Product<T> p(s, ta, tb, gap);
          EXPECT_LT(largest_error(p.run(T(1), T(0)), p.expected(1, 0)), tolerance) << s.m << " " << s.n << " " << s.k;
          EXPECT_LT(largest_error(p.run(T(1), T(1)), p.expected(1, 1)), tolerance) << s.m << " " << s.n << " " << s.k;
          if (!loaded_blas().refused.empty()) continue;  // our kernels have no factors
          EXPECT_LT(largest_error(p.run(T(2), T(0.5)), p.expected(2, 0.5)), tolerance)
              << s.m << " " << s.n << " " << s.k;
        }
}

TEST(Gemm, FloatEqualsPlainLoops) { check_all<float>(2e-6); }

TEST(Gemm, DoubleEqualsPlainLoops) { check_all<double>(1e-14); }

template <class T>
void check_epilogues() {
  for (const int threads : {1, 2, 4}) {
    set_thread_count(threads);
    for (const Shape& s : kShapes)
      for (const Trans ta : {Trans::kNo, Trans::kYes})
        for (const Trans tb : {Trans::kNo, Trans::kYes}) {
          const Product<T> p(s, ta, tb, 0);
          const std::vector<T> want = p.run(T(1), T(0));
          std::vector<T> c = p.c;
          const CheckedEpilogue<T> epilogue(want, c);
          gemm_with_epilogue(&epilogue, ta, tb, s.m, s.n, s.k, p.a.data(), p.lda, p.b.data(), p.ldb, c.data());
          EXPECT_EQ(epilogue.wrong(), 0) << s.m << " " << s.n << " " << s.k << ", " << threads << " threads";
          c = p.c;
          gemm_with_epilogue<T>(nullptr, ta, tb, s.m, s.n, s.k, p.a.data(), p.lda, p.b.data(), p.ldb, c.data());
          EXPECT_TRUE(std::equal(c.begin(), c.end(), want.begin()));
        }
  }
  set_thread_count(2);
}

TEST(Gemm, EpiloguesTakeFinalElementsOnce) {
  check_epilogues<float>();
  check_epilogues<double>();
  const KeptRowBits kept;
  check_epilogues<float>();
}

// Sums of equal terms: one long sum in float32 rounds many additions in the same direction. OpenBLAS's kernels for
// AVX-512 add the terms of a product of less than a million multiplications so, with errors of 7e-4 in these shapes.
TEST(Gemm, LongSums) {
  constexpr float kA = 0.1f, kB = 0.3f;
  for (const Shape& s : {Shape{2, 3, 100001}, Shape{4, 4, 60000}, Shape{1, 7, 4097}, Shape{40, 30, 8192}})
    for (const Trans ta : {Trans::kNo, Trans::kYes})
      for (const Trans tb : {Trans::kNo, Trans::kYes}) {
        Product<float> p(s, ta, tb, 2);
        p.a.assign(p.a.size(), kA);
        p.b.assign(p.b.size(), kB);
        const double sum = static_cast<double>(kA) * static_cast<double>(kB) * static_cast<double>(s.k);
        const std::vector<float> y = p.run(1, 0);
        double error = 0;
        for (Index i = 0; i < s.m; ++i)
          for (Index j = 0; j < s.n; ++j)
            error = std::max(error, std::abs(static_cast<double>(y[at(i * p.ldc + j)]) / sum - 1));
        EXPECT_LT(error, 1e-4) << s.m << ' ' << s.n << ' ' << s.k;
      }
}

TEST(Gemm, LongSumsScaleTheResultOnce) {
  if (!loaded_blas().refused.empty()) GTEST_SKIP() << "our kernels have no factors";
  for (const Shape& s : {Shape{2, 3, 9001}, Shape{1, 7, 4097}, Shape{40, 30, 8192}}) {
    const Product<float> p(s, Trans::kNo, Trans::kYes, 2);
    EXPECT_LT(largest_error(p.run(2, 0.5), p.expected(2, 0.5)), 1e-5) << s.m << ' ' << s.n << ' ' << s.k;
  }
}

// The first rows of a product have the bits that they have in a product of few rows.
void check_few_of_many_rows(Index n, Index k) {
  for (const Trans tb : {Trans::kNo, Trans::kYes}) {
    const Product<float> whole({400, n, k}, Trans::kNo, tb, 0);
    const std::vector<float> all = whole.run(1, 0);
    for (const Index rows : {1, 2, 7, 8, 40}) {
      Product<float> part({rows, n, k}, Trans::kNo, tb, 0);
      part.a.assign(whole.a.begin(), whole.a.begin() + rows * whole.lda);
      part.b = whole.b;
      const std::vector<float> few = part.run(1, 0);
      EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin())) << rows << " rows, " << n << " columns, depth " << k;
    }
  }
}

// Runs in the tests of add_blas_test (CMakeLists.txt).
TEST(Gemm, WithoutOpenBlas) {
  if (loaded_blas().refused.empty()) GTEST_SKIP() << loaded_blas().library;
  const char* reason = std::getenv("SYNCLINE_TEST_REFUSED");
  ASSERT_NE(reason, nullptr) << loaded_blas().refused;
  EXPECT_NE(loaded_blas().refused.find(reason), std::string::npos) << loaded_blas().refused;
  EXPECT_EQ(loaded_blas().processor, "no OpenBLAS");
  for (const Index n : {1, 5, 64})
    for (const Index k : {3, 64, 780}) check_few_of_many_rows(n, k);
}

TEST(Gemm, EveryInstructionSetMultiplies) {
  for (const InstructionSet& set : instruction_sets()) {
    use_instruction_set(set);
    for (const Trans ta : {Trans::kNo, Trans::kYes})
      for (const Trans tb : {Trans::kNo, Trans::kYes})
        for (const Index rows : {6, 9, 130}) {
          const Product<float> p({rows, 530, 780}, ta, tb, 1);
          EXPECT_LT(largest_error(p.run(1, 0), p.expected(1, 0)), 2e-6) << set.name << ' ' << rows;
        }
  }
  use_best_instruction_set();
}

TEST(Gemm, WithoutBetaNothingIsReadFromTheResult) {
  for (const Shape& s : kShapes) {
    Product<float> p(s, Trans::kNo, Trans::kNo, 0);
    const auto want = p.expected(1, 0);
    p.c.assign(p.c.size(), std::numeric_limits<float>::quiet_NaN());
    EXPECT_LT(largest_error(p.run(1, 0), want), 2e-6) << s.m << " " << s.n << " " << s.k;
  }
}

TEST(Gemm, BitsDoNotDependOnThreads) {
  for (const Shape& s : kShapes)
    for (Trans ta : {Trans::kNo, Trans::kYes})
      for (Trans tb : {Trans::kNo, Trans::kYes}) {
        const Product<float> p(s, ta, tb, 0);
        set_thread_count(1);
        const auto one = p.run(1, 0);
        set_thread_count(2);
        EXPECT_EQ(one, p.run(1, 0)) << s.m << " " << s.n << " " << s.k;
      }
}

// The product of rows [first, first + count) alone.
template <class T>
std::vector<T> rows_of(const Product<T>& p, Index first, Index count, bool add) {
  const auto from = p.c.begin() + first * p.ldc;
  std::vector<T> result(from, from + count * p.ldc);
  blocked_product<T>({p.ta, p.tb, count, p.s.n, p.s.k, p.a.data() + first * (p.ta == Trans::kYes ? 1 : p.lda), p.lda,
                      p.b.data(), p.ldb, result.data(), p.ldc, add});
  return result;
}

template <class T>
void check_rows(const Product<T>& p) {
  for (const bool add : {false, true}) {
    const std::vector<T> whole = rows_of(p, 0, p.s.m, add);
    for (Index first = 0, count = 1; first < p.s.m; first += count, count = std::min(2 * count, p.s.m - first)) {
      const std::vector<T> part = rows_of(p, first, count, add);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first * p.ldc))
          << p.s.n << " " << p.s.k << ", rows " << first << " to " << first + count;
    }
  }
}

// Whether a product has one, two, a few or many rows, and whether B fits into the caches.
TEST(Gemm, BitsOfARowDoNotDependOnOtherRows) {
  for (const InstructionSet& set : instruction_sets()) {
    use_instruction_set(set);
    for (const Trans ta : {Trans::kNo, Trans::kYes})
      for (const Trans tb : {Trans::kNo, Trans::kYes}) {
        check_rows(Product<float>({40, 33, 50}, ta, tb, 1));
        check_rows(Product<double>({40, 130, 300}, ta, tb, 0));
        check_rows(Product<float>({40, 530, 780}, ta, tb, 0));
      }
    check_rows(Product<float>({40, 2100, 2048}, Trans::kNo, Trans::kNo, 0));
  }
  use_best_instruction_set();
}

// gemm cuts many rows into other pieces than few.
TEST(Gemm, BitsOfARowDoNotDependOnPieces) {
  const KeptRowBits no_blas;
  for (const Index n : {8, 10, 31, 64, 256, 289, 295, 520}) check_few_of_many_rows(n, 780);
}

// Parts of k, also empty ones: the sum along the tree of the products of the parts alone.
template <class T>
void check_parts(Index m, Index n, const std::vector<Index>& parts, Trans ta, Trans tb) {
  ASSERT_TRUE(fits_parts<T>(parts));
  const Product<T> p({m, n, parts.back()}, ta, tb, 0);
  std::vector<std::vector<T>> sums(static_cast<std::size_t>(sums_kept(static_cast<Index>(parts.size()) - 1)), p.c);
  const auto compute = [&](Index part, Index place) {
    const Index begin = parts[static_cast<std::size_t>(part)], k = parts[static_cast<std::size_t>(part) + 1] - begin;
    const T* a = p.a.data() + begin * (ta == Trans::kYes ? p.lda : 1);
    const T* b = p.b.data() + begin * (tb == Trans::kYes ? 1 : p.ldb);
    gemm<T>(ta, tb, m, n, k, T(1), a, p.lda, b, p.ldb, T(0), sums[static_cast<std::size_t>(place)].data(), p.ldc);
  };
  sum_parts(static_cast<Index>(parts.size()) - 1, compute, [&](Index to, Index from) {
    for (std::size_t i = 0; i < p.c.size(); ++i)
      sums[static_cast<std::size_t>(to)][i] += sums[static_cast<std::size_t>(from)][i];
  });
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    std::vector<T> c = p.c;
    gemm_by_parts<T>(ta, tb, m, n, parts, p.a.data(), p.lda, p.b.data(), p.ldb, c.data(), p.ldc);
    for (Index i = 0; i < m; ++i)
      EXPECT_TRUE(std::equal(c.begin() + i * p.ldc, c.begin() + i * p.ldc + n, sums[0].begin() + i * p.ldc))
          << m << " x " << n << " x " << parts.back() << ", row " << i << ", " << threads << " threads";
  }
  set_thread_count(1);
}

TEST(Gemm, PartsAreAddedAlongATree) {
  const KeptRowBits no_blas;
  const std::vector<std::vector<Index>> borders{{0, 16, 32, 48, 64, 80, 96, 112, 128},
                                                {0, 0, 1, 1, 2},
                                                {0, 3, 5, 5, 192},
                                                {0, 0, 0},
                                                {0, 100, 250, 400, 512, 640, 800, 900, 1000},
                                                {0, 1, 1, 4, 9, 9, 9, 20, 21, 22, 30, 31, 40, 41, 60, 61, 64}};
  for (const std::vector<Index>& parts : borders)
    for (const auto& [m, n] : std::vector<std::pair<Index, Index>>{{1, 1}, {2, 40}, {7, 33}, {300, 65}, {64, 200}})
      for (const Trans ta : {Trans::kNo, Trans::kYes})
        for (const Trans tb : {Trans::kNo, Trans::kYes}) {
          check_parts<float>(m, n, parts, ta, tb);
          if (fits_parts<double>(parts)) check_parts<double>(m, n, parts, ta, tb);
        }
  EXPECT_TRUE(fits_parts<float>(std::vector<Index>{0, 384, 768}));
  EXPECT_FALSE(fits_parts<float>(std::vector<Index>{0, 385, 768}));
  EXPECT_FALSE(fits_parts<double>(std::vector<Index>{0, 193, 300}));
  EXPECT_FALSE(fits_parts<float>(std::vector<Index>{0, 384, 768, 900, 1025}));
}

// A^T B over the rows: with partial sums and without, alone and added to what is there, for 1 and 2 threads.
template <class T>
void check_rows_products(double tolerance) {
  for (const Shape& s : {Shape{20, 24, 9000}, Shape{64, 64, 4099}, Shape{1, 3, 200000}, Shape{7, 5, 3}, Shape{3, 4, 0}})
    for (const bool add : {false, true}) {
      const Product<T> p(s, Trans::kYes, Trans::kNo, 0);
      GuardedScratch scratch(rows_product_scratch(s.k, s.m, s.n, sizeof(T)));
      std::vector<std::vector<T>> results;
      for (const int threads : {1, 2}) {
        set_thread_count(threads);
        results.push_back(p.c);
        rows_product<T>({s.k, s.m, s.n, p.a.data(), p.b.data(), results.back().data(), add}, scratch.data());
      }
      EXPECT_LT(largest_error(results[0], p.expected(1, add ? 1 : 0)), tolerance) << s.m << " " << s.n << " " << s.k;
      EXPECT_EQ(results[0], results[1]) << s.m << " " << s.n << " " << s.k;
      EXPECT_TRUE(scratch.intact());
    }
}

TEST(Gemm, RowsProductsEqualPlainLoops) {
  EXPECT_GT(rows_product_scratch(9000, 20, 24, sizeof(float)), 0u);
  check_rows_products<float>(1e-5);
  check_rows_products<double>(1e-13);
}

// A distance between rows that exceeds the 32-bit integers of BLAS. The memory is only reserved.
TEST(Gemm, DistancesBeyond32Bits) {
  constexpr Index kApart = (Index{1} << 32) + 64;
  const std::size_t bytes = at(kApart + 64) * sizeof(float);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "16 GiB of addresses cannot be reserved";
  float* a = static_cast<float*>(memory);
  a[0] = 1, a[1] = 2, a[kApart] = 3, a[kApart + 1] = 4;
  const float b[] = {1, 10, 100, 1000};  // (2, 2)
  float c[4] = {};
  gemm_serial(Trans::kNo, Trans::kNo, 2, 2, 2, 1.0f, a, kApart, b, 2, 0.0f, c, 2);
  EXPECT_EQ(std::vector<float>(c, c + 4), (std::vector<float>{201, 2010, 403, 4030}));
  munmap(memory, bytes);
}

// The serial flavour of OpenBLAS, which has no locks, fails this test.
TEST(Gemm, SeveralThreadsMultiplyAtOnce) {
  std::vector<std::thread> callers;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    callers.emplace_back([&, t] {
      const Product<float> p({37 + static_cast<Index>(t), 41, 300}, Trans::kNo, Trans::kYes, 0);
      const auto first = p.run(1, 0);
      for (int i = 0; i < 3000; ++i) wrong[t] += p.run(1, 0) != first;
      wrong[t] += largest_error(first, p.expected(1, 0)) > 2e-6;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, std::vector<int>(wrong.size()));
}

}  // namespace
}  // namespace syncline::kernels
