// How nodes meet: the rounds as data for all numbers of nodes, and small collectives of many nodes driven by one
// thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "comm/local/local_communicator.h"
#include "comm/rounds/meeting_rounds.h"
#include "comm/shared/node_control.h"
#include "tests/comm/collective_checks.h"

namespace syncline::comm {
namespace {

// Nodes that send and receive what they know, as fast as the messages come.
struct Node {
  std::vector<MeetingRound> rounds;
  NodeRun known;
  std::size_t next = 0;
  bool sent = false;
};

// Whether a node could begin or end a round. Fails if a message tells something else than the receiver expects, or
// nothing new.
bool step(int number, std::vector<Node>& nodes, std::map<std::pair<int, int>, std::deque<NodeRun>>& messages) {
  Node& node = nodes[static_cast<std::size_t>(number)];
  if (node.next == node.rounds.size()) return false;
  const MeetingRound& round = node.rounds[node.next];
  if (!std::exchange(node.sent, true)) {
    for (const int to : round.to) messages[{number, to}].push_back(node.known);
    return true;
  }
  const auto queue_of = [&](const auto& message) -> auto& { return messages[{message.node, number}]; };
  if (std::ranges::any_of(round.from, [&](const auto& message) { return queue_of(message).empty(); })) return false;
  int size = node.known.size();
  for (const MeetingRound::Message& message : round.from) {
    EXPECT_EQ(queue_of(message).front(), message.tells);
    size += message.tells.size();
    queue_of(message).pop_front();
  }
  node.known = known_after(round, node.known);
  EXPECT_EQ(node.known.size(), size) << "told twice, or with a gap";
  node.sent = false;
  ++node.next;
  return true;
}

void check_rounds(int count, Algorithm algorithm) {
  std::vector<Node> nodes;
  std::size_t most_rounds = 0, most_messages = 0;
  for (int n = 0; n < count; ++n) {
    nodes.push_back({meeting_rounds(n, count, algorithm), {n, n + 1}});
    most_rounds = std::max(most_rounds, nodes.back().rounds.size());
    for (const MeetingRound& round : nodes.back().rounds) most_messages = std::max(most_messages, round.to.size());
  }
  std::map<std::pair<int, int>, std::deque<NodeRun>> messages;
  for (bool moved = true; moved;) {
    moved = false;
    for (int n = 0; n < count; ++n) moved = step(n, nodes, messages) || moved;
  }
  for (const Node& node : nodes) {
    ASSERT_EQ(node.next, node.rounds.size()) << "a node waits for ever, of " << count;
    ASSERT_EQ(node.known, (NodeRun{0, count}));
  }
  for (const auto& [_, queue] : messages) ASSERT_TRUE(queue.empty()) << "nobody receives a message, of " << count;
  if (algorithm == Algorithm::kDirect) {
    EXPECT_EQ(most_rounds, count > 1 ? 1u : 0u) << count;
    return;
  }
  EXPECT_LE(most_rounds, 12u) << count;  // up to 4096 nodes
  EXPECT_LE(most_messages, 2u) << count;
}

TEST(MeetingRounds, TellEveryNodeOfAllNodes) {
  for (int count = 1; count <= 200; ++count) check_rounds(count, Algorithm::kHalves);
  for (int count = 1; count <= 40; ++count) check_rounds(count, Algorithm::kDirect);
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) check_rounds(static_cast<int>(201 + random() % 3800), Algorithm::kHalves);
  for (const int count : {512, 513, 767, 999, 1000, 4095, 4096}) check_rounds(count, Algorithm::kHalves);
}

TEST(MeetingRounds, OfManyNodesAreFew) { EXPECT_EQ(meeting_rounds(3, 1024, Algorithm::kHalves).size(), 10u); }

Summary summary_of(std::uint32_t rank, std::uint64_t plan) {
  Summary summary;
  summary.header.plan = plan;
  summary.first = rank;
  return summary;
}

// Appending is associative, and finds the first rank that differs from the first of all.
TEST(Summary, NamesTheFirstRankThatDiffers) {
  std::mt19937 random(3);
  for (int run = 0; run < 2000; ++run) {
    std::vector<Summary> ranks;
    for (std::uint32_t r = 0; r < 6; ++r) ranks.push_back(summary_of(r, random() % 2 + random() % 2));
    const auto differs = std::ranges::find_if(ranks, [&](const Summary& s) { return s.header != ranks[0].header; });
    const Summary expected = differs == ranks.end() ? Summary{} : *differs;
    while (ranks.size() > 1) {  // join neighbours in any order
      const auto i = static_cast<std::ptrdiff_t>(random() % (ranks.size() - 1));
      ranks[static_cast<std::size_t>(i)].append(ranks[static_cast<std::size_t>(i + 1)]);
      ranks.erase(ranks.begin() + i + 1);
    }
    ASSERT_EQ(ranks[0].differing, expected.first);
    EXPECT_EQ(ranks[0].other, expected.header);
  }
}

// The wires of a job whose ranks one thread drives, in any order. Small collectives do not block.
class ManyNodes {
 public:
  explicit ManyNodes(std::vector<int> node_of_rank)
      : wires_(make_local_wires(static_cast<int>(node_of_rank.size()), node_of_rank)) {}
  ~ManyNodes() {
    for (const auto& wire : wires_) wire->close(true);
  }

  std::size_t size() const { return wires_.size(); }

  void run(const std::vector<Collective>& collectives) {
    std::vector<std::size_t> open(size());
    for (std::size_t r = 0; r < size(); ++r) open[r] = r;
    for (std::size_t r = 0; r < size(); ++r) wires_[r]->begin(collectives[r]);
    for (int looks = 0; !open.empty(); ++looks) {
      ASSERT_LT(looks, 100) << open.size() << " ranks wait for ever";
      std::ranges::shuffle(open, random_);
      std::erase_if(open, [&](std::size_t r) { return wires_[r]->poll(collectives[r]) == Wire::Progress::kDone; });
    }
  }

  Wire& wire(std::size_t rank) { return *wires_[rank]; }

 private:
  std::vector<std::unique_ptr<Wire>> wires_;
  std::mt19937 random_{11};
};

std::vector<int> layout(int nodes, int ranks_a_node) {
  std::vector<int> node_of_rank;
  for (int n = 0; n < nodes; ++n) node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(ranks_a_node), n);
  return node_of_rank;
}

std::vector<std::vector<int>> layouts() {
  std::vector<std::vector<int>> all;
  for (const int nodes : {2, 3, 4, 5, 6, 9, 16, 33, 65}) all.push_back(layout(nodes, 1));
  for (const int nodes : {2, 5, 12, 27}) all.push_back(layout(nodes, 3));
  all.push_back({0, 1, 1, 1, 2, 2, 3, 4, 4, 4, 4, 4, 4, 5, 6, 6, 6});
  return all;
}

TEST(Meeting, SumsInOneOrderInEveryLayout) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const std::vector<int>& nodes : layouts())
    for (const std::size_t count : {1ul, 1000ul, 16384ul}) {
      ManyNodes job(nodes);
      std::vector<std::vector<float>> data(job.size(), std::vector<float>(count));
      for (auto& own : data)
        for (float& x : own) x = normal(random);
      const std::vector<float> expected = sum_in_pairs(data);
      std::vector<Collective> collectives;
      for (auto& own : data)
        collectives.push_back(
            make_all_reduce({}, own.data(), static_cast<std::int64_t>(count), DType::kFloat32, Reduce::kSum));
      job.run(collectives);
      for (const auto& own : data) ASSERT_EQ(own, expected) << nodes.size() << " ranks";
    }
}

TEST(Meeting, GathersAndBroadcasts) {
  for (const std::vector<int>& nodes : layouts()) {
    ManyNodes job(nodes);
    const int size = static_cast<int>(job.size());
    std::vector<std::int64_t> counts;
    std::vector<std::byte> expected;
    for (int r = 0; r < size; ++r) {
      counts.push_back(r % 3 == 1 ? 0 : 7 * r);
      expected.resize(expected.size() + static_cast<std::size_t>(counts.back()), static_cast<std::byte>(r + 1));
    }
    std::vector<std::vector<std::byte>> parts, results(job.size(), std::vector<std::byte>(expected.size()));
    for (int r = 0; r < size; ++r) parts.emplace_back(1000, static_cast<std::byte>(r + 1));
    std::vector<Collective> collectives;
    for (std::size_t r = 0; r < job.size(); ++r)
      collectives.push_back(make_all_gather({}, parts[r].data(), results[r].data(), counts, static_cast<int>(r), size));
    job.run(collectives);
    for (const auto& result : results) ASSERT_EQ(result, expected) << size << " ranks";
    for (const int root : {0, size / 2, size - 1}) {
      for (std::size_t r = 0; r < job.size(); ++r) {
        results[r].assign(300, static_cast<std::byte>(r));
        collectives[r] = make_broadcast({}, results[r].data(), 300, root, size);
      }
      job.run(collectives);
      for (const auto& result : results)
        ASSERT_EQ(result, std::vector<std::byte>(300, static_cast<std::byte>(root))) << size << " ranks";
    }
  }
}

// One rank calls a small collective, the others a large one.
TEST(Meeting, EveryRankNamesTheOneThatDiffers) {
  for (const std::vector<int>& nodes : layouts()) {
    ManyNodes job(nodes);
    const std::size_t odd = job.size() * 2 / 3;
    std::vector<std::vector<float>> data(job.size(), std::vector<float>(20000, 1.f));
    std::vector<Collective> collectives;
    for (std::size_t r = 0; r < job.size(); ++r)
      collectives.push_back(make_all_reduce({}, data[r].data(), r == odd ? 10 : 20000, DType::kFloat32, Reduce::kSum));
    for (std::size_t r = 0; r < job.size(); ++r) job.wire(r).begin(collectives[r]);
    std::size_t told = 0;
    std::vector<bool> open(job.size(), true);
    for (int looks = 0; told < job.size() && looks < 100; ++looks)
      for (std::size_t r = 0; r < job.size(); ++r) {
        if (!open[r]) continue;
        try {
          ASSERT_EQ(job.wire(r).poll(collectives[r]), Wire::Progress::kWaiting);
        } catch (const DisagreementError& e) {
          EXPECT_NE(std::string(e.what()).find("float32 x 10 on rank " + std::to_string(odd)), std::string::npos)
              << e.what();
          open[r] = false;
          ++told;
        }
      }
    EXPECT_EQ(told, job.size()) << "ranks wait for ever";
    for (const auto& own : data) EXPECT_EQ(own, std::vector<float>(20000, 1.f));
  }
}

}  // namespace
}  // namespace syncline::comm
