// Random numbers depend on the seed, the operation, and the number of the step.
#include <gtest/gtest.h>

#include "syncline/backend/config.h"
#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

Array draw(Session& session, int steps = 1) {
  SessionScope scope(session);
  Function f({}, {random_uniform({32})});
  Array last;
  for (int i = 0; i < steps; ++i) last = f({})[0];
  return last;
}

TEST(Randomness, OneSeedDrawsOneSequence) {
  Session a(5), b(5), c(6);
  const Array first = draw(a);
  EXPECT_TRUE(same_bits(first, draw(b)));
  EXPECT_FALSE(same_bits(first, draw(c)));
  Session set;
  set.set_seed(5);
  EXPECT_TRUE(same_bits(first, draw(set)));
}

TEST(Randomness, EachStepDrawsAnew) {
  Session session(5);
  SessionScope scope(session);
  Function f({}, {random_normal({16})});
  const Array first = f({})[0], second = f({})[0];
  EXPECT_FALSE(same_bits(first, second));
  EXPECT_EQ(session.random_step(), 2u);
}

TEST(Randomness, SetRandomStepRepeats) {
  Session session(5);
  SessionScope scope(session);
  const Expr x = placeholder({.shape = {64}, .dtype = DType::kFloat64});
  Function f({x}, {dropout(x, 0.5)});
  const Array ones = doubles(std::vector<double>(64, 1));
  f({ones});
  const std::uint64_t step = session.random_step();
  const Array second = f({ones})[0], third = f({ones})[0];
  session.set_random_step(step);
  EXPECT_TRUE(same_bits(f({ones})[0], second));
  EXPECT_TRUE(same_bits(f({ones})[0], third));
}

TEST(Randomness, OnlyStepsThatDrawAreCounted) {
  Session session(5);
  SessionScope scope(session);
  const Expr x = placeholder({.shape = {4}, .dtype = DType::kFloat64});
  Function plain({x}, {x * 2.0});
  Function phased({x, learning_phase()}, {in_train_phase(dropout(x, 0.5), x)});
  plain({doubles({1, 2, 3, 4})});
  phased({doubles({1, 2, 3, 4}), Array::scalar(false)});
  EXPECT_EQ(session.random_step(), 0u);
  EXPECT_EQ(session.steps(), 2u);
  phased({doubles({1, 2, 3, 4}), Array::scalar(true)});
  EXPECT_EQ(session.random_step(), 1u);
}

TEST(Randomness, TwoOperationsDrawApartUnlessTheyShareTheirKey) {
  Session session(5);
  SessionScope scope(session);
  const Expr a = random_uniform({16}), b = random_uniform({16});
  const auto out = Function({}, {a, b, a * 1.0})({});
  EXPECT_FALSE(same_bits(out[0], out[1]));
  EXPECT_TRUE(same_bits(out[0], out[2]));
}

TEST(Randomness, AnOperationCountsItsOwnRuns) {
  Session session(5);
  SessionScope scope(session);
  const Expr a = random_uniform({16}, {}, 3), b = random_uniform({16}, {}, 3);
  Function of_a({}, {a}), of_b({}, {b}), of_both({}, {a + b, a, b});
  const Array first = of_a({})[0], second = of_a({})[0];
  EXPECT_FALSE(same_bits(first, second));
  EXPECT_TRUE(same_bits(of_b({})[0], first));
  const auto both = of_both({});  // a's third run, b's second
  EXPECT_TRUE(same_bits(both[2], second));
  EXPECT_FALSE(same_bits(both[1], both[2]));
  EXPECT_TRUE(same_bits(of_b({})[0], both[1]));
}

TEST(Randomness, RunsAreSavedAndRestored) {
  std::vector<Array> unbroken;
  Session::RandomRuns runs;
  for (const bool resumed : {false, true}) {
    Session session(5);
    SessionScope scope(session);
    random_uniform({2});  // freed, so it has no runs to save
    const Expr a = random_uniform({16}), b = random_uniform({16}, {}, 3);
    Function of_a({}, {a}), of_b({}, {b});
    if (!resumed) {
      of_a({});
      of_a({});
      of_b({});
      runs = session.random_runs();
      EXPECT_EQ(runs, (Session::RandomRuns{{2, 2}, {3, 1}, {4, 0}}));
      unbroken = {of_a({})[0], of_b({})[0]};
    } else {
      session.set_random_runs(runs);
      EXPECT_TRUE(same_bits(of_a({})[0], unbroken[0]));
      EXPECT_TRUE(same_bits(of_b({})[0], unbroken[1]));
    }
  }
}

// A callback may make its function at its first use, after the restore.
TEST(Randomness, RunsOfOperationsThatAreMadeAfterTheRestore) {
  const auto draw_of = [](Function& f) { return f({})[0]; };
  std::vector<Array> unbroken;
  Session::RandomRuns runs;
  {
    Session session(5);
    SessionScope scope(session);
    Function first({}, {random_uniform({16})}), later({}, {random_uniform({16})});
    draw_of(first);
    for (int i = 0; i < 3; ++i) draw_of(later);
    runs = session.random_runs();
    Function unseen({}, {random_uniform({16})});
    unbroken = {draw_of(first), draw_of(later), draw_of(unseen)};
  }
  Session session(5);
  SessionScope scope(session);
  Function first({}, {random_uniform({16})});
  session.set_random_runs(runs);
  EXPECT_EQ(session.random_runs(), runs);  // with those of operations not yet made
  Function later({}, {random_uniform({16})}), unseen({}, {random_uniform({16})});
  EXPECT_TRUE(same_bits(draw_of(first), unbroken[0]));
  EXPECT_TRUE(same_bits(draw_of(later), unbroken[1]));
  EXPECT_TRUE(same_bits(draw_of(unseen), unbroken[2]));
}

// A checkpoint of an earlier version has one step number for all operations; each operation continues from it.
TEST(Randomness, OneNumberForAllOperations) {
  Session session(5), other(5);
  const auto third = [](Session& of, bool set) {
    SessionScope scope(of);
    Function f({}, {random_normal({16})});
    if (set) of.set_random_step(2);
    else f({}), f({});
    return f({})[0];
  };
  EXPECT_TRUE(same_bits(third(session, false), third(other, true)));
}

TEST(Randomness, ClearSessionBeginsAgain) {
  Session session(5);
  SessionScope scope(session);
  const Array first = Function({}, {random_uniform({16})})({})[0];
  clear_session();
  session.set_random_step(0);
  EXPECT_TRUE(same_bits(Function({}, {random_uniform({16})})({})[0], first));
}

}  // namespace
}  // namespace syncline::testing
