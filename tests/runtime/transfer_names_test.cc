// The purpose of a sum over ranks, as errors name it.
#include "runtime/schedule/transfer_names.h"

#include <gtest/gtest.h>

#include "syncline/backend/core.h"
#include "syncline/backend/function.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

Expr summed(const Expr& x) { return apply<AllReduce>({x}); }

class TransferNamesTest : public ::testing::Test {
 protected:
  std::string names(const std::vector<Expr>& outputs, const std::vector<Update>& updates,
                    const std::vector<Expr>& transfers) const {
    std::vector<Expr> roots = outputs;
    for (const Update& u : updates) roots.push_back(u.value);
    return TransferNames(nodes_under(roots), roots, updates).of(transfers);
  }
  Variable ones_of(const std::string& name) const { return ones({4}, {.name = name}); }

  Session session_{1};
  SessionScope scope_{session_};
  Expr x = placeholder({.shape = {4}, .name = "x"});
  Variable a = ones_of("a"), b = ones_of("b"), slot = ones_of("slot");
};

TEST_F(TransferNamesTest, AGradientIsItsParametersNotItsSlots) {
  const Expr gradient = summed(x * a);
  const Expr moment = slot.expr() * 0.9 + gradient;
  EXPECT_EQ(names({}, {update(slot, moment), update(a, a.expr() - moment)}, {gradient}), "gradients of a");
}

// Of variables that several nodes update by rows.
TEST_F(TransferNamesTest, NewValuesThatNodesExchange) {
  const Expr gradient = summed(x * a), moment = slot.expr() * 0.9 + gradient;
  const Expr gathered = apply<AllGather>({a.expr() - moment});
  const std::vector<Update> updates{update(slot, moment), update(a, gathered)};
  EXPECT_EQ(names({}, updates, {gradient}), "gradients of a");
  EXPECT_EQ(names({}, updates, {gathered}), "new values of a");
}

TEST_F(TransferNamesTest, GradientsThatAreScaledByTheNormOfAll) {
  const Expr of_a = summed(x * a), of_b = summed(x * b);
  const Expr norm = sum(square(of_b)) + sum(square(of_a));
  const std::vector<Update> updates{update(a, a.expr() - of_a * norm), update(b, b.expr() - of_b * norm)};
  EXPECT_EQ(names({}, updates, {of_a}), "gradients of a");
  EXPECT_EQ(names({}, updates, {of_b}), "gradients of b");
  EXPECT_EQ(names({}, updates, {of_a, of_b}), "gradients of a, b");
}

TEST_F(TransferNamesTest, OtherUses) {
  const Expr statistic = summed(x), loss = summed(sum(x)), inner = summed(square(x)), outer = summed(inner * x);
  const std::vector<Update> updates{update(slot, slot.expr() * 0.9 + statistic)};
  EXPECT_EQ(names({loss, outer}, updates, {statistic}), "new values of slot");
  EXPECT_EQ(names({loss, outer}, updates, {loss, outer, statistic, inner}),
            "new values of slot; output 0, output 1; values within the step: square");
}

TEST_F(TransferNamesTest, ManyAreCounted) {
  std::vector<Update> updates;
  std::vector<Expr> transfers;
  for (int i = 0; i < 11; ++i) {
    const Variable v = ones_of("v");
    transfers.push_back(summed(x * v));
    updates.push_back(update_sub(v, transfers.back()));
  }
  EXPECT_EQ(names({}, updates, transfers), "gradients of v, v_1, v_2, v_3, v_4, v_5, v_6, v_7 and 3 more");
}

}  // namespace
}  // namespace syncline::testing
