#include "comm/shared/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
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

// The ranks of a node, driven by this thread.
class Node {
 public:
  explicit Node(int ranks) : wires_(make_local_wires(ranks)) {}
  ~Node() {
    for (const auto& wire : wires_) wire->close(true);
  }
  void make_memory(std::int64_t bytes) {
    run(std::vector<Collective>(wires_.size(),
                                comm::make_memory(Kind::kSharedMemory, static_cast<std::size_t>(bytes))));
  }
  // Returns how often a poll returned before the end because it had done enough.
  int run(const std::vector<Collective>& collectives) {
    int moves = 0;
    std::set<std::size_t> open;
    for (std::size_t r = 0; r < wires_.size(); ++r) {
      wires_[r]->begin(collectives[r]);
      open.insert(r);
    }
    while (!open.empty())
      std::erase_if(open, [&](std::size_t r) {
        const Wire::Progress progress = wires_[r]->poll(collectives[r]);
        moves += progress == Wire::Progress::kMoving ? 1 : 0;
        return progress == Wire::Progress::kDone;
      });
    return moves;
  }
  std::byte* memory(int r) { return wires_[static_cast<std::size_t>(r)]->shared_memory(); }
  float* numbers(int r) { return reinterpret_cast<float*>(memory(r)); }

 private:
  const std::vector<std::unique_ptr<Wire>> wires_;
};

// Few large parts, and many smaller ones.
TEST(Steps, ALargeGatherInSharedMemoryReturnsNowAndThen) {
  for (const auto& [ranks, bytes] : {std::pair<int, std::int64_t>{2, 44'000'003}, {8, 6'000'003}}) {
    Node node(ranks);
    node.make_memory(ranks * bytes);
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), bytes);
    std::vector<Collective> gathers;
    for (int r = 0; r < ranks; ++r) {
      std::byte* const own = node.memory(r) + r * bytes;
      std::memset(own, r + 1, static_cast<std::size_t>(bytes));
      own[bytes - 1] = std::byte{99};
      gathers.push_back(make_all_gather({}, own, node.memory(r), counts, r, ranks));
    }
    EXPECT_GE(node.run(gathers), 4 * ranks) << ranks;
    for (int r = 0; r < ranks; ++r)
      for (int other = 0; other < ranks; ++other) {
        const std::byte* part = node.memory(r) + other * bytes;
        EXPECT_EQ(std::count(part, part + bytes - 1, static_cast<std::byte>(other + 1)), bytes - 1);
        EXPECT_EQ(part[bytes - 1], std::byte{99});
      }
  }
}

// Otherwise a sum of a gigabyte would keep other callers from the wire, and an end from being seen.
TEST(Steps, ALargeSumInSharedMemoryReturnsNowAndThen) {
  constexpr std::int64_t kCount = 11'000'003;  // each rank adds up 44 MB
  Node node(2);
  node.make_memory(4 * kCount);
  for (const bool scatters : {false, true}) {
    const std::vector<std::int64_t> counts{kCount / 3, kCount - kCount / 3};
    std::vector<Collective> sums;
    for (int r = 0; r < 2; ++r) {
      float* const data = node.numbers(r);
      for (std::int64_t i = 0; i < kCount; ++i) data[i] = static_cast<float>((r + 1) * (i % 1000));
      sums.push_back(scatters ? make_reduce_scatter({}, data, counts, DType::kFloat32, Reduce::kSum, 2)
                              : make_all_reduce({}, data, kCount, DType::kFloat32, Reduce::kSum));
    }
    EXPECT_GE(node.run(sums), 8);
    for (int r = 0; r < 2; ++r) {
      const bool all = !scatters;
      const std::int64_t begin = all || r == 0 ? 0 : counts[0], end = all || r == 1 ? kCount : counts[0];
      for (std::int64_t i = begin; i < end; ++i)
        ASSERT_EQ(node.numbers(r)[i], static_cast<float>(3 * (i % 1000))) << r << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace syncline::comm
