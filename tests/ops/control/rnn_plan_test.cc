// The plan of a recurrent network, in one process and over several ranks.
#include <gtest/gtest.h>

#include <mutex>
#include <sstream>

#include "comm/local/local_communicator.h"
#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/random.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"

namespace syncline {
namespace {

using Exprs = std::vector<Expr>;

constexpr std::int64_t kTime = 6, kFeatures = 3, kUnits = 4;

// An LSTM and its training step.
struct Network {
  Variable kernel = weight({kFeatures, 4 * kUnits}, 1), recurrent = weight({kUnits, 4 * kUnits}, 2),
           bias = weight({4 * kUnits}, 3);
  Expr x = placeholder({.shape = {kUnknown, kTime, kFeatures}, .dtype = DType::kFloat64});
  RnnResult result;
  Expr loss;

  Network() {
    const Expr zero = sum(x, {1, 2}) * 0.0;
    const Expr state = repeat_elements(expand_dims(zero, 1), kUnits, 1);
    const RnnStep step = [this](const Expr& e, const Exprs& s) {
      const Expr z = dot(e, kernel) + dot(s[0], recurrent) + bias;
      auto gate = [&](int i) { return slice_axis(z, 1, i * kUnits, kUnits); };
      const Expr c = sigmoid(gate(1)) * s[1] + sigmoid(gate(0)) * tanh(gate(2));
      const Expr h = sigmoid(gate(3)) * tanh(c);
      return std::pair{h, Exprs{h, c}};
    };
    result = rnn(step, x, {state, state});
    loss = mean(square(result.last_output - 0.5));
  }

  std::vector<Variable> weights() const { return {kernel, recurrent, bias}; }
  Function training() const { return Function({x}, {loss}, sgd(loss, weights(), {.learning_rate = 0.5}).updates); }

  static Variable weight(const Shape& shape, std::uint64_t op) {
    return variable(random_uniform(shape, {3, op}, {-0.5, 0.5, DType::kFloat64}));
  }
};

Array batch(std::int64_t rows) {
  Array a(DType::kFloat64, {rows, kTime, kFeatures});
  for (std::int64_t i = 0; i < a.size(); ++i) a.data<double>()[i] = static_cast<double>(i * 37 % 19) / 9 - 1;
  return a;
}

// The lines of a plan, outside and inside of loops.
struct Lines {
  std::vector<std::string> outside, inside;
};

Lines lines_of(const std::string& plan) {
  Lines lines;
  std::istringstream in(plan);
  int of_loop = 0;
  for (std::string line; std::getline(in, line); of_loop -= of_loop > 0) {
    (of_loop > 0 ? lines.inside : lines.outside).push_back(line);
    int iterations = 0, steps = 0;
    if (std::sscanf(line.c_str(), "loop, %d iterations of %d steps", &iterations, &steps) == 2) of_loop = steps + 1;
  }
  return lines;
}

std::size_t count_of(const std::vector<std::string>& lines, const std::string& text) {
  std::size_t n = 0;
  for (const std::string& line : lines) n += line.find(text) != std::string::npos;
  return n;
}

TEST(RnnPlan, WeightsAreSeenOnce) {
  Session session(3);
  SessionScope scope(session);
  const Network network;
  const Array feed = batch(5);
  const std::string plan = network.training().describe({&feed, 1});
  const Lines lines = lines_of(plan);
  // Forward: one product of all inputs. Backward: one product per weight over all iterations, a sum in each iteration.
  EXPECT_EQ(count_of(lines.outside, "dot(transpose_y=false)  float64(6, 5, 3), float64(3, 16)"), 1u) << plan;
  EXPECT_EQ(count_of(lines.outside, "dot_kernel_grad()  float64(6, 5, 3), float64(6, 5, 16)"), 1u) << plan;
  EXPECT_EQ(count_of(lines.outside, "dot_kernel_grad()  float64(6, 5, 4), float64(6, 5, 16)"), 1u) << plan;
  EXPECT_EQ(count_of(lines.inside, "dot_kernel_grad"), 0u) << plan;
  EXPECT_EQ(count_of(lines.inside, "dot("), 2u) << plan;  // the product with the state, forward and backward
  EXPECT_EQ(count_of(lines.inside, "sum("), 1u) << plan;
}

TEST(RnnPlan, WithoutAGradientThereIsNoTape) {
  Session session(3);
  SessionScope scope(session);
  const Network network;
  const Array feed = batch(5);
  const std::string plan = Function({network.x}, {network.result.last_output}).describe({&feed, 1});
  for (const std::string& line : lines_of(plan).outside)
    if (line.starts_with("loop")) {
      EXPECT_TRUE(line.ends_with("-> float64(5, 4), float64(5, 4)")) << line;
    }
}

TEST(RnnPlan, GradientsCrossTheWireOnceAndOutsideOfTheLoop) {
  for (const int size : {2, 3}) {
    comm::spawn_ranks(size, [&](comm::Communicator& communicator) {
      Session session(3);
      session.distribute(make_data_parallel(communicator));
      SessionScope scope(session);
      const Network network;
      const Array feed = batch(5);
      const std::string plan = network.training().describe({&feed, 1});
      const Lines lines = lines_of(plan);
      EXPECT_EQ(count_of(lines.inside, "all_reduce") + count_of(lines.inside, "all_gather"), 0u) << plan;
      EXPECT_EQ(count_of(lines.outside, "all_gather"), 0u) << plan;
      // One bucket: the loss and the three gradients.
      ASSERT_EQ(count_of(lines.outside, "all_reduce"), 1u) << plan;
      EXPECT_EQ(count_of(lines.outside, "bucket of 4 sums over ranks"), 1u) << plan;
    });
  }
}

// The losses of a few steps, then the weights.
std::vector<Array> trained(std::int64_t rows) {
  const Network network;
  Function train = network.training();
  std::vector<Array> results;
  for (int step = 0; step < 4; ++step) results.push_back(train({batch(rows)})[0].copy());
  for (const Variable& v : network.weights()) results.push_back(get_value(v));
  return results;
}

TEST(RnnPlan, RanksTrainWhatOneRankTrains) {
  for (const std::int64_t rows : {5, 2}) {  // two rows are too few for three ranks: each computes all
    std::vector<Array> alone;
    {
      Session session(3);
      SessionScope scope(session);
      alone = trained(rows);
    }
    EXPECT_LT(alone[3].item(), alone[0].item());
    for (const int size : {1, 2, 3}) {
      comm::spawn_ranks(size, [&](comm::Communicator& communicator) {
        Session session(3);
        session.distribute(make_data_parallel(communicator));
        SessionScope scope(session);
        const auto results = trained(rows);
        for (std::size_t k = 0; k < alone.size(); ++k)
          for (std::int64_t i = 0; i < alone[k].size(); ++i)
            ASSERT_NEAR(results[k].data<double>()[i], alone[k].data<double>()[i], 1e-10);
      });
    }
  }
}

}  // namespace
}  // namespace syncline
