#include "comm/shared/steps.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "comm/local/local_communicator.h"

namespace syncline::comm {
namespace {

struct Counted {
  explicit Counted(int& living) : living_(living) { ++living_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --living_; }
  int& living_;
};

struct Signals {
  bool first = false, second = false;
  int living = 0, passed = 0;
};

Steps inner(Signals& signals, bool fails_at_once, bool fails_later) {
  const Counted one(signals.living);
  if (fails_at_once) throw std::runtime_error("at once");
  co_await until([&] { return signals.first; });
  ++signals.passed;
  if (fails_later) throw std::runtime_error("later");
  co_await until([&] { return signals.second; });
  ++signals.passed;
}

Steps outer(Signals& signals, bool fails_at_once = false, bool fails_later = false) {
  const Counted one(signals.living);
  co_await inner(signals, fails_at_once, fails_later);
  ++signals.passed;
}

TEST(Steps, GoOnWhenWhatTheyWaitForHolds) {
  Signals signals;
  {
    Steps steps = outer(signals);
    EXPECT_EQ(signals.living, 0);  // nothing runs before the first call
    EXPECT_FALSE(steps.advance());
    EXPECT_FALSE(steps.advance());
    EXPECT_EQ(signals.passed, 0);
    signals.first = true;
    EXPECT_FALSE(steps.advance());
    EXPECT_EQ(signals.passed, 1);
    signals.second = true;
    while (!steps.advance()) continue;
    EXPECT_EQ(signals.passed, 3);
  }
  EXPECT_EQ(signals.living, 0);
}

TEST(Steps, MayBeDestroyedAtAWait) {
  Signals signals;
  {
    Steps steps = outer(signals);
    EXPECT_FALSE(steps.advance());
    EXPECT_EQ(signals.living, 2);
  }
  EXPECT_EQ(signals.living, 0);
}

TEST(Steps, PassOnExceptions) {
  for (const bool later : {false, true}) {
    Signals signals;
    {
      Steps steps = outer(signals, !later, later);
      if (later) {
        EXPECT_FALSE(steps.advance());
      }
      signals.first = true;
      EXPECT_THROW(steps.advance(), std::runtime_error);
    }
    EXPECT_EQ(signals.living, 0);
  }
}

// Two ranks of a node, driven by this thread.
class TwoRanks {
 public:
  ~TwoRanks() {
    for (const auto& wire : wires_) wire->close(true);
  }
  // Returns how often a poll returned before the end because it had done enough.
  int run(const std::array<Collective, 2>& collectives) {
    int moves = 0;
    std::array<bool, 2> done{};
    for (int r = 0; r < 2; ++r) wires_[at(r)]->begin(collectives[at(r)]);
    while (!done[0] || !done[1])
      for (int r = 0; r < 2; ++r) {
        if (done[at(r)]) continue;
        const Wire::Progress progress = wires_[at(r)]->poll(collectives[at(r)]);
        done[at(r)] = progress == Wire::Progress::kDone;
        moves += progress == Wire::Progress::kMoving ? 1 : 0;
      }
    return moves;
  }
  float* memory(int r) { return reinterpret_cast<float*>(wires_[at(r)]->shared_memory()); }

 private:
  static std::size_t at(int r) { return static_cast<std::size_t>(r); }
  const std::vector<std::unique_ptr<Wire>> wires_ = make_local_wires(2);
};

TEST(Steps, ALargeGatherInSharedMemoryReturnsNowAndThen) {
  constexpr std::int64_t kBytes = 44'000'003;  // of each rank
  TwoRanks ranks;
  const Collective memory = make_shared_memory(2 * kBytes);
  ranks.run({memory, memory});
  const std::vector<std::int64_t> counts(2, kBytes);
  std::array<Collective, 2> gathers;
  for (int r = 0; r < 2; ++r) {
    auto* const data = reinterpret_cast<std::byte*>(ranks.memory(r));
    for (std::int64_t i = 0; i < kBytes; ++i) data[r * kBytes + i] = static_cast<std::byte>(i % 251 + r);
    gathers[static_cast<std::size_t>(r)] = make_all_gather({}, data + r * kBytes, data, counts, 2);
  }
  EXPECT_GE(ranks.run(gathers), 8);
  for (int r = 0; r < 2; ++r)
    for (std::int64_t i = 0; i < 2 * kBytes; ++i)
      ASSERT_EQ(reinterpret_cast<std::byte*>(ranks.memory(r))[i], static_cast<std::byte>(i % kBytes % 251 + i / kBytes))
          << r << ' ' << i;
}

// Otherwise a sum of a gigabyte would keep other callers from the wire, and an end from being seen.
TEST(Steps, ALargeSumInSharedMemoryReturnsNowAndThen) {
  constexpr std::int64_t kCount = 11'000'003;  // each rank adds up 44 MB
  TwoRanks ranks;
  const Collective memory = make_shared_memory(4 * kCount);
  ranks.run({memory, memory});
  for (const bool scatters : {false, true}) {
    for (int r = 0; r < 2; ++r)
      for (std::int64_t i = 0; i < kCount; ++i) ranks.memory(r)[i] = static_cast<float>((r + 1) * (i % 1000));
    std::array<Collective, 2> sums;
    const std::array<std::int64_t, 2> counts{kCount / 3, kCount - kCount / 3};
    for (int r = 0; r < 2; ++r) {
      float* const data = ranks.memory(r);
      sums[static_cast<std::size_t>(r)] = scatters
                                              ? make_reduce_scatter({}, data, counts, DType::kFloat32, Reduce::kSum, 2)
                                              : make_all_reduce({}, data, kCount, DType::kFloat32, Reduce::kSum);
    }
    EXPECT_GE(ranks.run(sums), 8);
    for (int r = 0; r < 2; ++r) {
      const bool all = !scatters;
      const std::int64_t begin = all || r == 0 ? 0 : counts[0], end = all || r == 1 ? kCount : counts[0];
      for (std::int64_t i = begin; i < end; ++i)
        ASSERT_EQ(ranks.memory(r)[i], static_cast<float>(3 * (i % 1000))) << r << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace syncline::comm
