// What ranks get from rank 0, and the errors if ranks differ.
#include <gtest/gtest.h>

#include <array>

#include "comm/local/local_communicator.h"
#include "syncline/backend/config.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "tests/comm/forwarding.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

Expr input(Shape shape, std::string name = "x") {
  return placeholder({.shape = std::move(shape), .dtype = DType::kFloat64, .name = std::move(name)});
}

TEST(Agreement, InitialValuesAreRankZeros) {
  on_ranks(3, [](comm::Communicator& communicator) {
    const double own = communicator.rank() * 10.0;
    const Variable a = variable(doubles({1 + own, 2 + own})), b = variable(doubles({3 + own}));
    const auto out = Function({}, {a, a.expr() + b}, {update_add(b, b)})({});
    expect_values(out[0], {1, 2});
    expect_values(out[1], {4, 5});
    expect_values(get_value(a), {1, 2});
    expect_values(get_value(b), {6});
  });
}

TEST(Agreement, AVariableThatIsOnlyUpdated) {
  on_ranks(2, [](comm::Communicator& communicator) {
    const Variable a = variable(doubles({static_cast<double>(communicator.rank())}));
    Function({}, {}, {update(a, constant(doubles({5})))})({});
    expect_values(get_value(a), {5});
    set_value(a, doubles({7.0 + communicator.rank()}));
    expect_values(Function({}, {a})({})[0], {7});
  });
}

TEST(Agreement, ValuesSetByHandBecomeRankZeros) {
  on_ranks(3, [](comm::Communicator& communicator) {
    const Variable a = variable(doubles({0, 0}));
    Function f({}, {a.expr() * 2.0});
    f({});
    set_value(a, doubles({communicator.rank() + 1.0, 5}));
    expect_values(f({})[0], {2, 10});
    expect_values(get_value(a), {1, 5});
  });
}

class Counting : public comm::Forwarding {
 public:
  using comm::Forwarding::Forwarding;
  comm::Ticket broadcast(const comm::Tag& tag, void* data, std::int64_t bytes, int root) override {
    ++broadcasts;
    return Forwarding::broadcast(tag, data, bytes, root);
  }
  int broadcasts = 0;
};

TEST(Agreement, ValuesSetAlikeAreNotSent) {
  comm::spawn_ranks(3, [](comm::Communicator& shared) {
    Counting communicator(shared);
    Session session(5);
    SessionScope scope(session);
    session.distribute(make_data_parallel(communicator));
    const Variable a = variable(doubles({1, 2})), b = variable(doubles({3}));
    Function f({}, {a * 2.0, b * 2.0});
    const int begun = communicator.broadcasts;
    f({});
    set_value(a, doubles({4, 5}));
    expect_values(f({})[0], {8, 10});
    EXPECT_EQ(communicator.broadcasts, begun);
    set_value(a, doubles({6, 7}));
    set_value(b, doubles({8.0 + communicator.rank()}));
    expect_values(f({})[1], {16});
    EXPECT_EQ(communicator.broadcasts, begun + 2);
  });
}

TEST(Agreement, SeedsAreRankZeros) {
  Array wanted;
  on_one_process([&] { wanted = eval(random_uniform({16})); }, 41);
  on_ranks(
      3,
      [&](comm::Communicator&) {
        EXPECT_EQ(Session::current().seed(), 41u);
        EXPECT_TRUE(same_bits(eval(random_uniform({16})), wanted));
      },
      {}, 41);
}

TEST(Agreement, SeedsThatEachRankHasDrawnAreRankZeros) {
  std::vector<Array> drawn(2);
  on_ranks(2, [&](comm::Communicator& communicator) {
    RandomKey key = Session::current().next_random_key(100 + static_cast<std::uint64_t>(communicator.rank()));
    key.op()->seed_of_rank = true;
    const Expr x = placeholder({.shape = {4}, .dtype = DType::kFloat64});
    const Expr noise = random_normal({4}, key, {.dtype = DType::kFloat64});
    drawn[static_cast<std::size_t>(communicator.rank())] = Function({x}, {noise + x})({doubles({0, 0, 0, 0})})[0];
  });
  Session session;
  SessionScope scope(session);
  const Array alone = Function({}, {random_normal({4}, RandomKey(100), {.dtype = DType::kFloat64})})({})[0];
  for (const Array& one : drawn) EXPECT_TRUE(same_bits(one, alone));
}

// Runs `body` on every rank, where it must throw a CommError. Returns the messages.
std::vector<std::string> errors_of(int size, const std::function<void(comm::Communicator&)>& body) {
  std::vector<std::string> texts(static_cast<std::size_t>(size));
  on_ranks(size, [&](comm::Communicator& communicator) {
    texts[static_cast<std::size_t>(communicator.rank())] = message_of<CommError>([&] { body(communicator); });
  });
  return texts;
}

void expect_parts(const std::vector<std::string>& texts, std::initializer_list<std::string_view> parts) {
  for (const std::string& text : texts)
    for (const std::string_view part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(Agreement, AnotherOperationIsNamedOnEveryRank) {
  expect_parts(
      errors_of(3,
                [](comm::Communicator& communicator) {
                  const Expr x = input({4});
                  Function({x}, {communicator.rank() == 2 ? sin(x * 2.0) : cos(x * 2.0)})({doubles({1, 2, 3, 4})});
                }),
      {"ranks 0 and 2", "rank 0 has", "cos", "rank 2 has", "sin"});
}

TEST(Agreement, AnotherAttributeNameOrOrderIsNamed) {
  expect_parts(errors_of(2,
                         [](comm::Communicator& communicator) {
                           const Expr x = input({4, 2});
                           Function({x}, {sum(x, {communicator.rank()})})({random_doubles({4, 2}, 1)});
                         }),
               {"ranks 0 and 1", "sum"});
  expect_parts(errors_of(2,
                         [](comm::Communicator& communicator) {
                           const Variable v =
                               variable(doubles({1}), {.name = communicator.rank() == 0 ? "left" : "right"});
                           Function({}, {v.expr() * 2.0})({});
                         }),
               {"left", "right"});
  // Two updates of one shape in another order.
  expect_parts(errors_of(2,
                         [](comm::Communicator& communicator) {
                           const Variable a = variable(doubles({1}), {.name = "a"}),
                                          b = variable(doubles({1}), {.name = "b"});
                           std::vector<Update> updates{update_add(a, b), update_add(b, a)};
                           if (communicator.rank() == 1) std::swap(updates[0], updates[1]);
                           Function({}, {}, updates)({});
                         }),
               {"ranks 0 and 1", "line"});
}

TEST(Agreement, AnotherShapeOrConstantIsNamed) {
  expect_parts(errors_of(2,
                         [](comm::Communicator& communicator) {
                           const Variable v =
                               variable(Array(DType::kFloat64, {2 + communicator.rank()}), {.name = "weights"});
                           Function({}, {sum(v)})({});
                         }),
               {"weights", "(2", "(3"});
  expect_parts(errors_of(2,
                         [](comm::Communicator& communicator) {
                           const Expr x = input({2});
                           Function({x}, {x + constant(doubles({1, 2.0 + communicator.rank()}))})({doubles({1, 2})});
                         }),
               {"constant"});
}

TEST(Agreement, ARankWithMoreToDoIsNamed) {
  expect_parts(errors_of(2,
                         [](comm::Communicator& communicator) {
                           const Expr x = input({4});
                           std::vector<Expr> outputs{x * 2.0};
                           if (communicator.rank() == 1) outputs.push_back(sum(x));
                           Function({x}, outputs)({doubles({1, 2, 3, 4})});
                         }),
               {"ranks 0 and 1"});
}

TEST(Agreement, ADifferentBatchSizeIsAnError) {
  errors_of(2, [](comm::Communicator& communicator) {
    const Expr x = input({kUnknown});
    Function({x}, {sum(x)})({random_doubles({4 + communicator.rank()}, 1)});
  });
}

// Both ranks have called both functions; then rank 0 calls f and rank 1 calls g.
TEST(Agreement, RanksOutOfStepAreTold) {
  errors_of(2, [](comm::Communicator& communicator) {
    const Expr x = input({4});
    Function f({x}, {sum(x)}, {}, "f"), g({x}, {sum(square(x))}, {}, "g");
    const std::vector<Array> feeds{doubles({1, 2, 3, 4})};
    f(feeds);
    g(feeds);
    (communicator.rank() == 0 ? f : g)(feeds);
  });
}

TEST(Agreement, AValueSetOnOneRankOnlyIsAnError) {
  errors_of(2, [](comm::Communicator& communicator) {
    const Expr x = input({4});
    const Variable v = variable(doubles({1}));
    Function f({x}, {sum(x * v)});
    const std::vector<Array> feeds{doubles({1, 2, 3, 4})};
    f(feeds);
    if (communicator.rank() == 1) set_value(v, doubles({2}));
    f(feeds);
  });
}

TEST(Agreement, ARankThatFailsEndsTheOthersStep) {
  std::array<bool, 2> told{};
  EXPECT_THROW(on_ranks(2,
                        [&](comm::Communicator& communicator) {
                          const Expr x = input({2});
                          Function f({x}, {sum(x)});
                          f({doubles({1, 2})});
                          if (communicator.rank() == 0) throw IoError("the data set is gone");
                          try {
                            f({doubles({1, 2})});
                          } catch (const CommError&) {
                            told[1] = true;
                            throw;
                          }
                        }),
               IoError);
  EXPECT_TRUE(told[1]);
}

}  // namespace
}  // namespace syncline::testing
