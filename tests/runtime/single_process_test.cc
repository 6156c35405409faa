// Linked without runtime/placement/data_parallel.cc and without comm: the runtime does not need the wire.
#include <gtest/gtest.h>

#include "syncline/backend/config.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

TEST(SingleProcess, TrainsWithoutTheWire) {
  Session session(3);
  SessionScope scope(session);
  const Expr x = placeholder({.shape = {kUnknown, 4}}), y = placeholder({.shape = {kUnknown, 1}});
  const Variable w1 = random_normal_variable({4, 8}, 0, 0.5), w2 = random_normal_variable({8, 1}, 0, 0.5);
  const Expr loss = mean(square(dot(tanh(dot(x, w1)), w2) - y));
  const std::vector<Variable> variables{w1, w2};
  Function train({x, y}, {loss}, adam(loss, variables, {.learning_rate = 0.05}).updates);
  const std::vector<Array> feeds{random_doubles({16, 4}, 1).cast(DType::kFloat32),
                                 random_doubles({16, 1}, 2).cast(DType::kFloat32)};
  const double first = train(feeds)[0].item();
  double last = first;
  for (int i = 0; i < 100; ++i) last = train(feeds)[0].item();
  EXPECT_LT(last, 0.2 * first);
  EXPECT_EQ(session.strategy(), nullptr);
}

}  // namespace
}  // namespace syncline::testing
