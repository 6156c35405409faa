// Many nodes in virtual time: the code of the wire, on links of 100 Gbit/s with a latency of 5 us. The times do not
// depend on the machine.
#include "comm/local/virtual_job.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <string>

#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

std::vector<int> alone(int nodes) {
  std::vector<int> node_of_rank;
  for (int n = 0; n < nodes; ++n) node_of_rank.push_back(n);
  return node_of_rank;
}

// Nodes of these numbers of ranks.
std::vector<int> layout_of(const std::vector<int>& sizes) {
  std::vector<int> node_of_rank;
  for (std::size_t n = 0; n < sizes.size(); ++n)
    node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(sizes[n]), static_cast<int>(n));
  return node_of_rank;
}

std::vector<Collective> sums_of(std::vector<std::vector<float>>& data) {
  std::vector<Collective> collectives;
  for (auto& own : data)
    collectives.push_back(
        make_all_reduce({}, own.data(), static_cast<std::int64_t>(own.size()), DType::kFloat32, Reduce::kSum));
  return collectives;
}

std::vector<std::vector<float>> terms_of(std::size_t ranks, std::size_t count) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> terms(ranks, std::vector<float>(count));
  for (auto& own : terms)
    for (float& x : own) x = normal(random);
  return terms;
}

// All ranks get the bits of the canonical order.
void check_sums(VirtualJob& job, std::size_t count) {
  std::vector<std::vector<float>> data = terms_of(static_cast<std::size_t>(job.size()), count);
  const std::vector<float> expected = sum_in_pairs(data);
  job.run(sums_of(data));
  for (const auto& own : data)
    ASSERT_EQ(std::memcmp(own.data(), expected.data(), 4 * count), 0) << job.size() << " ranks, " << count;
}

// Layouts below and above the border between the two algorithms, with several blocks of ranks a node too.
TEST(VirtualJob, SumsInOneOrderInEveryLayout) {
  std::vector<std::vector<int>> layouts{alone(2),
                                        alone(3),
                                        alone(8),
                                        alone(9),
                                        alone(12),
                                        alone(33),
                                        {0, 0, 0, 1, 1},
                                        {0, 0, 0, 0, 0, 0, 0, 1},
                                        {0, 1, 1, 1, 2, 2, 3, 4, 4, 4, 4, 4, 4, 5, 6, 6, 6, 7, 8, 8, 8, 9}};
  layouts.push_back(layout_of(std::vector<int>(11, 3)));
  // The ranks of the small nodes have more rails than there are slices in flight.
  layouts.push_back(layout_of({12, 12, 1, 12, 2}));
  for (const std::vector<int>& layout : layouts)
    for (const std::size_t count : {3ul, 20000ul, 300001ul}) {
      VirtualJob job({.node_of_rank = layout, .jitter = 20e-6});
      ASSERT_NO_FATAL_FAILURE(check_sums(job, count));
    }
}

// `simulate --real` has larger sums.
TEST(VirtualJob, SumsTheNumbersOf1024Ranks) {
  std::vector<int> uneven(300, 3);
  for (std::size_t n = 0; n < 124; ++n) ++uneven[2 * n];
  for (const std::vector<int>& layout : {layout_of(std::vector<int>(256, 4)), layout_of(uneven)}) {
    ASSERT_EQ(layout.size(), 1024u);
    VirtualJob job({.node_of_rank = layout, .jitter = 20e-6});
    for (const std::size_t count : {3ul, 20000ul}) ASSERT_NO_FATAL_FAILURE(check_sums(job, count));
  }
}

// More chunks than are in flight.
TEST(VirtualJob, ManyChunks) {
  for (const int nodes : {2, 9}) {
    VirtualJob job({.node_of_rank = alone(nodes), .jitter = 20e-6});
    ASSERT_NO_FATAL_FAILURE(check_sums(job, 3000003));
  }
}

// Ranks that compute for different times begin two sums and compute further while these are under way.
TEST(VirtualJob, AStepOverlapsSumsWithComputation) {
  constexpr std::size_t kSmall = 300, kLarge = 300001;
  constexpr double kCompute = 1e-3;
  for (const std::vector<int>& layout : {alone(2), alone(12), {0, 0, 0, 1, 1}, {0, 0, 1, 1, 2, 2, 3, 3, 4}}) {
    VirtualJob job({.node_of_rank = layout, .jitter = 20e-6});
    std::vector<std::vector<float>> small = terms_of(layout.size(), kSmall), large = terms_of(layout.size(), kLarge);
    const std::vector<float> sum_of_small = sum_in_pairs(small), sum_of_large = sum_in_pairs(large);
    const std::vector<Collective> first = sums_of(large), second = sums_of(small);
    std::vector<std::vector<VirtualAction>> steps;
    for (std::size_t r = 0; r < layout.size(); ++r) {
      const double delay = static_cast<double>(r) * 1e-5;
      steps.push_back({{delay, first[r]}, {kCompute, second[r]}, {kCompute, {}, 0}, {kCompute, {}, 1}});
    }
    const double latest = static_cast<double>(layout.size() - 1) * 1e-5, seconds = job.run(steps);
    for (std::size_t r = 0; r < layout.size(); ++r) {
      ASSERT_EQ(small[r], sum_of_small);
      ASSERT_EQ(large[r], sum_of_large);
    }
    VirtualJob idle({.node_of_rank = layout, .jitter = 20e-6});
    const double of_sums = idle.run(first) + idle.run(second);
    EXPECT_GE(seconds, latest + 3 * kCompute - 1e-9);
    EXPECT_LT(seconds, latest + 3 * kCompute + of_sums / 2) << layout.size() << " ranks, sums of " << of_sums;
  }
}

// How many elements each rank gets: equal parts, parts of all sizes, and all for one rank.
std::vector<std::vector<std::int64_t>> shares_of(std::int64_t count, std::size_t ranks) {
  std::vector<std::int64_t> equal(ranks, count / static_cast<std::int64_t>(ranks)), rising, one(ranks, 0);
  for (std::size_t r = 0; r < ranks; ++r) rising.push_back(static_cast<std::int64_t>(r) * equal[r] / 2);
  one[ranks / 2] = count;
  return {equal, rising, one};
}

TEST(VirtualJob, ReduceScattersInTheOrderOfSums) {
  for (const std::vector<int>& layout : {alone(2),
                                         alone(3),
                                         alone(9),
                                         alone(12),
                                         alone(33),
                                         {0, 0, 0, 1, 1},
                                         {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8},
                                         {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2},
                                         {0, 1, 1, 1, 2, 2, 3, 4, 4, 4, 4, 4, 4, 5, 6, 6, 6, 7, 8, 8, 8, 9}})
    for (const std::int64_t count : {20000, 400000})
      for (const std::vector<std::int64_t>& shares : shares_of(count, layout.size())) {
        const std::int64_t total = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
        VirtualJob job({.node_of_rank = layout, .jitter = 20e-6});
        std::vector<std::vector<float>> data = terms_of(layout.size(), static_cast<std::size_t>(total));
        const std::vector<float> expected = sum_in_pairs(data);
        std::vector<Collective> collectives;
        for (auto& own : data)
          collectives.push_back(make_reduce_scatter({}, own.data(), shares, DType::kFloat32, Reduce::kSum, job.size()));
        job.run(collectives);
        std::size_t begin = 0;
        for (std::size_t r = 0; r < data.size(); ++r) {
          const auto size = static_cast<std::size_t>(shares[r]);
          ASSERT_EQ(std::memcmp(data[r].data() + begin, expected.data() + begin, 4 * size), 0)
              << "rank " << r << " of " << layout.size() << ", " << size << " of " << total;
          begin += size;
        }
      }
}

// Memory that can only be read, as of a NumPy array over a file.
class ReadOnly {
 public:
  explicit ReadOnly(const std::vector<std::byte>& bytes) : size_(bytes.size()) {
    data_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    std::memcpy(data_, bytes.data(), size_);
    if (::mprotect(data_, size_, PROT_READ) != 0) throw std::bad_alloc();
  }
  ~ReadOnly() { ::munmap(data_, size_); }
  void* data() const { return data_; }

 private:
  std::size_t size_;
  void* data_;
};

TEST(VirtualJob, BroadcastsFromAnyRank) {
  for (const std::vector<int>& layout :
       {alone(3), alone(9), alone(12), {0, 0, 0, 1, 1}, {0, 1, 1, 1, 2, 2, 3, 4, 4, 5, 6, 6, 6, 7, 8, 8, 8, 9}})
    for (const int root : {0, 2, static_cast<int>(layout.size()) - 1})
      for (const std::size_t count : {70000ul, 3000001ul}) {
        VirtualJob job({.node_of_rank = layout, .jitter = 20e-6});
        std::vector<std::byte> sent(count);
        for (std::size_t i = 0; i < count; ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
        const ReadOnly memory(sent);
        const int ranks = static_cast<int>(layout.size());
        std::vector<std::vector<std::byte>> data(layout.size(), std::vector<std::byte>(count));
        std::vector<Collective> collectives;
        for (int r = 0; r < ranks; ++r)
          collectives.push_back(make_broadcast({}, r == root ? memory.data() : data[static_cast<std::size_t>(r)].data(),
                                               static_cast<std::int64_t>(count), root, ranks));
        job.run(collectives);
        data[static_cast<std::size_t>(root)] = sent;
        for (const auto& own : data) ASSERT_EQ(own, sent) << ranks << " ranks, root " << root;
      }
}

// Few bytes in rounds, many in several steps; nodes of one, two or three ranks.
TEST(VirtualJob, GathersOfManyNodes) {
  std::vector<int> uneven, pairs;
  for (int n = 0; n < 66; ++n) uneven.insert(uneven.end(), 1 + static_cast<std::size_t>(n % 3), n);
  for (int n = 0; n < 67; ++n) pairs.insert(pairs.end(), 2, n);
  for (const std::vector<int>& layout : {alone(65), uneven, pairs, {0, 0, 0, 1, 1}})
    for (const std::int64_t unit : {1200, 4000, 100000}) {
      std::vector<std::int64_t> counts;
      std::vector<std::byte> expected;
      for (std::size_t r = 0; r < layout.size(); ++r) {
        counts.push_back(r % 5 == 1 ? 0 : unit * static_cast<std::int64_t>(r % 7) / 2);
        for (std::int64_t i = 0; i < counts[r]; ++i)
          expected.push_back(static_cast<std::byte>(i * 7 + i / 251 + 31 * static_cast<std::int64_t>(r)));
      }
      VirtualJob job({.node_of_rank = layout, .jitter = 20e-6});
      std::vector<std::vector<std::byte>> results(layout.size(), std::vector<std::byte>(expected.size()));
      std::vector<Collective> gathers;
      std::int64_t begin = 0;
      for (std::size_t r = 0; r < layout.size(); begin += counts[r++])
        gathers.push_back(
            make_all_gather({}, expected.data() + begin, results[r].data(), counts, static_cast<int>(r), job.size()));
      job.run(gathers);
      for (const auto& result : results) ASSERT_EQ(result, expected) << layout.size() << " ranks, unit " << unit;
    }
}

TEST(VirtualJob, LostMessagesAndASlowLinkChangeTheTimeOnly) {
  constexpr std::size_t kCount = 400000;
  std::vector<std::vector<float>> data = terms_of(12, kCount);
  const std::vector<float> expected = sum_in_pairs(data);
  std::vector<std::vector<float>> again = data;
  VirtualJob good({.node_of_rank = alone(12)});
  VirtualJob bad({.node_of_rank = alone(12), .links_of_nodes = {{5, {.bandwidth = 1e9}}}, .drops = 0.1});
  const double seconds = good.run(sums_of(data));
  EXPECT_GT(bad.run(sums_of(again)), 2 * seconds);
  EXPECT_EQ(data[7], expected);
  EXPECT_EQ(again, data);
}

// The ranks that a report names.
std::set<int> ranks_of(const std::string& report) {
  const std::regex name("rank ([0-9]+)");
  std::set<int> ranks;
  for (std::sregex_iterator at(report.begin(), report.end(), name), end; at != end; ++at) ranks.insert(stoi((*at)[1]));
  return ranks;
}

// All ranks name one that stops before a collective or within it, however far they are from it, and no other rank. If
// two stop, a rank may wait for one of them only.
TEST(VirtualJob, StoppedRanksAreNamedByAllOthers) {
  std::vector<int> two_a_node;
  for (int r = 0; r < 40; ++r) two_a_node.push_back(r / 2);
  for (const std::vector<int>& layout : {alone(5), alone(33), two_a_node})
    for (const auto& [count, end] : {std::pair(3ul, 0.0), {300000ul, 0.0}, {300000ul, 40e-6}}) {
      const int last = static_cast<int>(layout.size()) - 1;
      for (const std::set<int>& stopped : {std::set<int>{0}, {last / 2}, {1, last}}) {
        VirtualOptions options{.node_of_rank = layout};
        for (const int r : stopped) options.ends[r] = end;
        VirtualJob job(options);
        std::vector<std::vector<float>> data = terms_of(layout.size(), count);
        const std::vector<Collective> sums = sums_of(data);
        const std::map<int, std::string> missing = job.stall(sums);
        EXPECT_EQ(missing.size(), layout.size() - stopped.size());
        for (const auto& [rank, report] : missing) {
          const std::set<int> named = ranks_of(report);
          ASSERT_TRUE(!named.empty() && std::ranges::includes(stopped, named))
              << layout.size() << " ranks, " << count << " elements, until " << end << ", rank " << rank << ": "
              << report;
        }
      }
    }
}

// All ranks share one array of zeros; nothing moves but lengths.
double seconds_of(VirtualJob& job, std::int64_t bytes) {
  static std::vector<float> zeros(25 << 18);
  const Collective collective = make_all_reduce({}, zeros.data(), bytes / 4, DType::kFloat32, Reduce::kSum);
  return job.run(std::vector<Collective>(static_cast<std::size_t>(job.size()), collective));
}

// benchmarks/simulate shows more sizes and more nodes, whose wires fill gigabytes.
TEST(VirtualJob, SumsOfManyNodesAreCloseToTheLimits) {
  constexpr int kNodes = 95;  // harder than a power of two
  VirtualJob job({.node_of_rank = alone(kNodes), .lengths_only = true});
  const double bytes = 25 << 20, bound = 2 * (kNodes - 1.) / kNodes * bytes / 12.5e9;
  EXPECT_LT(seconds_of(job, 25 << 20), 1.2 * bound);
  EXPECT_LT(seconds_of(job, 1 << 20), 0.4e-3);
  EXPECT_LT(seconds_of(job, 4), 60e-6);
}

// Half an all-reduce: no sum returns.
TEST(VirtualJob, AReduceScatterMovesEachByteOnce) {
  std::vector<float> zeros(25 << 18);
  for (const int nodes : {8, 64, 95}) {
    VirtualJob job({.node_of_rank = alone(nodes), .lengths_only = true});
    std::vector<std::int64_t> counts;
    for (int n = 0; n < nodes; ++n)
      counts.push_back((n + 1) * std::ssize(zeros) / nodes - n * std::ssize(zeros) / nodes);
    const Collective scatter = make_reduce_scatter({}, zeros.data(), counts, DType::kFloat32, Reduce::kSum, nodes);
    const double bound = (nodes - 1.) / nodes * (25 << 20) / 12.5e9;
    EXPECT_LT(job.run(std::vector<Collective>(counts.size(), scatter)), 1.2 * bound) << nodes;
  }
}

// Slices of nodes whose ranks have different numbers of rails wait for each other, over many chunks.
TEST(VirtualJob, NodesOfOtherSizesAmongMany) {
  for (const std::vector<int>& sizes : {std::vector<int>{4, 4, 4, 4, 4, 4, 4, 4, 3},
                                        {8, 8, 8, 8, 5, 8, 8, 8, 8},
                                        {3, 3, 3, 1, 3, 3, 3, 3, 5, 2},
                                        {12, 12, 1, 12}}) {
    const std::vector<int> layout = layout_of(sizes);
    VirtualJob job({.node_of_rank = layout, .jitter = 20e-6, .lengths_only = true});
    const std::int64_t bytes = std::int64_t{12 << 20} * *std::ranges::max_element(sizes);
    job.run(std::vector<Collective>(layout.size(), make_memory(Kind::kSharedMemory, bytes)));
    std::vector<float> alone(static_cast<std::size_t>(bytes / 4));
    std::vector<Collective> sums;
    for (std::size_t r = 0; r < layout.size(); ++r) {
      std::byte* const shared = job.shared_memory(static_cast<int>(r));
      sums.push_back(make_all_reduce({}, shared != nullptr ? static_cast<void*>(shared) : alone.data(), bytes / 4,
                                     DType::kFloat32, Reduce::kSum));
    }
    // Nodes whose ranks are several blocks of the sums' tree send more than the limit says.
    const auto nodes = static_cast<double>(sizes.size());
    EXPECT_LT(job.run(sums), 3.5 * 2 * (nodes - 1) / nodes * static_cast<double>(bytes) / 12.5e9) << sizes[0];
  }
}

// As rounds, not as messages of all to all, each of which costs the sender half a microsecond.
TEST(VirtualJob, ASmallGatherOfManyNodesTakesFewMessages) {
  constexpr int kNodes = 300;
  VirtualJob job({.node_of_rank = alone(kNodes), .link = {.overhead = 5e-7}, .lengths_only = true});
  std::vector<std::byte> memory(100'000);
  const std::vector<std::int64_t> counts(kNodes, std::ssize(memory) / kNodes);
  const Collective gather = make_all_gather({}, memory.data(), memory.data(), counts, 0, kNodes);
  EXPECT_LT(job.run(std::vector<Collective>(kNodes, gather)), 140e-6);
}

// If all began with the same node, its link would get all messages at once: 1.35 and 1.9 times the limit.
TEST(VirtualJob, FewNodesBeginTheirMessagesWithDifferentNodes) {
  VirtualJob job({.node_of_rank = alone(8), .lengths_only = true});
  EXPECT_LT(seconds_of(job, 1 << 20), 1.2 * 2 * 7. / 8 * (1 << 20) / 12.5e9);
  std::vector<std::byte> memory(8 << 20);
  const std::vector<std::int64_t> counts(8, 1 << 20);
  std::vector<Collective> gathers;
  for (int r = 0; r < 8; ++r) gathers.push_back(make_all_gather({}, memory.data(), memory.data(), counts, r, 8));
  EXPECT_LT(job.run(gathers), 1.2 * 7. * (1 << 20) / 12.5e9);
}

}  // namespace
}  // namespace syncline::comm
