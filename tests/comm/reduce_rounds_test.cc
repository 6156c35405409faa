// The rounds of large reductions as data: every node of a job carries them out on expressions instead of numbers.
#include "comm/rounds/reduce_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

namespace syncline::comm {
namespace {

using Expression = std::uint64_t;  // a digest of a sum with its order

Expression leaf(int block) { return 0x9e3779b97f4a7c15u * static_cast<Expression>(block + 1); }
Expression add(Expression left, Expression right) { return (left * 31 ^ right) * 0xbf58476d1ce4e5b9u + 1; }

Expression evaluate(const SumOrder& order, const std::vector<Expression>& terms) {
  std::vector<Expression> stack;
  for (const int step : order) {
    if (step != kAdd) {
      stack.push_back(terms[static_cast<std::size_t>(step)]);
      continue;
    }
    const Expression right = stack.back();
    stack.pop_back();
    stack.back() = add(stack.back(), right);
  }
  return stack.back();
}

struct Node {
  ReduceRounds rounds;
  std::vector<std::vector<Expression>> sums;  // of each block, by part
  std::size_t next = 0;
  bool sent = false;

  std::size_t count() const { return rounds.sums.size() + rounds.returns.size(); }
  const ReduceRound& round() const {
    return next < rounds.sums.size() ? rounds.sums[next] : rounds.returns[next - rounds.sums.size()];
  }
};

SumTree tree_of(const std::vector<int>& ranks_of_nodes) {
  std::vector<int> node_of_rank;
  for (std::size_t n = 0; n < ranks_of_nodes.size(); ++n)
    node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(ranks_of_nodes[n]), static_cast<int>(n));
  return SumTree(make_topology(0, node_of_rank));
}

int drawn(int first, int last, std::mt19937& random) {
  return first + static_cast<int>(random() % static_cast<unsigned>(last - first + 1));
}

// `ranks`: of each node; 0: drawn, up to `most`.
std::vector<int> ranks_of(int nodes, int ranks, int most, std::mt19937& random) {
  std::vector<int> all;
  for (int n = 0; n < nodes; ++n) all.push_back(ranks > 0 ? ranks : drawn(1, most, random));
  return all;
}

class Job {
 public:
  // Any node knows the rounds of all.
  Job(const std::vector<int>& ranks_of_nodes, Algorithm algorithm) : tree_(tree_of(ranks_of_nodes)) {
    int n = 0;
    for (ReduceRounds& own : reduce_rounds(tree_, {0, tree_.node_count()}, algorithm)) {
      std::vector<std::vector<Expression>> sums;
      for (int b = 0; b < tree_.blocks(n); ++b)
        sums.emplace_back(static_cast<std::size_t>(own.parts()), leaf(tree_.first_of(n) + b));
      nodes_.push_back({std::move(own), std::move(sums)});
      ++n;
    }
  }

  // Every node has the sum of every part, in the order of the tree, and got each part once.
  void check() {
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t n = 0; n < nodes_.size(); ++n) moves = step(static_cast<int>(n)) || moves;
    }
    std::vector<Expression> leaves;
    for (int b = 0; b < tree_.blocks(); ++b) leaves.push_back(leaf(b));
    const Expression expected = evaluate(tree_.all, leaves);
    for (const Node& node : nodes_) {
      ASSERT_EQ(node.next, node.count()) << "a node waits for ever";
      for (const Expression sum : node.sums[0]) ASSERT_EQ(sum, expected);
      std::int64_t parts = std::ranges::count(node.rounds.owners, static_cast<int>(&node - nodes_.data()));
      for (const ReduceRound& round : node.rounds.returns)
        for (const ReduceRound::Message& message : round.receives) parts += message.parts.size();
      ASSERT_EQ(parts, node.rounds.parts());
    }
    for (const auto& [_, queue] : messages_) ASSERT_TRUE(queue.empty()) << "nobody receives a message";
  }

 private:
  struct Message {
    Range parts;
    bool of_block;
    std::vector<Expression> sums;
  };

  bool step(int number) {
    Node& node = nodes_[static_cast<std::size_t>(number)];
    if (node.next == node.count()) return false;
    const ReduceRound& round = node.round();
    if (!std::exchange(node.sent, true)) {
      for (const ReduceRound::Message& m : round.sends) {
        const auto first = node.sums[static_cast<std::size_t>(m.block)].begin();
        messages_[{number, m.node}].push_back({m.parts, m.of_block, {first + m.parts.begin, first + m.parts.end}});
      }
      return true;
    }
    std::map<int, std::size_t> wanted;
    for (const ReduceRound::Message& m : round.receives)
      if (messages_[{m.node, number}].size() < ++wanted[m.node]) return false;
    std::vector<Message> come;
    for (const ReduceRound::Message& m : round.receives) {
      auto& queue = messages_[{m.node, number}];
      EXPECT_EQ(queue.front().parts, m.parts);
      EXPECT_EQ(queue.front().of_block, m.of_block);
      come.push_back(std::move(queue.front()));
      queue.pop_front();
      if (node.next >= node.rounds.sums.size())
        std::ranges::copy(come.back().sums, node.sums[0].begin() + m.parts.begin);
    }
    for (const ReduceRound::Sum& sum : round.sums)
      for (std::int64_t p = sum.parts.begin; p < sum.parts.end; ++p) {
        std::vector<Expression> terms;
        for (const int term : sum.terms) {
          const int received = term - tree_.blocks(number);
          if (received < 0) terms.push_back(node.sums[static_cast<std::size_t>(term)][static_cast<std::size_t>(p)]);
          else {
            const Message& message = come[static_cast<std::size_t>(received)];
            terms.push_back(message.sums[static_cast<std::size_t>(p - message.parts.begin)]);
          }
        }
        node.sums[static_cast<std::size_t>(sum.to)][static_cast<std::size_t>(p)] = evaluate(sum.order, terms);
      }
    node.sent = false;
    ++node.next;
    return true;
  }

  const SumTree tree_;
  std::vector<Node> nodes_;
  std::map<std::pair<int, int>, std::deque<Message>> messages_;
};

TEST(ReduceRounds, AddInTheOrderOfTheTree) {
  std::mt19937 random(1);
  for (int nodes = 2; nodes <= 64; ++nodes)
    for (const int ranks : {1, 2, 3, 6, 64, 0}) {
      const std::vector<int> ranks_of_nodes = ranks_of(nodes, ranks, nodes % 2 == 0 ? 9 : 64, random);
      SCOPED_TRACE(testing::Message() << nodes << " nodes of " << ranks << " ranks");
      Job(ranks_of_nodes, Algorithm::kDirect).check();
      Job(ranks_of_nodes, Algorithm::kHalves).check();
      if (HasFailure()) return;
    }
}

TEST(ReduceRounds, OfManyNodesAddInTheOrderOfTheTree) {
  std::mt19937 random(2);
  std::vector<std::pair<int, int>> jobs{{127, 1}, {257, 64}, {512, 1}, {512, 0}};
  for (int i = 0; i < 6; ++i) jobs.emplace_back(drawn(65, 300, random), i % 2 == 0 ? 0 : drawn(1, 64, random));
  for (const auto& [nodes, ranks] : jobs) {
    SCOPED_TRACE(testing::Message() << nodes << " nodes of " << ranks << " ranks");
    const std::vector<int> ranks_of_nodes = ranks_of(nodes, ranks, 64, random);
    Job(ranks_of_nodes, Algorithm::kHalves).check();
    if (nodes < 200) Job(ranks_of_nodes, Algorithm::kDirect).check();
    if (HasFailure()) return;
  }
}

// A node sends a sum of each of its blocks once, and gets every part of the result once; and in few rounds.
TEST(ReduceRounds, OfManyNodesMoveFewBytes) {
  std::mt19937 random(3);
  std::vector<std::pair<int, int>> jobs;
  for (const int nodes : {9, 33, 512, 513, 767, 999, 1000, 4095, 4096}) jobs.emplace_back(nodes, 4);
  for (int i = 0; i < 4; ++i) jobs.emplace_back(drawn(2, 2048, random), i % 2 == 0 ? 0 : drawn(1, 64, random));
  for (const auto& [nodes, ranks] : jobs) {
    const SumTree tree = tree_of(ranks_of(nodes, ranks, 64, random));
    int node = 0;
    for (const ReduceRounds& rounds : reduce_rounds(tree, {0, nodes}, Algorithm::kHalves)) {
      SCOPED_TRACE(testing::Message() << node << " of " << nodes << " of " << ranks << " ranks");
      const std::int64_t blocks = tree.blocks(node++);
      for (const auto* phase : {&rounds.sums, &rounds.returns}) {
        std::int64_t sent = 0, received = 0;
        for (const ReduceRound& round : *phase) {
          for (const ReduceRound::Message& m : round.sends) sent += m.parts.size();
          for (const ReduceRound::Message& m : round.receives) received += m.parts.size();
        }
        EXPECT_LE(sent, blocks * rounds.parts());
        EXPECT_LE(received, (phase == &rounds.sums ? blocks : 1) * rounds.parts());
      }
      EXPECT_LE(rounds.sums.size() + rounds.returns.size(), 24u + 2 * static_cast<std::size_t>(tree.most_blocks()));
      if (HasFailure()) return;
    }
  }
}

TEST(ReduceRounds, PartsCoverTheElements) {
  for (const std::int64_t count : {0, 1, 7, 64, 1000})
    for (const std::int64_t parts : {1, 4, 7, 512}) {
      std::int64_t next = 0;
      for (std::int64_t p = 0; p < parts; ++p) {
        EXPECT_EQ(part_of(count, p, parts).begin, next);
        next = part_of(count, p, parts).end;
      }
      EXPECT_EQ(next, count);
      EXPECT_EQ(elements_of(count, {0, parts}, parts), (Range{0, count}));
    }
}

}  // namespace
}  // namespace syncline::comm
