// The table of algorithms: which row counts, the same results by each algorithm, and the choice by size in virtual
// time.
#include "comm/rounds/algorithms.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "comm/local/local_communicator.h"
#include "comm/local/virtual_job.h"
#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

using Rows = std::vector<AlgorithmTable::Row>;
constexpr Algorithm kDirect = Algorithm::kDirect, kHalves = Algorithm::kHalves;

AlgorithmTable table_of(const Rows& rows) { return {rows, rows, rows}; }

TEST(Algorithms, TheFirstRowThatFitsCounts) {
  const Rows rows{{.nodes = 4, .bytes = 1000, .algorithm = kHalves}, {.nodes = 8, .algorithm = kDirect}};
  EXPECT_EQ(choose(rows, 4, 1000), kHalves);
  EXPECT_EQ(choose(rows, 4, 1001), kDirect);
  EXPECT_EQ(choose(rows, 5, 1000), kDirect);
  EXPECT_EQ(choose(rows, 9, 1000), kHalves);
  EXPECT_EQ(choose({}, 2, 0), kHalves);
}

TEST(Algorithms, MayBeChosenForSomeSize) {
  const Rows rows{{.nodes = 4, .bytes = 1000, .algorithm = kHalves},
                  {.nodes = 4, .algorithm = kDirect},
                  {.nodes = 9, .bytes = 70, .algorithm = kDirect}};
  for (const Algorithm algorithm : {kDirect, kHalves}) EXPECT_TRUE(may_choose(rows, 4, algorithm));
  for (const Algorithm algorithm : {kDirect, kHalves}) EXPECT_TRUE(may_choose(rows, 5, algorithm));
  EXPECT_FALSE(may_choose(rows, 10, kDirect));
  EXPECT_FALSE(may_choose(Rows{{.algorithm = kDirect}}, 3, kHalves));
}

TEST(Algorithms, FewNodesSendDirectly) {
  const AlgorithmTable table;
  for (const int nodes : {2, 3, 4}) EXPECT_EQ(choose(table.meetings, nodes, 0), kDirect);
  for (const int nodes : {5, 1024}) EXPECT_EQ(choose(table.meetings, nodes, 0), kHalves);
  for (const int nodes : {2, 8}) EXPECT_EQ(choose(table.sums, nodes, 4), kDirect);
  for (const int nodes : {9, 1024}) EXPECT_EQ(choose(table.sums, nodes, 1 << 30), kHalves);
  EXPECT_EQ(choose(table.gathers, 63, 1), kDirect);
  EXPECT_EQ(choose(table.gathers, 64, 2047), kHalves);
  EXPECT_EQ(choose(table.gathers, 64, 2048), kDirect);
}

TEST(Algorithms, DigestsTellTablesApart) {
  const AlgorithmTable built_in;
  EXPECT_EQ(digest_of(built_in), digest_of(AlgorithmTable()));
  AlgorithmTable other = built_in;
  other.sums.front().bytes = 5;
  EXPECT_NE(digest_of(other), digest_of(built_in));
  EXPECT_NE(digest_of({Rows(1), {}, {}}), digest_of({{}, Rows(1), {}}));
}

void check_sums(Communicator& comm, const std::vector<std::vector<float>>& terms, const std::vector<float>& sums) {
  const auto rank = static_cast<std::size_t>(comm.rank());
  const auto count = static_cast<std::int64_t>(sums.size());
  std::vector<float> data = terms[rank];
  comm.wait(comm.all_reduce({}, data.data(), count, DType::kFloat32, Reduce::kSum));
  EXPECT_EQ(std::memcmp(data.data(), sums.data(), 4 * sums.size()), 0) << "all_reduce of " << count;
  data = terms[rank];
  const std::int64_t share = count / comm.size();
  std::vector<std::int64_t> shares(terms.size(), share);
  shares.back() += count % comm.size();
  comm.wait(comm.reduce_scatter({}, data.data(), shares, DType::kFloat32, Reduce::kSum));
  EXPECT_EQ(std::memcmp(&data[rank * static_cast<std::size_t>(share)], &sums[rank * static_cast<std::size_t>(share)],
                        4 * static_cast<std::size_t>(shares[rank])),
            0)
      << "reduce_scatter of " << count;
}

// Whatever the algorithm, also where it changes with the size.
TEST(Algorithms, GiveTheSameBits) {
  std::vector<std::vector<int>> layouts{
      {0, 1}, {0, 1, 2}, {0, 0, 1, 1, 2}, {0, 1, 2, 3, 4}, {0, 0, 0, 1, 2, 2, 3, 4, 5}};
  layouts.emplace_back();
  for (int n = 0; n < 11; ++n) layouts.back().push_back(n);
  for (const std::vector<int>& layout : layouts)
    for (const Rows& rows : {Rows{{.algorithm = kDirect}}, Rows{{.algorithm = kHalves}},
                             Rows{{.bytes = 20000, .algorithm = kHalves}, {.algorithm = kDirect}},
                             Rows{{.bytes = 20000, .algorithm = kDirect}}}) {
      SCOPED_TRACE(testing::Message() << layout.size() << " ranks on " << layout.back() + 1 << " nodes, " << rows.size()
                                      << " rows, first " << static_cast<int>(rows.front().algorithm));
      std::vector<std::vector<std::vector<float>>> terms;
      std::vector<std::vector<float>> sums;
      for (const std::size_t count : {3ul, 30001ul, 400003ul}) {
        terms.emplace_back();
        for (std::size_t r = 0; r < layout.size(); ++r) {
          terms.back().emplace_back(count);
          for (std::size_t i = 0; i < count; ++i)
            terms.back().back()[i] = 1 / static_cast<float>(1 + i * 31 % 97 + r * 7);
        }
        sums.push_back(sum_in_pairs(terms.back()));
      }
      spawn_ranks(static_cast<int>(layout.size()),
                  [&](Communicator& comm) {
                    for (std::size_t i = 0; i < sums.size(); ++i) check_sums(comm, terms[i], sums[i]);
                    check_broadcast(comm);
                    check_all_gather(comm);
                    check_gather_on_nodes(comm);
                  },
                  {.node_of_rank = layout, .algorithms = table_of(rows)});
    }
}

double seconds(const AlgorithmTable& algorithms, std::int64_t count) {
  VirtualOptions options{.algorithms = algorithms};
  for (int n = 0; n < 12; ++n) options.node_of_rank.push_back(n);
  VirtualJob job(options);
  std::vector<std::vector<float>> data(12, std::vector<float>(static_cast<std::size_t>(count)));
  std::vector<Collective> collectives;
  for (auto& own : data) collectives.push_back(make_all_reduce({}, own.data(), count, DType::kFloat32, Reduce::kSum));
  return job.run(collectives);
}

TEST(Algorithms, AreChosenBySize) {
  AlgorithmTable direct, halves, by_size;
  direct.sums = {{.algorithm = kDirect}};
  halves.sums = {};
  by_size.sums = {{.bytes = 20000, .algorithm = kHalves}, {.algorithm = kDirect}};
  constexpr std::int64_t kSmall = 12 * 5000, kLarge = 12 * 5001;  // messages of 20000 and 20004 bytes
  EXPECT_NE(seconds(direct, kSmall), seconds(halves, kSmall));
  EXPECT_EQ(seconds(by_size, kSmall), seconds(halves, kSmall));
  EXPECT_EQ(seconds(by_size, kLarge), seconds(direct, kLarge));
}

double seconds_of_gather(const AlgorithmTable& algorithms, std::int64_t bytes) {
  VirtualOptions options{.algorithms = algorithms, .lengths_only = true};
  for (int n = 0; n < 12; ++n) options.node_of_rank.push_back(n);
  VirtualJob job(options);
  std::vector<std::byte> memory(static_cast<std::size_t>(bytes));
  const std::vector<std::int64_t> counts(12, bytes / 12);
  return job.run(std::vector<Collective>(12, make_all_gather({}, memory.data(), memory.data(), counts, 0, 12)));
}

// Its memory, and its messages, would be as large as the result.
TEST(Algorithms, ALargeGatherIsDirect) {
  AlgorithmTable direct, halves;
  direct.gathers = {{.algorithm = kDirect}};
  halves.gathers = {};
  constexpr std::int64_t kMost = AlgorithmTable::kMostPacked / 12 * 12;
  EXPECT_NE(seconds_of_gather(halves, kMost), seconds_of_gather(direct, kMost));
  EXPECT_EQ(seconds_of_gather(halves, kMost + 12), seconds_of_gather(direct, kMost + 12));
}

}  // namespace
}  // namespace syncline::comm
