// rnn: errors, lengths that are known only from feeds, random numbers and the learning phase within a step.
// tests/ops/cases_control.cc has the values.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <set>

#include "comm/local/local_communicator.h"
#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/random.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"

namespace syncline {
namespace {

using Exprs = std::vector<Expr>;

class Rnn : public ::testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
};

std::pair<Expr, Exprs> running_sum(const Expr& x, const Exprs& states) {
  const Expr h = states[0] + x;
  return {h, {h}};
}

Array counted(const Shape& shape) {
  Array a(DType::kFloat64, shape);
  for (std::int64_t i = 0; i < a.size(); ++i) a.data<double>()[i] = 1 + static_cast<double>(i % 7);
  return a;
}

template <class E>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST_F(Rnn, RefusesWhatDoesNotFit) {
  const Expr x = placeholder({.shape = {4, 3, 2}}), open = placeholder({.shape = {4, kUnknown, 2}});
  const Expr h = zeros_like(slice_axis(x, 1, 0, 1)), state = squeeze(h, 1);
  auto message = [&](const Expr& inputs, const Exprs& states, const RnnOptions& options) {
    return message_of<ValueError>([&] { rnn(&running_sum, inputs, states, options); });
  };
  EXPECT_NE(message(state, {state}, {}).find("fewer than 3 axes"), std::string::npos);
  EXPECT_NE(message(open, {state}, {.unroll = true}).find("known number of time steps"), std::string::npos);
  const Expr mask = placeholder({.shape = {4, 3}, .dtype = DType::kBool});
  EXPECT_NE(message(x, {}, {.mask = mask}).find("without initial states"), std::string::npos);
  const Expr long_mask = placeholder({.shape = {4, 5}, .dtype = DType::kBool});
  EXPECT_NE(message(x, {state}, {.mask = long_mask}).find("(4, 5)"), std::string::npos);
  EXPECT_NE(message(x, {state}, {.input_length = 4}).find("input_length is 4"), std::string::npos);
  EXPECT_NE(message(open, {state}, {.unroll = true, .input_length = -1}).find("input_length is -1"), std::string::npos);
  const RnnStep loses = [](const Expr& e, const Exprs&) { return std::pair{e, Exprs{}}; };
  EXPECT_NE(message_of<ValueError>([&] { rnn(loses, x, {state}); }).find("1 states, but returns 0"), std::string::npos);
  const RnnStep widens = [](const Expr& e, const Exprs& s) { return std::pair{e, Exprs{concatenate({s[0], e})}}; };
  EXPECT_NE(message_of<ShapeError>([&] { rnn(widens, x, {state}); }).find("must keep"), std::string::npos);
}

TEST_F(Rnn, LengthComesWithTheFeeds) {
  const Expr x = placeholder({.shape = {kUnknown, kUnknown, 2}, .dtype = DType::kFloat64});
  const Expr state = sum(x, {1}) * 0.0;
  const RnnResult r = rnn(&running_sum, x, {state});
  const Expr dx = gradients(sum(r.outputs), {x})[0];
  EXPECT_EQ(r.outputs.shape(), (Shape{kUnknown, kUnknown, 2}));
  Function f({x}, {r.outputs, r.last_output, dx});
  for (const std::int64_t time : {1, 5, 2}) {
    const Array feed = counted({3, time, 2});
    const auto results = f({feed});
    ASSERT_EQ(results[0].shape(), feed.shape());
    for (std::int64_t s = 0; s < 3; ++s)
      for (std::int64_t j = 0; j < 2; ++j) {
        double total = 0;
        for (std::int64_t t = 0; t < time; ++t) {
          const std::int64_t i = (s * time + t) * 2 + j;
          total += feed.data<double>()[i];
          EXPECT_DOUBLE_EQ(results[0].data<double>()[i], total);
          EXPECT_DOUBLE_EQ(results[2].data<double>()[i], static_cast<double>(time - t));
        }
        EXPECT_DOUBLE_EQ(results[1].data<double>()[s * 2 + j], total);
      }
  }
}

// Without iterations the outputs are empty and the last output is 0. The states and their gradients do not change.
TEST_F(Rnn, MayHaveNoIterations) {
  const Array none(DType::kFloat64, {3, 0, 2}), state = counted({3, 2}), mask(DType::kBool, {3, 0});
  for (const std::int64_t time : {kUnknown, std::int64_t{0}}) {
    const Expr x = placeholder({.shape = {3, time, 2}, .dtype = DType::kFloat64});
    const Expr m = placeholder({.shape = {3, time}, .dtype = DType::kBool});
    const Expr h = placeholder({.shape = {3, 2}, .dtype = DType::kFloat64});
    for (const RnnOptions& options : {RnnOptions{}, RnnOptions{.mask = m}, RnnOptions{.go_backwards = true}}) {
      const RnnResult r = rnn(&running_sum, x, {h}, options);
      const Expr loss = sum(r.last_output) + sum(r.outputs) + sum(r.new_states[0] * 2.0);
      Function f({x, m, h}, {r.last_output, r.outputs, r.new_states[0], gradients(loss, {h})[0]});
      const auto results = f({none, mask, state});
      EXPECT_EQ(results[1].shape(), none.shape());
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(results[0].data<double>()[i], 0);
        EXPECT_EQ(results[2].data<double>()[i], state.data<double>()[i]);
        EXPECT_EQ(results[3].data<double>()[i], 2);
      }
      if (time < 0) {
        EXPECT_EQ(f({counted({3, 4, 2}), Array(DType::kBool, {3, 4}), state})[1].shape(), (Shape{3, 4, 2}));
      }
    }
  }
  const Expr x = placeholder({.shape = {3, 0, 2}, .dtype = DType::kFloat64});
  EXPECT_EQ(rnn(&running_sum, x, {sum(x, {1})}, {.unroll = true}).outputs.shape(), (Shape{3, 0, 2}));
}

TEST_F(Rnn, UnrollsToTheGivenLength) {
  const Expr x = placeholder({.shape = {2, kUnknown, 2}, .dtype = DType::kFloat64});
  const Expr state = sum(x, {1}) * 0.0;
  const RnnResult r = rnn(&running_sum, x, {state}, {.unroll = true, .input_length = 3});
  const auto results = Function({x}, {r.last_output, sum(x, {1})})({counted({2, 3, 2})});
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(results[0].data<double>()[i], results[1].data<double>()[i]);
}

// The outputs of `step`, which has a dropout, and the inputs' gradient, for inputs of ones.
std::vector<Array> dropped(const RnnStep& step, bool go_backwards = false) {
  const Expr x = placeholder({.shape = {kUnknown, 6, 40}, .dtype = DType::kFloat64});
  const RnnResult r = rnn(step, x, {sum(x, {1}) * 0.0}, {.go_backwards = go_backwards});
  Array ones(DType::kFloat64, {5, 6, 40});
  for (std::int64_t i = 0; i < ones.size(); ++i) ones.data<double>()[i] = 1;
  std::vector<Array> results = Function({x}, {r.outputs, gradients(sum(r.outputs), {x})[0]})({ones});
  for (Array& a : results) a = a.copy();
  return results;
}

// The distinct outputs of sample 0 over the iterations.
std::set<std::vector<double>> different_iterations(const Array& outputs) {
  std::set<std::vector<double>> found;
  for (int t = 0; t < 6; ++t) found.emplace(outputs.data<double>() + t * 40, outputs.data<double>() + (t + 1) * 40);
  return found;
}

TEST_F(Rnn, DrawsAnewInEachIteration) {
  const RandomKey key = session_.next_random_key();
  const RnnStep step = [&](const Expr& x, const Exprs& s) { return std::pair{dropout(x, 0.5, key), Exprs{s[0]}}; };
  for (const bool go_backwards : {false, true}) {
    const auto results = dropped(step, go_backwards);
    EXPECT_EQ(different_iterations(results[0]).size(), 6u);
    // The gradient is 2 where the forward iteration kept the element.
    for (int t = 0; t < 6; ++t)
      for (int j = 0; j < 40; ++j) {
        const int forward = (go_backwards ? 5 - t : t) * 40 + j;
        EXPECT_EQ(results[0].data<double>()[forward], results[1].data<double>()[t * 40 + j]);
      }
  }
}

TEST_F(Rnn, DrawsAsManyAsAnOutsideTensorHasAnewInEachIteration) {
  const Expr outside = placeholder({.shape = {kUnknown, 1}});
  const Expr x = placeholder({.shape = {5, 6, 40}, .dtype = DType::kFloat64});
  const RandomKey key = session_.next_random_key();
  const RnnStep step = [&](const Expr& e, const Exprs& s) {
    const Expr drawn = random_uniform({dim(outside, 0), 40}, key, {.dtype = DType::kFloat64});
    return std::pair{e + drawn, Exprs{s[0]}};
  };
  const RnnResult r = rnn(step, x, {sum(x, {1}) * 0.0});
  const std::vector<Array> results =
      Function({outside, x}, {r.outputs})({Array(DType::kFloat32, {5, 1}), Array(DType::kFloat64, {5, 6, 40})});
  EXPECT_EQ(different_iterations(results[0]).size(), 6u);
}

// Keras's cells make a mask in the first call of the step and use it in all iterations.
TEST_F(Rnn, AMaskThatIsKeptServesAllIterations) {
  const RandomKey key = session_.next_random_key();
  Expr mask;
  const RnnStep step = [&](const Expr& x, const Exprs& s) {
    if (!mask) mask = dropout(ones_like(x), 0.5, key);
    return std::pair{x * mask, Exprs{s[0]}};
  };
  EXPECT_EQ(different_iterations(dropped(step)[0]).size(), 1u);
}

TEST_F(Rnn, RanksDrawWhatOneRankDraws) {
  const RnnStep step = [](const Expr& x, const Exprs& s) {
    const Expr h = dropout(x + s[0], 0.5, {3, 1});
    return std::pair{h, Exprs{h}};
  };
  const auto alone = dropped(step);
  for (const int size : {2, 3}) {
    comm::spawn_ranks(size, [&](comm::Communicator& communicator) {
      Session session(3);
      session.distribute(make_data_parallel(communicator));
      SessionScope scope(session);
      const auto results = dropped(step);
      for (std::size_t k = 0; k < results.size(); ++k)
        for (std::int64_t i = 0; i < results[k].size(); ++i)
          ASSERT_NEAR(results[k].data<double>()[i], alone[k].data<double>()[i], 1e-10);
    });
  }
}

TEST_F(Rnn, TakesTheBranchOfTheLearningPhase) {
  const Expr x = placeholder({.shape = {2, 3, 2}, .dtype = DType::kFloat64});
  const RnnStep step = [](const Expr& e, const Exprs& s) {
    const Expr h = s[0] + in_train_phase(e * 2.0, e);
    return std::pair{h, Exprs{h}};
  };
  const RnnResult r = rnn(step, x, {sum(x, {1}) * 0.0});
  Function f({x, learning_phase()}, {r.last_output, gradients(sum(r.last_output), {x})[0], sum(x, {1})});
  for (const bool training : {true, false}) {
    const auto results = f({counted({2, 3, 2}), Array::scalar(training)});
    const double factor = training ? 2 : 1;
    for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(results[0].data<double>()[i], factor * results[2].data<double>()[i]);
    for (int i = 0; i < 12; ++i) EXPECT_DOUBLE_EQ(results[1].data<double>()[i], factor);
  }
}

// What does not fit is refused when it is fed, with the text of known sizes.
TEST_F(Rnn, SizesThatComeWithTheFeedsAreChecked) {
  const Expr x = placeholder({.shape = {kUnknown, kUnknown, 1}, .dtype = DType::kFloat64});
  const Expr mask = placeholder({.shape = {kUnknown, kUnknown}, .dtype = DType::kBool});
  const Exprs zero{sum(x, {1}) * 0.0};
  for (const bool unroll : {false, true}) {
    const RnnResult r = rnn(&running_sum, x, zero, {.mask = mask, .unroll = unroll, .input_length = 2});
    Function f({x, mask}, {r.last_output});
    EXPECT_EQ(f({counted({3, 2, 1}), Array(DType::kBool, Shape{3, 2})})[0].data<double>()[2], 0);
    EXPECT_NE(message_of<ShapeError>([&] {
                f({counted({3, 2, 1}), Array(DType::kBool, Shape{1, 2})});
              }).find("rnn: the mask (1, 2) does not fit inputs (3, 2, 1)"),
              std::string::npos);
  }
  Function f({x}, {rnn(&running_sum, x, zero, {.unroll = true, .input_length = 3}).last_output});
  EXPECT_EQ(f({counted({1, 3, 1})})[0].item(), 6);
  EXPECT_NE(message_of<ShapeError>([&] {
              f({counted({1, 5, 1})});
            }).find("input_length is 3, but inputs are (1, 5, 1)"),
            std::string::npos);
}

// States that change places, and states of both kinds of dtypes that are updated.
TEST_F(Rnn, StatesMayMove) {
  const Expr x = placeholder({.shape = {2, 5, 2}, .dtype = DType::kFloat64});
  const Expr zero = sum(x, {1}) * 0.0, count = cast(zero, DType::kInt32);
  const RnnStep step = [](const Expr& e, const Exprs& s) {
    return std::pair{e, Exprs{s[1], s[0], s[2] + e, s[3] + 1.0}};
  };
  const RnnResult r = rnn(step, x, {zero + 1.0, zero + 2.0, zero, count});
  const auto results = Function({x}, r.new_states)({counted({2, 5, 2})});
  EXPECT_EQ(results[0].data<double>()[0], 2);
  EXPECT_EQ(results[1].data<double>()[0], 1);
  EXPECT_EQ(results[3].data<std::int32_t>()[3], 5);
}

}  // namespace
}  // namespace syncline
