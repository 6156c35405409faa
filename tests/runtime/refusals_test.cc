// A step that rejects a value changes no variable and draws no random numbers: on one thread, on two threads, and on
// two ranks of which one rejects its value and the other does not.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "ops/kernels/parallel.h"
#include "syncline/backend/config.h"
#include "syncline/backend/control.h"
#include "syncline/backend/ctc.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "syncline/training/accumulation.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

constexpr std::int64_t kRows = 8;

// A function that accepts the good feeds and rejects the bad ones. The bad row is the last one, so only the last rank
// rejects it.
struct Program {
  Function f;
  std::vector<Array> good, bad;
  std::vector<Variable> variables;

  std::vector<Array> values() const {
    std::vector<Array> result;
    for (const Variable& v : variables) result.push_back(v.state().value().copy());
    return result;
  }
};
using Make = std::function<Program()>;

bool same(const std::vector<Array>& a, const std::vector<Array>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
}

Expr fed(const Array& like) {
  Shape shape = like.shape();
  shape[0] = kUnknown;
  return placeholder({.shape = shape, .dtype = like.dtype()});
}

Array ints(std::vector<std::int32_t> values) {
  return Array::from<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
}
const Array& good_index() {
  static const Array index = ints({0, 1, 2, 0, 1, 2, 0, 1});
  return index;
}
const Array& bad_index() {
  static const Array index = ints({0, 1, 2, 0, 1, 2, 0, 3});
  return index;
}

// Large enough to be written in place as soon as the old value is read.
Variable large() { return variable(random_doubles({130, 130}, 1), {.name = "large"}); }

Program picking() {
  const Variable v = large();
  const Update update_v = update(v, v.expr() * 0.9);
  const Array rows = random_doubles({kRows, 3}, 2);
  const Expr x = fed(rows), i = fed(good_index());
  const Expr y = gather_along_axis(x, i, 1) + sum(random_uniform({3}, {.dtype = DType::kFloat64}));
  return {Function({x, i}, {y}, {update_v}), {rows, good_index()}, {rows, bad_index()}, {v}};
}

Program gathering() {
  const Variable v = large(), table = variable(random_doubles({3, 4}, 1), {.name = "table"});
  const Expr decayed = v.expr() * 0.9, i = fed(good_index());
  const Expr loss = sum(square(gather(table, i)));
  const Expr rows = table.expr() - 0.1 * gradients(loss, {table.expr()})[0];
  return {Function({i}, {loss}, {update(v, decayed), update(table, rows)}), {good_index()}, {bad_index()}, {v, table}};
}

// The first update is also of a table, and its indices are valid.
Program two_tables() {
  const Array rows = random_doubles({kRows, 4}, 2);
  const Variable a = variable(random_doubles({3, 4}, 1)), b = variable(random_doubles({3, 4}, 3));
  const Expr values = fed(rows), i = fed(good_index()), k = fed(good_index());
  const std::vector<Update> updates{update(a, scatter_sub(a, values, i)), update(b, scatter_sub(b, values, k))};
  return {Function({values, i, k}, {}, updates),
          {rows, good_index(), good_index()},
          {rows, good_index(), bad_index()},
          {a, b}};
}

Program in_a_loop() {
  const Variable v = large();
  const Update update_v = update(v, v.expr() * 0.9);
  const Expr i = placeholder({.shape = {kUnknown, 2, 1}, .dtype = DType::kInt32});
  const Expr table = constant(random_doubles({3, 4}, 1));
  const RnnStep cell = [&](const Expr& e, const std::vector<Expr>& s) {
    const Expr h = s[0] + gather(table, squeeze(e, 1));
    return std::pair<Expr, std::vector<Expr>>{h, {h}};
  };
  const Array states = random_doubles({kRows, 4}, 2);
  const Expr first = fed(states);
  const Array good = Array::from<std::int32_t>({kRows, 2, 1}, {0, 1, 1, 0, 2, 2, 0, 0, 1, 2, 0, 1, 2, 2, 0, 1});
  const Array bad = Array::from<std::int32_t>({kRows, 2, 1}, {0, 1, 1, 0, 2, 2, 0, 0, 1, 2, 0, 1, 2, 2, 0, 3});
  return {Function({i, first}, {rnn(cell, i, {first}).last_output}, {update_v}), {good, states}, {bad, states}, {v}};
}

Program in_a_branch() {
  const Variable v = large();
  const Array rows = random_doubles({kRows, 3}, 2);
  const Expr x = fed(rows), i = fed(good_index());
  const Expr condition = greater(sum(square(x)), scalar_like(0, x));
  const Update update_v = update(v, switch_(condition, v.expr() * 0.9, v.expr()));
  const Expr y = switch_(
      condition, [&] { return gather_along_axis(x, i, 1); }, [&] { return sum(x, {1}); });
  return {Function({x, i}, {y}, {update_v}), {rows, good_index()}, {rows, bad_index()}, {v}};
}

// The pass over memory that computes the new value rejects the operand.
Program powers() {
  const Variable v = variable(random_ints({130, 130}, 5, 1));
  const Array good = random_ints({130, 130}, 3, 2);
  Array bad = good.copy();
  bad.data<std::int32_t>()[bad.size() - 1] = -1;
  const Expr k = fed(good);
  return {Function({k}, {}, {update(v, pow(v.expr(), k) + scalar_like(1, v))}), {good}, {bad}, {v}};
}

Program costs() {
  const Variable v = large();
  const Update update_v = update(v, v.expr() * 0.9);
  const Array labels = random_ints({kRows, 2}, 2, 3), logits = random_doubles({kRows, 5, 3}, 4);
  const std::vector<std::int32_t> five(kRows, 5), two(kRows, 2);
  std::vector<std::int32_t> six = five;
  six.back() = 6;
  const auto column = [](const std::vector<std::int32_t>& of) { return ints(of).reshaped({kRows, 1}); };
  const Expr y = fed(labels), p = fed(logits), steps = fed(column(five)), length = fed(column(two));
  const Expr cost = ctc_batch_cost(y, softmax(p), steps, length);
  return {Function({y, p, steps, length}, {cost}, {update_v}),
          {labels, logits, column(five), column(two)},
          {labels, logits, column(six), column(two)},
          {v}};
}

// No transfer: each rank sums its own rows.
Program parts() {
  const Variable table = variable(random_doubles({3, 4}, 1));
  const Expr i = fed(good_index());
  const Expr loss = sum(square(gather(table, i)));
  const std::vector<Variable> variables{table};
  const Accumulation sums = accumulate_gradients(gradients(loss, variables), variables, 4);
  return {Function({i}, {}, sums.updates), {good_index()}, {bad_index()}, sums.state};
}

constexpr std::array<std::pair<const char*, Program (*)()>, 8> kPrograms{{{"pick", &picking},
                                                                          {"gather", &gathering},
                                                                          {"two_tables", &two_tables},
                                                                          {"loop", &in_a_loop},
                                                                          {"branch", &in_a_branch},
                                                                          {"pow", &powers},
                                                                          {"ctc", &costs},
                                                                          {"parts", &parts}}};

class Refusals : public ::testing::TestWithParam<std::pair<const char*, Program (*)()>> {};
INSTANTIATE_TEST_SUITE_P(All, Refusals, ::testing::ValuesIn(kPrograms),
                         [](const auto& info) { return info.param.first; });

TEST_P(Refusals, ChangeNothingInOneProcess) {
  const int threads = thread_count();
  for (const int n : {1, 2}) {
    set_thread_count(n);
    std::vector<Array> with, without;
    on_one_process([&] {
      Program p = GetParam().second();
      p.f(p.good);
      const std::vector<Array> before = p.values();
      EXPECT_THROW(p.f(p.bad), ValueError);
      EXPECT_TRUE(same(before, p.values())) << n << " threads";
      with = p.f(p.good);
      for (const Array& value : p.values()) with.push_back(value);
    });
    on_one_process([&] {
      Program p = GetParam().second();
      p.f(p.good);
      without = p.f(p.good);
      for (const Array& value : p.values()) without.push_back(value);
    });
    EXPECT_TRUE(same(with, without)) << n << " threads: a refused call has drawn random numbers";
  }
  set_thread_count(threads);
}

TEST_P(Refusals, OfOneRankChangeNothingOnAny) {
  std::array<std::string, 2> errors;
  on_ranks(2, [&](comm::Communicator& communicator) {
    Program p = GetParam().second();
    p.f(p.good);
    const std::vector<Array> before = p.values();
    try {
      p.f(p.bad);
    } catch (const Error& error) {
      errors[static_cast<std::size_t>(communicator.rank())] = error.what();
    }
    EXPECT_TRUE(same(before, p.values())) << "rank " << communicator.rank();
  });
  for (const std::string& error : errors) EXPECT_NE(error, "");
}

TEST(RefusalsOfRanks, ARankThatGoesOnIsInAnotherStep) {
  std::array<int, 2> told{};
  on_ranks(2, [&](comm::Communicator& communicator) {
    Program p = picking();
    const std::vector<Array> before = p.values();
    try {
      try {
        p.f(p.bad);
      } catch (const ValueError&) {
        p.f(p.good);
      }
    } catch (const DisagreementError&) {
      ++told[static_cast<std::size_t>(communicator.rank())];
    }
    EXPECT_TRUE(same(before, p.values())) << "rank " << communicator.rank();
  });
  EXPECT_EQ(told[0], 1);
  EXPECT_EQ(told[1], 1);
}

TEST(RefusalsOfRanks, MeetOnlyWhereNoTransferStandsBehind) {
  std::array<int, kPrograms.size()> barriers{};
  on_ranks(2,
           [&](comm::Communicator& communicator) {
             for (std::size_t k = 0; k < kPrograms.size(); ++k) {
               Program p = kPrograms[k].second();
               const std::string plan = p.f.describe(p.good);
               if (communicator.rank() == 0) barriers[k] = count_lines(plan, "barrier");
             }
           },
           {.share_from = kNever});
  for (std::size_t k = 0; k < kPrograms.size(); ++k)
    EXPECT_EQ(barriers[k], kPrograms[k].second == &parts) << kPrograms[k].first;
}

TEST(RefusalsInPlace, AnEmbeddingIsStillUpdatedWhereItLies) {
  on_one_process([] {
    Program p = gathering();
    const std::string plan = p.f.describe(p.good);
    EXPECT_EQ(count_lines(plan, "assign"), 0) << plan;
    EXPECT_EQ(count_lines(plan, "checked_index"), 1) << plan;
  });
}

TEST(RefusalsOfPrinting, WhoReadsTheTextMayThrow) {
  on_one_process([] {
    const Variable v = large();
    const Update update_v = update(v, v.expr() * 0.9);
    const Expr x = placeholder({.shape = {2}, .dtype = DType::kFloat64});
    Function f({x}, {print_tensor(x)}, {update_v});
    const Array before = get_value(v);
    print_to([](const std::string&) { throw ValueError("no more"); });
    EXPECT_THROW(f({doubles({1, 2})}), ValueError);
    print_to([](const std::string&) {});
    EXPECT_TRUE(same_bits(before, get_value(v)));
  });
}

}  // namespace
}  // namespace syncline::testing
