// Shared variables: the ranks of a node have one copy, and each updates its rows. They have the bits of variables that
// each rank keeps.
#include "tests/runtime/shared_variables.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/local/local_communicator.h"
#include "runtime/placement/variable_rows.h"
#include "syncline/training/accumulation.h"
#include "tests/comm/forwarding.h"
#include "tests/graphs/lagging_rank.h"

namespace syncline::testing {
namespace {

TEST(SharedVariables, HaveTheBitsOfOwnVariables) {
  expect_bits_of_own({{0, 0}, {0, 0, 0}, {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 1, 1}}, kShares);
}

TEST(SharedVariables, NeedNeighbours) {
  trained(2, {0, 1}, kShares, false);
  trained(1, {0}, kShares, false);
}

TEST(SharedVariables, LieOnceInTheMemoryOfANode) {
  std::vector<const std::byte*> at(4);
  on_ranks(4,
           [&](comm::Communicator& communicator) {
             const Network net;
             net.train()({batch(1)});
             at[static_cast<std::size_t>(communicator.rank())] = net.kernel.state().value().raw();
             communicator.barrier();
           },
           kShares, 5, {0, 0, 0, 1});
  EXPECT_EQ(at[0], at[1]);
  EXPECT_EQ(at[0], at[2]);
  EXPECT_NE(at[0], at[3]);
}

TEST(SharedVariables, OneRankReadsThemAlone) {
  std::vector<Array> first, wanted;
  on_ranks(
      3,
      [&](comm::Communicator& communicator) {
        const Network net;
        Function train = net.train();
        train({batch(1)});
        if (communicator.rank() == 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the others are in the next step
          first = net.values();
        }
        train({batch(2)});
      },
      kShares);
  on_ranks(3,
           [&](comm::Communicator& communicator) {
             const Network net;
             net.train()({batch(1)});
             if (communicator.rank() == 0) wanted = net.values();
           },
           {.share_from = kNever});
  expect_bits(first, wanted, "rank 0");
}

TEST(SharedVariables, FunctionsAndPeopleReadAndSetThem) {
  expect_bits(worked_with(kShares), worked_with({.share_from = kNever}), "result");
}

// A variable that is not shared takes the old value of a shared one, while a faster rank may be in its next step.
TEST(SharedVariables, OldValuesAreReadBeforeTheyAreOverwritten) {
  on_ranks(
      3,
      [&](comm::Communicator& communicator) {
        const Variable from = variable(random_doubles({64, 64}, 1)), to = zeros({64, 64}, {.dtype = DType::kFloat64});
        Function f({}, {}, {update(to, from), update(from, from * 0.5)});
        Array wanted = from.state().value().copy();
        for (int i = 0; i < 300; ++i) {
          f({});
          ASSERT_TRUE(same_bits(get_value(to), wanted)) << "rank " << communicator.rank() << ", step " << i;
          for (std::int64_t k = 0; k < wanted.size(); ++k) wanted.data<double>()[k] *= 0.5;
        }
      },
      kShares);
}

// Rank 0 has written its rows when it fails: the step has no other transfer than its barrier.
TEST(SharedVariables, AStepThatFailsChangesNothing) {
  Array before, after;
  const auto run = [&](comm::Communicator& communicator) {
    const Variable v = drawn({64, 4}, 1, "v");
    Function half({}, {}, {update(v, v * 0.5)}, "half");
    half({});
    half({});
    ASSERT_NE(v.state().shared(), nullptr);
    if (communicator.rank() == 1) fail<Error>("the rank leaves");
    before = get_value(v);
    EXPECT_THROW(half({}), StallError);
    after = get_value(v);
    EXPECT_FALSE(same_bits(v.state().shared()->next.copy(), before));
  };
  EXPECT_THROW(on_ranks(2, run, kShares), Error);
  EXPECT_TRUE(same_bits(after, before));
}

// The memory of nodes with too little of it.
class SmallNode : public comm::Forwarding {
 public:
  explicit SmallNode(comm::Communicator& communicator) : Forwarding(communicator), place_(communicator.node_place()) {}
  comm::NodePlace node_place() const override { return place_; }
  comm::NodeBlock node_memory(std::size_t) override {
    ++asked;
    return {};
  }
  int asked = 0;

 private:
  const comm::NodePlace place_;
};

TEST(SharedVariables, WithTooLittleMemoryEachRankKeepsItsOwn) {
  std::vector<Array> own;
  comm::spawn_ranks(2, [&](comm::Communicator& communicator) {
    SmallNode small(communicator);
    Session session(5);
    const SessionScope scope(session);
    session.distribute(make_data_parallel(small, kShares));
    const Network net;
    net.train_five_steps();
    Function({}, {}, {update(net.scale, net.scale * 0.5)})({});
    EXPECT_EQ(net.kernel.state().shared(), nullptr);
    EXPECT_EQ(small.asked, 1);
    if (communicator.rank() == 0) own = batch_get_value(std::vector<Variable>{net.filters, net.kernel});
  });
  const std::vector<Array> shared = trained(2, {0, 0}, kShares, true);
  expect_bits(own, {shared[0], shared[1]}, "own");
}

// Ranks that lag behind each other. `maps`: whether they map each other's memory of transfers.
class CountedSums : public graphs::LaggingRank {
 public:
  CountedSums(comm::Communicator& communicator, bool maps) : LaggingRank(communicator, 7, 4), maps_(maps) {}
  comm::Ticket reduce_scatter(const comm::Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                              comm::Reduce reduce) override {
    ++sums;
    return LaggingRank::reduce_scatter(tag, data, counts, dtype, reduce);
  }
  const std::byte* shared_memory_of(int rank) const override {
    return maps_ ? LaggingRank::shared_memory_of(rank) : nullptr;
  }
  int sums = 0;

 private:
  const bool maps_;
};

// No rank overwrites its terms of a sum while others read them, in many steps. Terms that no other rank maps are summed
// first.
TEST(SharedVariables, TermsAreAddedWhereTheyLie) {
  for (const int ranks : {2, 3, 5})
    for (const bool maps : {true, false}) {
      std::vector<Array> values;
      comm::spawn_ranks(ranks, [&](comm::Communicator& communicator) {
        CountedSums counted(communicator, maps);
        Session session(5);
        const SessionScope scope(session);
        session.distribute(make_data_parallel(counted, kShares));
        const Network net;
        net.train_five_steps();
        EXPECT_EQ(counted.sums, maps ? 0 : 10);
        if (communicator.rank() == 0) values = net.values();
      });
      const DataParallelOptions own{.share_from = kNever};
      const std::vector<int> one_node(static_cast<std::size_t>(ranks), 0);
      expect_bits(values, trained(ranks, one_node, own, false), maps ? "mapped" : "unmapped");
    }
}

TEST(SharedVariables, AnotherSessionMayNotUpdateThemAlone) {
  on_ranks(
      2,
      [&](comm::Communicator&) {
        const Network net;
        Function train = net.train();
        train({batch(1)});
        {
          Session alone(7);
          const SessionScope scope(alone);
          Function({}, {}, {update(net.kernel, net.kernel * 0.5)})({});
        }
        const std::string text = message_of<Error>([&] { train({batch(2)}); });
        EXPECT_NE(text.find("variable 'dense/kernel' was shared by the ranks of a node"), std::string::npos) << text;
      },
      kShares);
}

// On rank 0. `make` makes the step.
std::string training_plan(
    const DataParallelOptions& options, const std::vector<int>& nodes = {0, 0},
    const std::function<Function(const Network&)>& make = [](const Network& net) { return net.train(); }) {
  std::string text;
  on_ranks(
      static_cast<int>(nodes.size()),
      [&](comm::Communicator& communicator) {
        const Network net;
        const std::vector<Array> feeds{batch(1)};
        const std::string plan = make(net).describe(feeds);
        if (communicator.rank() == 0) text = plan;
      },
      options, 5, nodes);
  return text;
}

TEST(SharedVariables, ThePlan) {
  const std::string shared = training_plan({.by_rows_from = kNever, .share_from = 16});
  const std::string own = training_plan({.by_rows_from = kNever, .share_from = kNever});
  EXPECT_EQ(count_lines(shared, "barrier"), 1) << shared;
  EXPECT_EQ(count_lines(own, "barrier"), 0) << own;
  EXPECT_EQ(count_lines(shared, "all_reduce"), count_lines(own, "all_reduce")) << shared;
  EXPECT_EQ(count_lines(shared, "assign") + count_lines(shared, "all_gather") + count_lines(shared, "copy("), 0)
      << shared;
}

// The gradients of the dense kernels are large enough for a transfer of their own. The other two share one.
TEST(SharedVariables, EachRankGetsItsRowsOfALargeGradient) {
  DataParallelOptions options{.first_bucket = 1024, .by_rows_from = kNever, .share_from = 16};
  constexpr const char* kInPlace = "reduce_scatter: the ranks' terms are added where they are read";
  const auto expect_sums = [](const std::string& plan, int scattered, int whole) {
    EXPECT_EQ(count_lines(plan, kInPlace), scattered) << plan;
    EXPECT_EQ(count_lines(plan, "reduce_scatter: "), scattered) << plan;
    EXPECT_EQ(count_lines(plan, "all_reduce: "), whole) << plan;
    EXPECT_EQ(count_lines(plan, "copy(") + count_lines(plan, "all_gather"), 0) << plan;
  };
  expect_sums(training_plan(options), 2, 1);
  expect_sums(training_plan(options, {0, 0, 1, 1}), 0, 2);  // each node has all rows, in two buckets
  const auto clipped = [](const Network& net) {             // the norm reads the whole gradient
    const Expr gradient = gradients(net.loss, std::vector<Variable>{net.wide})[0];
    const Expr norm = sqrt(sum(square(gradient)));
    return Function({net.x}, {net.loss}, {update(net.wide, net.wide - gradient / norm)});
  };
  EXPECT_EQ(count_lines(training_plan(options, {0, 0}, clipped), "reduce_scatter: "), 0);
  options.optimizer_state = OptimizerState::kSplit;
  const std::string between_nodes = training_plan(options, {0, 0, 1, 1});
  EXPECT_EQ(count_lines(between_nodes, "reduce_scatter: "), 2);
  EXPECT_EQ(count_lines(between_nodes, kInPlace), 0);
}

// The gradient of a variable that is reshaped before its use is a view.
TEST(SharedVariables, AGradientMayBeAView) {
  const DataParallelOptions options{.first_bucket = 1024, .by_rows_from = kNever, .share_from = 16};
  const auto make = [](const Network& net) {
    const Variable flat = drawn({72 * 300}, 5, "flat");
    const Expr loss = mean(square(dot(net.flat, reshape(flat, {72, 300}))));
    return Function({net.x}, {loss}, {update(flat, flat - gradients(loss, std::vector<Variable>{flat})[0])});
  };
  const std::string plan = training_plan(options, {0, 0}, make);
  EXPECT_EQ(count_lines(plan, "reduce_scatter: "), 1) << plan;
}

// The gradient is computed by rows of the kernel, or summed; the variable's rows are elements.
TEST(SharedVariables, AGradientMayBeANewValue) {
  const auto values_with = [](const DataParallelOptions& options) {
    std::vector<Array> values;
    on_ranks(
        2,
        [&](comm::Communicator& communicator) {
          const Expr x = placeholder({.shape = {kUnknown, 32}});
          const Variable kernel = drawn({32, 300}, 1, "kernel");
          const Expr loss = mean(square(dot(x, kernel)));
          const Expr gradient = gradients(loss, std::vector<Variable>{kernel})[0];
          Function descend({x}, {}, {update(kernel, kernel - gradient)}), assign({x}, {}, {update(kernel, gradient)});
          for (Function* function : {&descend, &assign, &assign, &descend}) {
            (*function)({random_doubles({4, 32}, 3).cast(DType::kFloat32)});
            if (communicator.rank() == 0) values.push_back(get_value(kernel));
          }
          EXPECT_EQ(kernel.state().shared() != nullptr, options.share_from < kNever);
        },
        options);
    return values;
  };
  for (const std::int64_t by_rows_from : {std::int64_t{16}, kNever})
    expect_bits(values_with({.first_bucket = 1024, .by_rows_from = by_rows_from, .share_from = 16}),
                values_with({.by_rows_from = by_rows_from, .share_from = kNever}), "shared");
}

// An update under a condition copies nothing in the steps without an update: its variables stay each rank's own.
TEST(SharedVariables, ConditionalUpdatesAreOwn) {
  on_ranks(
      2,
      [&](comm::Communicator&) {
        const Network net;
        const AccumulatingOptimizer optimizer = accumulate(net.optimizer, 2);
        Function train({net.x}, {net.loss}, optimizer.updates, "train");
        for (std::uint64_t i = 0; i < 3; ++i) train({batch(i)});
        EXPECT_EQ(net.kernel.state().shared(), nullptr);
      },
      kShares);
}

TEST(SharedVariables, Rows) {
  EXPECT_EQ(rows_of({784, 512}), (Shape{784, 512}));
  EXPECT_EQ(rows_of({3, 3, 64, 128}), (Shape{576, 128}));
  EXPECT_EQ(rows_of({1, 1, 256, 8}), (Shape{256, 8}));
  EXPECT_EQ(rows_of({3, 3, 3, 8}), (Shape{216}));
  EXPECT_EQ(rows_of({10}), (Shape{10}));
  EXPECT_EQ(rows_of({0, 4}), (Shape{0}));
}

}  // namespace
}  // namespace syncline::testing
