// After its first call a step allocates no memory.
#include <gtest/gtest.h>

#include "comm/local/local_communicator.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/config.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "syncline/timeline.h"
#include "syncline/training/optimizers.h"
#include "tests/io/scratch.h"
#include "tests/runtime/allocations.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

// The counter does not see an Array's bytes, which come from aligned_alloc, but the shared_ptr that owns them.
TEST(Allocation, TheCounterCounts) {
  const std::int64_t before = allocations();
  const Array a(DType::kFloat32, {1});
  EXPECT_GT(allocations(), before);
}

std::int64_t allocations_of_steps(Function& f, const std::vector<Array>& feeds, std::vector<Array>& outputs) {
  f.run(feeds, outputs);
  f.run(feeds, outputs);
  const std::int64_t before = allocations();
  for (int i = 0; i < 20; ++i) f.run(feeds, outputs);
  return allocations() - before;
}

class AllocationTest : public ::testing::Test {
 protected:
  AllocationTest() { set_thread_count(1); }
  Session session_{1};
  SessionScope scope_{session_};
};

TEST_F(AllocationTest, ATrainingStepOfAMultilayerPerceptron) {
  const Expr x = placeholder({.shape = {kUnknown, 20}}), y = placeholder({.shape = {kUnknown, 5}});
  const Variable w1 = random_normal_variable({20, 64}, 0, 0.1), b1 = zeros({64});
  const Variable w2 = random_normal_variable({64, 5}, 0, 0.1), b2 = zeros({5});
  const Expr hidden = in_train_phase(dropout(relu(bias_add(dot(x, w1), b1)), 0.3), relu(bias_add(dot(x, w1), b1)));
  const Expr p = softmax(bias_add(dot(hidden, w2), b2));
  const Expr loss = mean(categorical_crossentropy(y, p));
  const std::vector<Variable> variables{w1, b1, w2, b2};
  Function train({x, y, learning_phase()}, {loss, p}, adam(loss, variables).updates);
  const std::vector<Array> feeds{random_doubles({32, 20}, 1).cast(DType::kFloat32),
                                 eval(softmax(constant(random_doubles({32, 5}, 2).cast(DType::kFloat32)))),
                                 Array::scalar(true)};
  std::vector<Array> outputs{Array(DType::kFloat32, {}), Array(DType::kFloat32, {32, 5})};
  EXPECT_EQ(allocations_of_steps(train, feeds, outputs), 0);
  EXPECT_GT(outputs[0].item(), 0);
}

TEST_F(AllocationTest, AConvolution) {
  const Expr x = placeholder({.shape = {kUnknown, 12, 12, 3}});
  const Variable k1 = random_normal_variable({3, 3, 3, 8}, 0, 0.1), k2 = random_normal_variable({3, 3, 8, 16}, 0, 0.1);
  const Expr y = conv2d(pool2d(relu(conv2d(x, k1)), {2, 2}), k2);
  const std::vector<Variable> variables{k1, k2};
  Function train({x}, {sum(y)}, sgd(sum(square(y)), variables, {.learning_rate = 1e-4, .momentum = 0.9}).updates);
  const std::vector<Array> feeds{random_doubles({4, 12, 12, 3}, 1).cast(DType::kFloat32)};
  std::vector<Array> outputs{Array(DType::kFloat32, {})};
  EXPECT_EQ(allocations_of_steps(train, feeds, outputs), 0);
}

TEST_F(AllocationTest, TwoShapesInTurn) {
  const Expr x = placeholder({.shape = {kUnknown, 3}});
  const Variable w = random_normal_variable({3, 3}, 0, 0.1);
  Function f({x}, {sum(softmax(dot(x, w)))});
  const std::vector<Array> small{Array(DType::kFloat32, {2, 3})}, large{Array(DType::kFloat32, {50, 3})};
  std::vector<Array> outputs{Array(DType::kFloat32, {})};
  f.run(small, outputs);
  f.run(large, outputs);
  const std::int64_t before = allocations();
  for (int i = 0; i < 10; ++i) {
    f.run(small, outputs);
    f.run(large, outputs);
  }
  EXPECT_EQ(allocations() - before, 0);
}

// Counts the plans, the transfers and the wire of two ranks.
void expect_no_allocations_on_ranks() {
  comm::spawn_ranks(2, [](comm::Communicator& communicator) {
    Session session;
    SessionScope scope(session);
    session.distribute(make_data_parallel(communicator));
    const Expr x = placeholder({.shape = {kUnknown, 6}});
    // One gradient is small; the other moves in a transfer of its own.
    const Variable w = random_normal_variable({6, 4}, 0, 0.1), wide = random_normal_variable({6, 5000}, 0, 0.1);
    const Expr y = softmax(dot(x, w)), loss = mean(square(y)) + mean(square(dot(x, wide)));
    const std::vector<Variable> variables{w, wide};
    Function train({x}, {loss, y}, adam(loss, variables).updates);
    const std::vector<Array> feeds{random_doubles({8, 6}, 1).cast(DType::kFloat32)};
    std::vector<Array> outputs{Array(DType::kFloat32, {}), Array(DType::kFloat32, {8, 4})};
    for (int i = 0; i < 3; ++i) train.run(feeds, outputs);
    communicator.barrier();
    const std::int64_t before = allocations();
    communicator.barrier();
    for (int i = 0; i < 20; ++i) train.run(feeds, outputs);
    communicator.barrier();
    EXPECT_EQ(allocations(), before);
    communicator.barrier();
  });
}

TEST_F(AllocationTest, AStepOfTwoRanks) { expect_no_allocations_on_ranks(); }

// Events, and the text that the timeline's thread writes, go into preallocated memory.
TEST_F(AllocationTest, AStepOnTheTimeline) {
  const io::Scratch scratch;
  timeline::start(scratch.path("trace"), 0, 2);
  expect_no_allocations_on_ranks();
  timeline::stop();
}

}  // namespace
}  // namespace syncline::testing
