// verify() finds broken invariants: each schedule comes from passes of compile() and is changed in one place.
#include "runtime/schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "ops/graph/leaf.h"
#include "runtime/passes/passes.h"
#include "runtime/placement/collectives.h"
#include "syncline/backend/control.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

Expr fed(const Shape& shape) { return placeholder({.shape = shape, .dtype = DType::kFloat64}); }

// One process whose graphs contain collectives; only their order matters here.
struct Case {
  RowShares shares;
  Expr x = fed({4, 4}), y = fed({4, 4});
  Variable v = variable(random_doubles({4, 4}, 1), {.name = "v"});

  CompileRequest request(std::vector<Expr> outputs, std::vector<Update> updates = {}) const {
    return {
        .name = "f", .feeds = {x, y}, .outputs = std::move(outputs), .updates = std::move(updates), .shares = &shares};
  }
  Schedule listed(std::vector<Expr> outputs, std::vector<Update> updates = {}) const {
    return wait(list_tasks(request(std::move(outputs), std::move(updates))));
  }
  Schedule with_memory(std::vector<Expr> outputs, std::vector<Update> updates = {}) const {
    Schedule tasks = compile_bodies(listed(std::move(outputs), std::move(updates)));
    return lay_out_memory(lease(make_programs(assign_memory(divide_sums(commit(std::move(tasks)))))));
  }
};

void expect_broken(const Schedule& schedule, const std::string& words) {
  try {
    verify(schedule, "test");
    FAIL() << "nothing found, wanted: " << words << '\n' << to_text(schedule);
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

std::size_t find(const Schedule& schedule, const std::function<bool(const Task&)>& wanted) {
  const auto found = std::find_if(schedule.tasks.begin(), schedule.tasks.end(), wanted);
  EXPECT_NE(found, schedule.tasks.end());
  return static_cast<std::size_t>(found - schedule.tasks.begin());
}
std::size_t task_of(const Schedule& schedule, std::string_view op) {
  return find(schedule, [&](const Task& task) { return !task.nodes.empty() && task.nodes[0].op().name == op; });
}
std::size_t wait_of(const Schedule& schedule) {
  return find(schedule, [](const Task& task) { return task.kind == Task::kWait; });
}

TEST(Verify, SoundSchedulesPass) {
  const Case c;
  const Expr sum = apply<AllReduce>({dot(c.x, c.y)});
  verify(c.listed({tanh(sum), c.x + c.y}), "test");
  verify(c.with_memory({tanh(sum), exp(c.x)}, {{c.v, c.v.expr() * 0.5}}), "test");
}

TEST(Verify, WhatIsReadWasWritten) {
  const Case c;
  Schedule s = c.listed({tanh(dot(c.x, c.y))});
  std::swap(s.tasks[0], s.tasks[1]);
  expect_broken(s, "reads dot before it is written");
  s = c.listed({tanh(dot(c.x, c.y))});
  s.tasks.erase(s.tasks.begin());
  expect_broken(s, "reads what no task writes: dot");
  s = c.listed({tanh(apply<AllReduce>({dot(c.x, c.y)}))});
  const std::size_t w = wait_of(s);
  std::swap(s.tasks[w], s.tasks[w + 1]);
  expect_broken(s, "reads all_reduce before it is written");
}

TEST(Verify, GuardsWereWritten) {
  const Case c;
  const Expr condition = any(greater(c.x, c.y));
  Schedule s = c.listed({tanh(c.x), condition});
  const std::size_t t = task_of(s, "tanh");
  s.tasks[t].guards = {{condition, true}};
  std::rotate(s.tasks.begin(), s.tasks.begin() + static_cast<std::ptrdiff_t>(t), s.tasks.end());
  expect_broken(s, "reads any before it is written");
}

TEST(Verify, ReductionsAreAlikeAndComeLast) {
  const Case c;
  const Expr a = exp(c.x), b = a * c.y, column = sum(b, {0}), other = sum(a, {0}), row = sum(b, {1});
  const auto broken = [&](const char* words, const std::function<void(Task&)>& change) {
    Schedule s = order(fuse(list_tasks(c.request({column, other, a}))));
    Task& task = s.tasks[find(s, [](const Task& t) { return t.kind == Task::kReduce; })];
    ASSERT_EQ(task.reductions().size(), 2);
    verify(s, "test");
    change(task);
    expect_broken(s, words);
  };
  broken("has 0 reductions", [](Task& task) { task.nodes.resize(2); });
  broken("does not write its reductions last", [](Task& task) { std::swap(task.writes[0], task.writes[2]); });
  broken("has reductions that differ", [&](Task& task) { task.nodes[3] = task.writes[2] = row; });
  broken("reduces mul, which it neither computes nor reads", [&](Task& task) { task.nodes[1] = a; });
  broken("has 5 reductions", [&](Task& task) {
    task.nodes.insert(task.nodes.end(), 3, other);
    task.writes.insert(task.writes.end(), 3, other);
  });
  const Expr few = fed({2, 4}), of_few = sum(few, {0});
  broken("of another space", [&](Task& task) {
    task.reads.push_back(few);
    task.nodes[2] = task.writes[1] = of_few;
  });
}

TEST(Verify, EpiloguesTakeTheKernelsElementsAndLeaveItsOperands) {
  const Case c;
  const Expr h = exp(c.x), y = tanh(dot(h, c.y)) + c.x;
  const auto broken = [&](const char* words, const std::function<void(Schedule&, Task&)>& change) {
    Schedule s = lay_out_memory(make_programs(assign_memory(epilogues(fuse(list_tasks(c.request({y})))))));
    Task& task = s.tasks[find(s, [](const Task& t) { return t.epilogue; })];
    verify(s, "test");
    change(s, task);
    expect_broken(s, words);
  };
  broken("follows no kernel", [](Schedule& s, Task&) { s.tasks[0].epilogue = true; });
  broken("follows no kernel", [](Schedule&, Task& task) { task.guards = {{constant(1, DType::kBool), true}}; });
  broken("supports none", [](Schedule& s, Task&) { s.tasks[1].part_sum = 0; });
  broken("once", [&](Schedule&, Task& task) { task.reads[0] = c.x; });
  broken("still reads", [&](Schedule& s, Task& task) { s.memory.put(task.writes[0], s.memory.locate(h, s.local())); });
  broken("other values may have its memory",
         [](Schedule& s, Task& task) { s.memory[s.memory.locate(task.writes[0], s.local()).buffer].life.first = 2; });
}

TEST(Verify, TransfersStartOnceAndAreWaitedForOnce) {
  const Case c;
  const std::vector<Expr> sums{apply<AllReduce>({dot(c.x, c.y)}), apply<AllReduce>({dot(c.y, c.x)})};
  Schedule s = c.listed(sums);
  s.tasks.erase(s.tasks.begin() + static_cast<std::ptrdiff_t>(wait_of(s)));
  expect_broken(s, "starts a transfer that no task waits for");
  s = c.listed(sums);
  s.tasks.push_back(s.tasks[wait_of(s)]);
  expect_broken(s, "waits again");
  s = c.listed(sums);
  s.tasks.push_back(s.tasks[task_of(s, "all_reduce")]);
  expect_broken(s, "starts a transfer again");
  s = c.listed(sums);
  s.tasks[wait_of(s)].guards = {{scalar(1, DType::kBool), true}};
  expect_broken(s, "waits under guards that differ");
  s = c.listed(sums);
  std::rotate(s.tasks.begin(), s.tasks.begin() + static_cast<std::ptrdiff_t>(wait_of(s)), s.tasks.end());
  expect_broken(s, "waits for a transfer that has not started");
}

TEST(Verify, NoVariableIsWrittenBeforeWhatMayFail) {
  const Case c;
  const Update halved{c.v, c.v.expr() * 0.5};
  Schedule s = c.with_memory({apply<AllReduce>({dot(c.x, c.y)})}, {halved});
  const std::size_t write = task_of(s, "mul");
  ASSERT_GT(write, wait_of(s));
  std::rotate(s.tasks.begin(), s.tasks.begin() + static_cast<std::ptrdiff_t>(write), s.tasks.end());
  expect_broken(s, "writes a variable before");
  // A loop whose iterations have transfers.
  const Expr squares = map_fn([](const Expr& e) { return dot(e, e); }, stack({c.x, c.y}));
  s = c.with_memory({squares}, {halved});
  verify(s, "test");
  std::rotate(s.tasks.begin(), s.tasks.begin() + static_cast<std::ptrdiff_t>(task_of(s, "mul")), s.tasks.end());
  verify(s, "test");
  s.tasks[task_of(s, "loop")].has_transfers = true;
  expect_broken(s, "writes a variable before 'loop' may fail");
}

TEST(Verify, MemoryIsNotWrittenWhileItIsRead) {
  const Case c;
  const Expr a = dot(c.x, c.y), b = dot(c.y, c.x), d = dot(a, b);
  Schedule s = c.with_memory({dot(d, a)});
  s.memory.put(b, s.memory.locate(a, s.local()));
  expect_broken(s, "writes over dot");
  s = c.with_memory({dot(d, a)});
  s.memory.put(d, s.memory.locate(b, s.local()));  // a product reads its operands several times
  expect_broken(s, "writes over dot");
  s = c.with_memory({dot(c.v.expr(), c.x)}, {{c.v, c.v.expr() * 0.5}});
  verify(s, "test");
  ASSERT_LT(task_of(s, "mul"), task_of(s, "dot"));
  s.memory.put(s.new_value(0), {s.memory.of_variable(c.v.state()), 0});
  expect_broken(s, "writes over variable");
}

TEST(Verify, LeasedMemoryIsNotWritten) {
  const Case c;
  const Expr a = dot(c.x, c.y);
  Schedule s = c.with_memory({tanh(a), dot(a, a)});
  s.memory[s.memory.locate(a, s.local()).buffer].leased = true;
  expect_broken(s, "writes memory that other ranks read");
}

TEST(Verify, WhatLiesWithOtherRanksIsReadThereBeforeALaterTransfer) {
  const Case c;
  Schedule s = c.with_memory({tanh(apply<ReduceScatter>({dot(c.x, c.y)}))});
  s.tasks[task_of(s, "reduce_scatter")].in_place = true;
  expect_broken(s, "does not add the ranks' terms of a sum in place");
  s = c.with_memory({tanh(apply<AllGather>({dot(c.x, c.y)}))});
  s.tasks[task_of(s, "all_gather")].in_place = true;
  s.leases_end = false;
  verify(s, "test");
  s.leases_end = true;
  expect_broken(s, "reads other ranks' memory behind the last transfer");
}

TEST(Verify, SharedVariablesAreReadAndWrittenBeforeTheBarrier) {
  const Case c;
  const Variable own = variable(random_doubles({4, 4}, 2));
  VariableState& shared = c.v.state();
  shared.share({shared.value().copy(), shared.value().copy(), nullptr});
  for (const auto& [op, words] :
       {std::pair("mul", "writes a shared variable behind"), {"copy", "reads a shared variable behind"}}) {
    Schedule s = c.with_memory({}, {{c.v, c.v.expr() * 0.5}, {own, c.v.expr()}});
    verify(s, "test");
    const std::size_t task = task_of(s, op);
    const std::size_t barrier = find(s, [](const Task& t) { return t.kind == Task::kBarrier; });
    ASSERT_LT(task, barrier) << op;
    std::swap(s.tasks[task], s.tasks[barrier]);
    expect_broken(s, words);
  }
}

TEST(Verify, RanksHaveTheSameTransfers) {
  std::atomic<int> found = 0;
  on_ranks(2, [&](comm::Communicator& communicator) {
    const Case c;
    std::vector<Expr> values{dot(c.x, c.y), sum(c.x)};
    if (communicator.rank() == 1) std::swap(values[0], values[1]);
    std::vector<Expr> sums;
    for (const Expr& value : values) sums.push_back(apply<AllReduce>({value}));
    Schedule s = c.listed(sums);
    s.request.strategy = Session::current().strategy();
    try {
      verify(s, "test");
    } catch (const InternalError& error) {
      if (std::string(error.what()).find("ranks have different transfers") != std::string::npos) ++found;
    }
  });
  EXPECT_EQ(found, 2);
}

}  // namespace
}  // namespace syncline::testing
