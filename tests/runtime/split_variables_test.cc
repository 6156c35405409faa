// Split variables: between nodes, a rank has the rows of its node only of variables that steps use by rows. They have
// the bits of variables that each rank keeps.
#include <gtest/gtest.h>

#include <new>
#include <optional>

#include "tests/io/memory_limit.h"
#include "tests/runtime/shared_variables.h"

namespace syncline::testing {
namespace {

TEST(SplitVariables, HaveTheBitsOfOwnVariables) {
  expect_bits_of_own({{0, 1}, {0, 1, 2}, {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 1, 1}}, kSplits);
}

// Only the optimizer's slots are read by rows.
TEST(SplitVariables, ANodeHasItsRanksRowsOfSlots) {
  const std::vector<int> nodes{0, 0, 0, 1};
  std::vector<std::size_t> bytes(nodes.size());
  std::size_t whole = 0;
  on_ranks(
      4,
      [&](comm::Communicator& communicator) {
        const Network net;
        net.train()({batch(1)});
        std::size_t all = 0, here = 0;
        for (const Variable& v : net.optimizer.weights) {
          const bool large = v.state().shared() != nullptr;
          EXPECT_EQ(v.state().is_split(), large) << v.name();
          if (!large) continue;
          all += static_cast<std::size_t>(v.shape().size()) * size_of(v.dtype());
          here += v.state().value().bytes();
        }
        for (const Variable& v : net.variables) EXPECT_FALSE(v.state().is_split()) << v.name();
        bytes[static_cast<std::size_t>(communicator.rank())] = here;
        if (communicator.rank() == 0) whole = all;
      },
      kSplits, 5, nodes);
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_EQ(bytes[0] + bytes[3], whole);
  EXPECT_GT(bytes[3], whole / 5);
  EXPECT_LT(bytes[3], whole / 3);
}

TEST(SplitVariables, FunctionsAndPeopleReadAndSetThem) {
  expect_bits(worked_with(kSplits, {0, 1}), worked_with({.share_from = kNever}, {0, 1}), "result");
}

TEST(SplitVariables, BelongToTheirJob) {
  on_ranks(2,
           [&](comm::Communicator&) {
             const Network net;
             Function train = net.train();
             train({batch(1)});
             Session::current().undistribute();
             const Variable& slot = net.optimizer.weights[2];
             const auto is_named = [](const std::string& text) {
               return text.find("is split between the nodes of a job (SYNCLINE_OPTIMIZER_STATE)") != std::string::npos;
             };
             EXPECT_TRUE(is_named(message_of<Error>([&] { get_value(slot); })));
             EXPECT_TRUE(is_named(message_of<Error>([&] { eval(slot * 2.0); })));
             EXPECT_TRUE(is_named(message_of<Error>([&] { train({batch(1)}); })));
             for (const Variable& v : net.optimizer.weights)
               if (v.state().is_split()) set_value(v, Array(v.dtype(), v.shape()));
             train({batch(1)});
             EXPECT_FALSE(slot.state().is_split());
           },
           kSplits, 5, {0, 1});
}

TEST(SplitVariables, AStepThatFailsChangesNothing) {
  on_ranks(2,
           [&](comm::Communicator&) {
             const Network net;
             const Expr row = placeholder({.shape = {}, .dtype = DType::kInt32, .name = "row"});
             Function train({net.x, row}, {net.loss, gather(net.wide, row)}, net.optimizer.updates, "train");
             const auto look = [&] {
               std::vector<Array> values;
               for (const Variable& v : net.all()) values.push_back(v.state().value().copy());
               return values;
             };
             train({batch(1), Array::scalar<std::int32_t>(3)});
             const std::vector<Array> before = look();
             EXPECT_THROW(train({batch(2), Array::scalar<std::int32_t>(1000)}), Error);
             expect_bits(look(), before, "after an error");
             train({batch(2), Array::scalar<std::int32_t>(3)});
             EXPECT_FALSE(same_bits(look()[0], before[0]));
           },
           kSplits, 5, {0, 1});
}

TEST(SplitVariables, OneRankReadsHeldValuesAlone) {
  std::vector<Array> held, gathered;
  on_ranks(2,
           [&](comm::Communicator& communicator) {
             const Network net;
             Function train = net.train();
             train({batch(1)});
             const std::vector<Array> values = net.values();
             hold_values(net.all(), communicator.rank() == 0);
             if (communicator.rank() == 0) {
               held = net.values();
               gathered = values;
               release_values(net.all());
             }
             train({batch(2)});
           },
           kSplits, 5, {0, 1});
  expect_bits(held, gathered, "held");
}

// Rank 0 needs memory for both values, rank 1 for one, and together they have too little.
TEST(SplitVariables, TooLittleMemoryForTheirValuesOnOneRankIsAnErrorOnAll) {
  if (!io::kLimitMemory) GTEST_SKIP();
  constexpr std::int64_t kElements = std::int64_t{25} << 20;  // 100 MiB: malloc keeps no such block for later
  constexpr std::size_t kRoom = std::size_t{250} << 20;
  on_ranks(2,
           [&](comm::Communicator& communicator) {
             const std::vector<Variable> variables{zeros(Shape{kElements}), ones(Shape{kElements})};
             Function({}, {}, {update(variables[0], variables[0] + 1.0), update(variables[1], variables[1] + 2.0)})({});
             ASSERT_TRUE(variables[0].state().is_split() && variables[1].state().is_split());
             const bool keep = communicator.rank() == 0;
             hold_values(variables, keep);
             release_values(variables);
             communicator.barrier({.plan = 1});
             std::optional<io::MemoryLimit> limit;
             if (keep) limit.emplace().set(kRoom);
             communicator.barrier({.plan = 2});
             EXPECT_THROW(hold_values(variables, keep), std::bad_alloc);
             communicator.barrier({.plan = 3});
             limit.reset();
             communicator.barrier({.plan = 4});
             hold_values(variables, keep);
             if (keep) {
               EXPECT_EQ(get_value(variables[1]).data<float>()[kElements - 1], 3.f);
             }
             release_values(variables);
           },
           kSplits, 5, {0, 1});
}

}  // namespace
}  // namespace syncline::testing
