// Ranks on nodes: shared memory, the order of sums, messages between nodes, groups. The checks for every wire run in
// local_communicator_test.cc, also on several nodes.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "comm/local/local_communicator.h"
#include "comm/shared/node.h"
#include "comm/shared/sum.h"
#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

std::vector<float> terms_of(int rank, std::size_t count) {
  std::mt19937 engine(static_cast<unsigned>(rank) + 1);
  std::normal_distribution<float> normal;
  std::vector<float> terms(count);
  for (float& term : terms) term = normal(engine) * std::exp2(normal(engine) * 8);
  return terms;
}

std::vector<float> sum_of(std::size_t ranks, std::size_t count) {
  std::vector<std::vector<float>> terms;
  for (std::size_t r = 0; r < ranks; ++r) terms.push_back(terms_of(static_cast<int>(r), count));
  return sum_in_pairs(std::move(terms));
}

const std::vector<std::vector<int>> kLayouts{{0, 0, 0},
                                             {0, 1, 2},
                                             {0, 0, 0, 0},
                                             {0, 0, 1, 1},
                                             {0, 0, 0, 1},
                                             {0, 1, 2, 3},
                                             {0, 1, 0, 1, 0},
                                             {0, 1, 1, 1, 2, 2, 2},
                                             {0, 1, 1, 2, 3, 4},
                                             {0, 1, 2, 3, 4, 5, 5, 5, 6, 7, 8},
                                             {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

TEST(NodeWire, SumsInOneOrderWhereverDataLie) {
  for (const std::vector<int>& layout : kLayouts)
    for (const std::size_t count : {3ul, 5000ul, 70001ul, 900001ul}) {
      const std::vector<float> expected = sum_of(layout.size(), count);
      spawn_ranks(static_cast<int>(layout.size()),
                  [&](Communicator& c) {
                    const std::vector<float> terms = terms_of(c.rank(), count);
                    auto* shared = reinterpret_cast<float*>(c.shared_memory(4 * count + 256));
                    std::vector<float> elsewhere = terms;
                    const auto n = static_cast<std::int64_t>(count);
                    c.wait(c.all_reduce({}, elsewhere.data(), n, DType::kFloat32, Reduce::kSum));
                    EXPECT_EQ(std::memcmp(elsewhere.data(), expected.data(), 4 * count), 0) << count << " elsewhere";
                    std::vector<float> own(count + 64);
                    if (shared == nullptr) shared = own.data();  // alone on its node
                    for (const std::size_t offset : {0ul, 64ul}) {
                      std::memcpy(shared + offset / 4, terms.data(), 4 * count);
                      c.wait(c.all_reduce({}, shared + offset / 4, n, DType::kFloat32, Reduce::kSum));
                      EXPECT_EQ(std::memcmp(shared + offset / 4, expected.data(), 4 * count), 0)
                          << count << " at " << offset;
                    }
                  },
                  {.node_of_rank = layout});
    }
}

// A node whose ranks have their data at different places of their shared memory stages them.
TEST(NodeWire, DataInDifferentPlaces) {
  constexpr std::int64_t kCount = 50000;
  for (const int staging_nodes : {1, 2})
    spawn_ranks(
        4,
        [staging_nodes](Communicator& c) {
          auto* shared = reinterpret_cast<float*>(c.shared_memory(8 * kCount));
          ASSERT_NE(shared, nullptr);
          float* data = shared + (c.rank() < 2 * staging_nodes ? c.rank() % 2 : 0) * kCount;
          std::fill_n(data, kCount, static_cast<float>(c.rank()));
          c.wait(c.all_reduce({}, data, kCount, DType::kFloat32, Reduce::kSum));
          for (std::int64_t i = 0; i < kCount; ++i) ASSERT_EQ(data[i], 6.f);
          const std::vector<std::int64_t> counts{2 * kCount, kCount, 3 * kCount, 2 * kCount};  // bytes
          std::vector<std::byte> own(static_cast<std::size_t>(counts[static_cast<std::size_t>(c.rank())]),
                                     static_cast<std::byte>(c.rank()));
          auto* all = reinterpret_cast<std::byte*>(shared);
          std::vector<std::byte> elsewhere(8 * kCount);
          if (c.rank() < 2 * staging_nodes) all = elsewhere.data();
          c.wait(c.all_gather({}, own.data(), all, counts));
          for (std::int64_t i = 0; i < 8 * kCount; ++i)
            ASSERT_EQ(all[i], static_cast<std::byte>(i < 2 * kCount ? 0 : i < 3 * kCount ? 1 : i < 6 * kCount ? 2 : 3));
        },
        {.node_of_rank = {0, 0, 1, 1}});
}

TEST(NodeWire, SharedMemoryGrowsAndMoves) {
  spawn_ranks(3, [](Communicator& c) {
    for (const std::size_t bytes : {1ul, 100000ul, 5000000ul}) {
      std::byte* memory = c.shared_memory(bytes);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
      std::memset(memory, c.rank(), bytes);
      c.barrier();
    }
  });
}

TEST(NodeWire, NodeMemory) {
  for (const std::vector<int>& layout : kLayouts) {
    auto comms = make_local_communicators(static_cast<int>(layout.size()), {.node_of_rank = layout});
    std::vector<std::jthread> ranks;
    for (auto& comm : comms) ranks.emplace_back([&comm] { check_node_memory(std::move(comm)); });
  }
}

TEST(NodeWire, GatherOnNodes) {
  for (const std::vector<int>& layout : kLayouts)
    spawn_ranks(static_cast<int>(layout.size()), check_gather_on_nodes, {.node_of_rank = layout});
  std::vector<int> many;  // in rounds
  for (int n = 0; n < 65; ++n) many.push_back(n);
  spawn_ranks(65, check_gather_on_nodes, {.node_of_rank = many});
}

TEST(NodeWire, EightNodesOfEightRanks) {
  std::vector<int> many;
  for (int r = 0; r < 64; ++r) many.push_back(r / 8);
  for (const std::size_t count : {3ul, 70001ul}) {
    const std::vector<float> expected = sum_of(many.size(), count);
    spawn_ranks(64,
                [&](Communicator& c) {
                  const auto n = static_cast<std::int64_t>(count);
                  std::vector<float> terms = terms_of(c.rank(), count);
                  c.wait(c.all_reduce({}, terms.data(), n, DType::kFloat32, Reduce::kSum));
                  EXPECT_EQ(std::memcmp(terms.data(), expected.data(), 4 * count), 0);
                  std::vector<float> own = terms_of(c.rank(), count);
                  c.wait(c.broadcast({}, own.data(), 4 * n, 37));
                  EXPECT_EQ(own, terms_of(37, count));
                  c.barrier();
                },
                {.node_of_rank = many});
  }
}

// Parts of many sizes, in shared and in private memory, in place and from other memory.
TEST(NodeWire, AllGather) {
  for (const std::vector<int>& layout : kLayouts)
    for (const std::int64_t unit : {0, 100, 40000, 300001}) {
      std::vector<std::int64_t> counts;
      for (std::size_t r = 0; r < layout.size(); ++r) counts.push_back(static_cast<std::int64_t>(r) * unit);
      std::vector<std::byte> expected;
      for (std::size_t r = 0; r < layout.size(); ++r)
        for (std::int64_t i = 0; i < counts[r]; ++i)
          expected.push_back(static_cast<std::byte>(i * 7 + i / 251 + 31 * r));
      spawn_ranks(static_cast<int>(layout.size()),
                  [&](Communicator& c) {
                    const auto rank = static_cast<std::size_t>(c.rank());
                    std::byte* shared = c.shared_memory(expected.size() + 64);
                    std::vector<std::byte> elsewhere(expected.size() + 64);
                    if (shared == nullptr) shared = elsewhere.data();  // alone on its node
                    std::int64_t begin = 0;
                    for (std::size_t r = 0; r < rank; ++r) begin += counts[r];
                    const std::vector<std::byte> own(expected.begin() + begin, expected.begin() + begin + counts[rank]);
                    for (std::byte* to : {shared, shared + 64, elsewhere.data()})
                      for (const bool in_place : {false, true}) {
                        std::fill_n(to, expected.size(), std::byte{});
                        if (in_place) std::copy(own.begin(), own.end(), to + begin);
                        c.wait(c.all_gather({}, in_place ? to + begin : own.data(), to, counts));
                        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to)) << unit << ' ' << in_place;
                      }
                  },
                  {.node_of_rank = layout});
    }
}

TEST(NodeWire, OtherRanksMemory) {
  for (const std::vector<int>& layout : kLayouts)
    spawn_ranks(static_cast<int>(layout.size()),
                [&](Communicator& c) {
                  EXPECT_EQ(c.shared_memory_of(0), nullptr);  // there is none yet
                  std::byte* shared = c.shared_memory(100000);
                  const bool one_node = std::count(layout.begin(), layout.end(), 0) == c.size();
                  EXPECT_EQ(c.one_node(), one_node);
                  if (one_node) std::memset(shared, c.rank() + 1, 100000);
                  c.barrier();
                  for (int r = 0; r < c.size(); ++r) {
                    const std::byte* memory = c.shared_memory_of(r);
                    ASSERT_EQ(memory != nullptr, one_node);
                    EXPECT_TRUE(!one_node || memory[99999] == static_cast<std::byte>(r + 1));
                  }
                  c.barrier();
                },
                {.node_of_rank = layout});
}

// RankSum adds as all_reduce does.
template <class T>
void check_rank_sum(int ranks, DType dtype) {
  constexpr std::int64_t kCount = 5000;
  std::vector<std::vector<T>> terms(static_cast<std::size_t>(ranks));
  std::vector<const void*> at;
  for (std::size_t r = 0; r < terms.size(); ++r) {
    for (std::int64_t i = 0; i < kCount; ++i)
      terms[r].push_back(static_cast<T>(std::sin(static_cast<double>(i) + 7919 * static_cast<double>(r)) * 1e3));
    at.push_back(terms[r].data());
  }
  std::vector<T> sum(kCount);
  const RankSum add(ranks);
  add(dtype, at, sum.data(), kCount);
  spawn_ranks(ranks, [&](Communicator& c) {
    std::vector<T> own = terms[static_cast<std::size_t>(c.rank())];
    c.wait(c.all_reduce({}, own.data(), kCount, dtype, Reduce::kSum));
    EXPECT_EQ(own, sum) << ranks << " ranks, " << dtype;
  });
}

TEST(NodeWire, ARankAddsTheTermsOfAllRanks) {
  for (const int ranks : {1, 2, 3, 5, 6, 8, 11, 16, 23}) {
    check_rank_sum<float>(ranks, DType::kFloat32);
    check_rank_sum<double>(ranks, DType::kFloat64);
  }
}

TEST(NodeWire, ReduceScatter) {
  for (const std::vector<int>& layout : kLayouts)
    for (const std::int64_t unit : {0, 3, 4000, 200003}) {
      std::vector<std::int64_t> counts;
      std::int64_t total = 0;
      for (std::size_t r = 0; r < layout.size(); ++r)
        counts.push_back((static_cast<std::int64_t>(r) * unit + unit) / 2);
      for (const std::int64_t count : counts) total += count;
      const std::vector<float> expected = sum_of(layout.size(), static_cast<std::size_t>(total));
      spawn_ranks(static_cast<int>(layout.size()),
                  [&](Communicator& c) {
                    std::byte* shared = c.shared_memory(static_cast<std::size_t>(4 * total + 4));
                    const std::vector<float> terms = terms_of(c.rank(), static_cast<std::size_t>(total));
                    for (const bool direct : {false, true}) {
                      std::vector<float> elsewhere = terms;
                      float* data = direct && shared != nullptr ? reinterpret_cast<float*>(shared) : elsewhere.data();
                      if (total > 0) std::memcpy(data, terms.data(), static_cast<std::size_t>(4 * total));
                      c.wait(c.reduce_scatter({}, data, counts, DType::kFloat32, Reduce::kSum));
                      std::int64_t begin = 0;
                      for (int r = 0; r < c.rank(); ++r) begin += counts[static_cast<std::size_t>(r)];
                      const std::int64_t own = counts[static_cast<std::size_t>(c.rank())];
                      for (std::int64_t i = begin; i < begin + own; ++i)
                        ASSERT_EQ(data[i], expected[static_cast<std::size_t>(i)]) << i << " of " << total;
                      c.barrier();
                    }
                  },
                  {.node_of_rank = layout});
    }
}

void check_sixteen_bits(const std::vector<int>& layout, WireFormat format, int digits) {
  constexpr std::size_t kCount = 100001;
  const int ranks = static_cast<int>(layout.size());
  std::vector<std::vector<float>> results(layout.size());
  spawn_ranks(ranks,
              [&](Communicator& c) {
                std::vector<float> data = terms_of(c.rank(), kCount), small(100, 1.0009765f);
                for (float& x : data) x = std::fmod(x, 100.f);
                std::vector<float> cut = data, scattered = data;
                c.wait(c.all_reduce({}, data.data(), kCount, DType::kFloat32, Reduce::kSum));
                c.wait(c.all_reduce({}, cut.data(), 33333, DType::kFloat32, Reduce::kSum));
                c.wait(c.all_reduce({}, cut.data() + 33333, kCount - 33333, DType::kFloat32, Reduce::kSum));
                EXPECT_EQ(std::memcmp(cut.data(), data.data(), 4 * kCount), 0) << "the pieces matter";
                std::vector<std::int64_t> shares(layout.size(), 3000);
                shares.back() += static_cast<std::int64_t>(kCount) - 3000 * std::ssize(shares);
                c.wait(c.reduce_scatter({}, scattered.data(), shares, DType::kFloat32, Reduce::kSum));
                EXPECT_EQ(std::memcmp(scattered.data() + 3000 * c.rank(), data.data() + 3000 * c.rank(),
                                      4 * static_cast<std::size_t>(shares[static_cast<std::size_t>(c.rank())])),
                          0);
                c.wait(c.all_reduce({}, small.data(), 100, DType::kFloat32, Reduce::kSum));
                EXPECT_FLOAT_EQ(small[3], static_cast<float>(ranks) * 1.0009765f) << "small ones are not rounded";
                std::vector<float> largest(kCount, 1.0001f + static_cast<float>(c.rank()));
                c.wait(c.all_reduce({}, largest.data(), kCount, DType::kFloat32, Reduce::kMax));
                EXPECT_EQ(largest, std::vector<float>(kCount, 1.0001f + static_cast<float>(ranks - 1)))
                    << "a maximum is not rounded";
                results[static_cast<std::size_t>(c.rank())] = data;
              },
              {.node_of_rank = layout, .format = format});
  std::vector<float> expected(kCount), size(kCount);
  for (int r = 0; r < ranks; ++r) {
    const std::vector<float> terms = terms_of(r, kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      expected[i] += std::fmod(terms[i], 100.f);
      size[i] += std::abs(std::fmod(terms[i], 100.f));
    }
  }
  std::size_t rounded = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(results[0][i], expected[i], size[i] * std::exp2(1 - digits) + 1e-6f) << i;
    rounded += results[0][i] != expected[i];
  }
  EXPECT_GT(rounded, kCount / 2) << "nothing was rounded";
  for (const auto& result : results) EXPECT_EQ(std::memcmp(result.data(), results[0].data(), 4 * kCount), 0);
}

// Directly, and by halving.
TEST(NodeWire, SixteenBitsBetweenNodes) {
  for (const std::vector<int>& layout : {std::vector<int>{0, 0, 1, 1, 2}, {0, 1, 2, 3, 4, 5, 5, 5, 6, 7, 8}}) {
    check_sixteen_bits(layout, WireFormat::kFloat16, 10);
    check_sixteen_bits(layout, WireFormat::kBfloat16, 7);
  }
}

// Every dtype and reduction, by halving.
TEST(NodeWire, ManyNodesReduceEverything) {
  spawn_ranks(11, [](Communicator& c) { check_all_reduce(c, {70001}); },
              {.node_of_rank = {0, 1, 2, 3, 4, 5, 5, 5, 6, 7, 8}});
}

TEST(WireFormats, RoundToTheNearestEven) {
  const std::vector<float> values{1.f, -2.5f, 1.00390625f, 1.01171875f, 3e38f, -0.f, 1e-30f, INFINITY, NAN};
  std::vector<std::uint16_t> bits(values.size());
  std::vector<float> back(values.size());
  const auto n = static_cast<std::int64_t>(values.size());
  to_wire(WireFormat::kBfloat16, values.data(), bits.data(), n);
  from_wire(WireFormat::kBfloat16, bits.data(), back.data(), n);
  EXPECT_EQ(back[0], 1.f);
  EXPECT_EQ(back[1], -2.5f);
  EXPECT_EQ(back[2], 1.f);        // half way: to even
  EXPECT_EQ(back[3], 1.015625f);  // half way: to even
  EXPECT_NEAR(back[4], 3e38f, 2e36f);
  EXPECT_TRUE(std::signbit(back[5]));
  EXPECT_TRUE(std::isinf(back[7]));
  EXPECT_TRUE(std::isnan(back[8]));
  to_wire(WireFormat::kFloat16, values.data(), bits.data(), n);
  from_wire(WireFormat::kFloat16, bits.data(), back.data(), n);
  EXPECT_EQ(back[2], 1.00390625f);
  EXPECT_TRUE(std::isinf(back[4]));
  EXPECT_TRUE(std::isnan(back[8]));
}

TEST(NodeWire, GroupsOfRanks) {
  spawn_ranks(5,
              [](Communicator& c) {
                const std::vector<int> odd{1, 3}, even{0, 2, 4};
                const auto group = c.group(c.rank() % 2 == 1 ? odd : even);
                EXPECT_EQ(group->size(), c.rank() % 2 == 1 ? 2 : 3);
                EXPECT_EQ(group->rank(), c.rank() / 2);
                std::vector<double> data(40000, c.rank());
                const Ticket ticket = group->all_reduce({}, data.data(), 40000, DType::kFloat64, Reduce::kSum);
                std::int32_t all = 1;
                c.wait(c.all_reduce({}, &all, 1, DType::kInt32, Reduce::kSum));
                group->wait(ticket);
                EXPECT_EQ(all, 5);
                EXPECT_EQ(data.back(), c.rank() % 2 == 1 ? 4 : 6);
              },
              {.node_of_rank = {0, 0, 0, 1, 1}});
}

TEST(NodeWire, RefusesGroupsThatAreNone) {
  spawn_ranks(3, [](Communicator& c) {
    EXPECT_THROW(c.group(std::vector<int>{c.rank(), 7}), ValueError);
    EXPECT_THROW(c.group(std::vector<int>{2, 1, 0}), ValueError);
    EXPECT_THROW(c.group(std::vector<int>{(c.rank() + 1) % 3}), ValueError);
  });
}

// The sums do not depend on the order of arrival, on threads or on delays.
TEST(NodeWire, DelaysDoNotChangeBits) {
  constexpr std::size_t kCount = 30000;
  const std::vector<int> layout{0, 0, 1, 1};
  const std::vector<float> expected = sum_of(layout.size(), kCount);
  spawn_ranks(4,
              [&](Communicator& c) {
                const std::vector<float> terms = terms_of(c.rank(), kCount);
                std::mt19937 delays(99 + static_cast<unsigned>(c.rank()));
                for (int run = 0; run < 100; ++run) {
                  std::vector<float> data = terms;
                  std::this_thread::sleep_for(std::chrono::microseconds(delays() % 2000));
                  const auto cut = static_cast<std::int64_t>(run) * 250 + 1;  // buckets of any size
                  const Ticket first = c.all_reduce({}, data.data(), cut, DType::kFloat32, Reduce::kSum);
                  c.wait(c.all_reduce({}, data.data() + cut, kCount - cut, DType::kFloat32, Reduce::kSum));
                  c.wait(first);
                  ASSERT_EQ(std::memcmp(data.data(), expected.data(), 4 * kCount), 0) << "run " << run;
                }
              },
              {.node_of_rank = layout});
}

TEST(NodeWire, DescribesItself) {
  const auto two = make_local_communicators(3, {.node_of_rank = {0, 0, 1}});
  EXPECT_EQ(two[0]->describe(), "3 ranks on 2 nodes, shared memory within a node, messages between nodes");
  const auto one = make_local_communicators(2);
  EXPECT_EQ(one[0]->describe(), "2 ranks on 1 node, shared memory within a node");
}

}  // namespace
}  // namespace syncline::comm
