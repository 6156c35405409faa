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
  SumTree tree;
  ReduceRounds rounds;
  std::vector<std::vector<Expression>> sums;  // of each block, by part
  std::size_t next = 0;
  bool sent = false;

  std::size_t count() const { return rounds.sums.size() + rounds.returns.size(); }
  const ReduceRound& round() const {
    return next < rounds.sums.size() ? rounds.sums[next] : rounds.returns[next - rounds.sums.size()];
  }
};

class Job {
 public:
  Job(const std::vector<int>& ranks_of_nodes, Algorithm algorithm) {
    std::vector<int> node_of_rank;
    for (std::size_t n = 0; n < ranks_of_nodes.size(); ++n)
      node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(ranks_of_nodes[n]), static_cast<int>(n));
    // Any node knows the rounds of all.
    std::vector<ReduceRounds> of_nodes =
        reduce_rounds(SumTree(make_topology(static_cast<int>(node_of_rank.size()) - 1, node_of_rank)),
                      {0, std::ssize(ranks_of_nodes)}, algorithm);
    int rank = 0;
    for (std::size_t n = 0; n < ranks_of_nodes.size(); rank += ranks_of_nodes[n++]) {
      SumTree tree(make_topology(rank, node_of_rank));
      ReduceRounds& own = of_nodes[n];
      std::vector<std::vector<Expression>> sums;
      for (int b = 0; b < tree.own_blocks(); ++b)
        sums.emplace_back(static_cast<std::size_t>(own.parts()), leaf(tree.first_of(static_cast<int>(n)) + b));
      nodes_.push_back({std::move(tree), std::move(own), std::move(sums)});
    }
  }

  // Every node has the sum of every part, in the order of the tree, and got each part once.
  void check() {
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t n = 0; n < nodes_.size(); ++n) moves = step(static_cast<int>(n)) || moves;
    }
    std::vector<Expression> leaves;
    for (int b = 0; b < nodes_[0].tree.blocks(); ++b) leaves.push_back(leaf(b));
    const Expression expected = evaluate(nodes_[0].tree.all, leaves);
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
          const int received = term - node.tree.own_blocks();
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

  std::vector<Node> nodes_;
  std::map<std::pair<int, int>, std::deque<Message>> messages_;
};

TEST(ReduceRounds, AddInTheOrderOfTheTree) {
  std::mt19937 random(1);
  for (int nodes = 2; nodes <= 40; ++nodes)
    for (const int ranks : {1, 2, 3, 6, 0}) {
      std::vector<int> ranks_of_nodes;
      for (int n = 0; n < nodes; ++n) ranks_of_nodes.push_back(ranks > 0 ? ranks : static_cast<int>(1 + random() % 9));
      SCOPED_TRACE(testing::Message() << nodes << " nodes of " << ranks << " ranks");
      Job(ranks_of_nodes, Algorithm::kDirect).check();
      Job(ranks_of_nodes, Algorithm::kHalves).check();
      if (HasFailure()) return;
    }
  for (const int nodes : {127, 257, 512})
    Job(std::vector<int>(static_cast<std::size_t>(nodes), 1), Algorithm::kHalves).check();
}

// A node sends its sums once, if its ranks are a power of two; and with many nodes, in few rounds.
TEST(ReduceRounds, OfManyNodesMoveFewBytes) {
  for (const int nodes : {9, 33, 512, 513, 767, 999, 1000, 4095}) {
    std::vector<int> node_of_rank;
    for (int n = 0; n < nodes; ++n) node_of_rank.insert(node_of_rank.end(), 4, n);
    int node = 0;
    for (const ReduceRounds& rounds :
         reduce_rounds(SumTree(make_topology(0, node_of_rank)), {0, nodes}, Algorithm::kHalves)) {
      SCOPED_TRACE(testing::Message() << node++ << " of " << nodes);
      for (const auto* phase : {&rounds.sums, &rounds.returns}) {
        std::int64_t sent = 0, received = 0;
        for (const ReduceRound& round : *phase) {
          for (const ReduceRound::Message& m : round.sends) sent += m.parts.size();
          for (const ReduceRound::Message& m : round.receives) received += m.parts.size();
        }
        EXPECT_LE(sent, rounds.parts());
        EXPECT_LE(received, rounds.parts());
      }
      EXPECT_LE(rounds.sums.size() + rounds.returns.size(), 24u);
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
