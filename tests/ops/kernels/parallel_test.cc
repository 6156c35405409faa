#include "ops/kernels/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "syncline/error.h"

namespace syncline::kernels {
namespace {

using Index = std::int64_t;

#if defined(__SSE__)
void flush_denormals() { _mm_setcsr(_mm_getcsr() | 0x8040); }  // FTZ and DAZ
#else
void flush_denormals() {}
#endif

TEST(Parallel, ChunksCoverEachItemOnce) {
  for (Index count : {0, 1, 2, 63, 64, 65, 1000, 100'000, 1'000'003})
    for (double cost : {0.1, 1.0, 100.0, 1e6}) {
      const Chunks chunks = fixed_chunks(count, cost);
      EXPECT_LE(chunks.count, kMaxChunks);
      Index next = 0;
      for (Index i = 0; i < chunks.count; ++i) {
        EXPECT_EQ(chunks.begin(i), next);
        EXPECT_GT(chunks.end(i), chunks.begin(i));
        next = chunks.end(i);
      }
      EXPECT_EQ(next, count);
    }
}

TEST(Parallel, LoopCoversEachItemOnce) {
  for (int threads : {1, 2, 4}) {
    set_thread_count(threads);
    EXPECT_EQ(thread_count(), threads);
    for (Index count : {0, 1, 100, 100'003}) {
      std::vector<int> hits(static_cast<std::size_t>(count));
      parallel_for(count, 50.0, [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
      });
      EXPECT_EQ(hits, std::vector<int>(static_cast<std::size_t>(count), 1));
    }
  }
  set_thread_count(2);
}

TEST(Parallel, ShortLoopIsOneCallOnTheCaller) {
  set_thread_count(2);
  int calls = 0;
  parallel_for(100, 1.0, [&](Index begin, Index end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
  });
  EXPECT_EQ(calls, 1);
}

TEST(Parallel, OneThreadStaysOnTheCaller) {
  set_thread_count(1);
  const auto caller = std::this_thread::get_id();
  parallel_for(1'000'000, 100.0, [&](Index, Index) { EXPECT_EQ(std::this_thread::get_id(), caller); });
  set_thread_count(2);
}

TEST(Parallel, TwoThreadsWorkTogether) {
  set_thread_count(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  parallel_chunks(Chunks{2, 1, 2}, [&](Index, Index, Index) {
    ++inside;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (inside == 2) met = true;
  });
  EXPECT_TRUE(met);
}

TEST(Parallel, SumOfChunksHasTheSameBits) {
  std::vector<double> sums;
  for (int threads : {1, 2, 3}) {
    set_thread_count(threads);
    const Chunks chunks = fixed_chunks(1'000'003, 1.0);
    std::vector<double> partial(static_cast<std::size_t>(chunks.count));
    parallel_chunks(chunks, [&](Index chunk, Index begin, Index end) {
      double sum = 0;
      for (Index i = begin; i < end; ++i) sum += 1.0 / static_cast<double>(i + 1);
      partial[static_cast<std::size_t>(chunk)] = sum;
    });
    sums.push_back(std::accumulate(partial.begin(), partial.end(), 0.0));
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[0], sums[2]);
  set_thread_count(2);
}

// A rounding mode, and whether denormal numbers are kept.
using Modes = std::pair<int, bool>;

Modes modes_of_this_thread() {
  volatile float smallest_normal = std::numeric_limits<float>::min();
  return {std::fegetround(), smallest_normal * 0.5F != 0.F};
}

// The modes of two threads that run in one loop.
std::set<Modes> modes_in_a_loop() {
  std::set<Modes> seen;
  std::mutex mutex;
  std::atomic<int> inside{0};
  parallel_chunks(Chunks{2, 1, 2}, [&](Index, Index, Index) {
    ++inside;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    seen.insert(modes_of_this_thread());
  });
  EXPECT_EQ(inside, 2);
  return seen;
}

// A library that is loaded after the pool was made may change the modes.
TEST(Parallel, LoopsHaveTheFloatingPointModesOfTheirCaller) {
  set_thread_count(2);
  std::fenv_t before;
  ASSERT_EQ(std::fegetenv(&before), 0);
  const Modes usual = modes_of_this_thread();
  EXPECT_EQ(modes_in_a_loop(), std::set<Modes>{usual});
  std::fesetround(FE_UPWARD);
  flush_denormals();
  const Modes others = modes_of_this_thread();
  const std::set<Modes> seen = modes_in_a_loop();
  const Modes after = modes_of_this_thread();
  std::fesetenv(&before);
  EXPECT_NE(others, usual);
  EXPECT_EQ(seen, std::set<Modes>{others});
  EXPECT_EQ(after, others);
  EXPECT_EQ(modes_in_a_loop(), std::set<Modes>{usual});
}

TEST(Parallel, InnerLoopRunsOnItsCaller) {
  set_thread_count(2);
  parallel_for(64, 1e5, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const auto caller = std::this_thread::get_id();
      parallel_for(64, 1e5, [&](Index, Index) { EXPECT_EQ(std::this_thread::get_id(), caller); });
    }
  });
}

TEST(Parallel, SeveralCallersAtOnce) {
  set_thread_count(2);
  std::vector<std::thread> callers;
  std::atomic<Index> total{0};
  for (int t = 0; t < 5; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        std::atomic<Index> sum{0};
        parallel_for(1000, 100.0, [&](Index begin, Index end) { sum += end - begin; });
        total += sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 5 * 200 * 1000);
}

TEST(Parallel, ExceptionReachesTheCaller) {
  for (int threads : {1, 2}) {
    set_thread_count(threads);
    const auto loop = [] {
      parallel_for(1000, 1e4, [](Index, Index end) {
        if (end == 1000) throw std::runtime_error("from the body");
      });
    };
    EXPECT_THROW(loop(), std::runtime_error);
  }
  Index count = 0;  // and the pool still works
  parallel_chunks(Chunks{4, 1, 4}, [&, mutex = std::make_unique<std::mutex>()](Index, Index, Index) {
    std::lock_guard lock(*mutex);
    ++count;
  });
  EXPECT_EQ(count, 4);
}

TEST(Parallel, RefusesNoThreadsAndTooMany) {
  EXPECT_THROW(set_thread_count(0), ValueError);
  EXPECT_THROW(set_thread_count(kMostThreads + 1), ValueError);
}

}  // namespace
}  // namespace syncline::kernels
