// Gradients by rows: each rank computes some rows from the whole batch and reads the others in the other ranks' memory.
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "comm/local/local_communicator.h"
#include "runtime/placement/strategy.h"
#include "syncline/backend/config.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "syncline/training/accumulation.h"
#include "syncline/training/optimizers.h"
#include "tests/comm/forwarding.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

const DataParallelOptions kByRows{.by_rows_from = 1, .share_from = kNever};
const DataParallelOptions kByRowsAndShared{.by_rows_from = 1, .share_from = 1};

// Two weights of 97 KiB and more, whose gradients are much larger than their operands, and two small variables.
struct Network {
  Expr x = placeholder({.shape = {kUnknown, 96}, .dtype = DType::kFloat64});
  Expr y = placeholder({.shape = {kUnknown, 3}, .dtype = DType::kFloat64});
  std::vector<Variable> variables{variable(random_doubles({96, 130}, 1)), variable(random_doubles({130, 101}, 2)),
                                  variable(random_doubles({101, 3}, 3)), variable(random_doubles({101}, 4))};
  Expr hidden = relu(bias_add(dot(relu(dot(x, variables[0]) * 0.1), variables[1]) * 0.1, variables[3]));
  Expr loss = mean(square(dot(hidden, variables[2]) * 0.1 - y));
};

std::vector<Array> batch_of(std::int64_t rows, std::uint64_t seed) {
  return {random_doubles({rows, 96}, 2 * seed), random_doubles({rows, 3}, 2 * seed + 1)};
}

using Updates = std::function<std::vector<Update>(const Network&)>;

std::vector<Update> with_adam(const Network& n) { return adam(n.loss, n.variables).updates; }
std::vector<Update> with_sgd(const Network& n) { return sgd(n.loss, n.variables, {.learning_rate = 0.5}).updates; }

std::vector<Array> train(const Updates& updates, const std::vector<std::int64_t>& batches) {
  set_floatx(DType::kFloat64);
  const Network n;
  Function step({n.x, n.y}, {n.loss}, updates(n), "train");
  std::vector<Array> results;
  for (const std::int64_t rows : batches) results.push_back(step(batch_of(rows, results.size()))[0]);
  for (const Variable& v : n.variables) results.push_back(get_value(v));
  return results;
}

std::string plan_of(const Updates& updates, DataParallelOptions options, std::int64_t rows = 6) {
  std::string plan;
  on_ranks(
      2,
      [&](comm::Communicator& communicator) {
        const Network n;
        const std::string own = Function({n.x, n.y}, {n.loss}, updates(n)).describe(batch_of(rows, 1));
        if (communicator.rank() == 0) plan = own;
      },
      options);
  return plan;
}

TEST(ByRows, ThePlan) {
  const std::string plan = plan_of(with_adam, kByRows);
  EXPECT_EQ(count_lines(plan, "all_gather: rows are read where they are"), 2) << plan;
  EXPECT_EQ(count_lines(plan, "all_gather: whole rows are needed"), 4) << plan;  // their operands
  EXPECT_NE(plan.find("bucket of 3 sums"), std::string::npos) << plan;           // the loss and the small gradients
  EXPECT_NE(plan.find("dot_kernel_grad()  float64(6, 65), float64(6, 101) -> float64(65, 101)"), std::string::npos)
      << plan;
  EXPECT_NE(plan.find("dot_kernel_grad()  float64(6, 48), float64(6, 130) -> float64(48, 130)"), std::string::npos)
      << plan;
}

// The update of a shared variable needs the rows that its rank has: nothing is gathered.
TEST(ByRows, OfASharedVariable) {
  const std::string plan = plan_of(with_adam, kByRowsAndShared);
  EXPECT_EQ(count_lines(plan, "all_gather: rows are read where they are"), 0) << plan;
  EXPECT_EQ(count_lines(plan, "all_gather: whole rows are needed"), 4) << plan;
  EXPECT_NE(plan.find("dot_kernel_grad()  float64(6, 65), float64(6, 101) -> float64(65, 101)"), std::string::npos)
      << plan;
}

// No wait is within the backward pass.
TEST(ByRows, TransfersStartEarlyAndAreWaitedForLate) {
  const std::string plan = plan_of(with_adam, kByRows);
  EXPECT_EQ(first_line(plan, "all_gather: whole rows are needed"), 0) << plan;  // the batch
  EXPECT_GT(first_line(plan, "wait"), last_line(plan, "dot(transpose_y=true)")) << plan;
  EXPECT_LT(first_line(plan, "all_reduce"), first_line(plan, "wait")) << plan;
  EXPECT_GT(first_line(plan, "square mul add sqrt"), last_line(plan, "wait")) << plan;
}

TEST(ByRows, OnlyWhereItMovesLess) {
  EXPECT_EQ(count_lines(plan_of(with_adam, {}), "all_gather"), 0);  // gradients of less than 1 MiB
  EXPECT_EQ(count_lines(plan_of(with_adam, kByRows, 200), "all_gather"), 0);
}

TEST(ByRows, AccumulatedGradientsAreSums) {
  const auto accumulated = [](const Network& n) { return accumulate(adam(n.loss, n.variables), 4).updates; };
  EXPECT_EQ(count_lines(plan_of(accumulated, kByRows), "all_gather"), 0);
}

// The gradient's readers are elementwise programs, which read the rows in each rank's memory.
TEST(ByRows, ANormOfTheGradient) {
  const auto clipped = [](const Network& n) {
    std::vector<Update> updates;
    for (const Variable& v : n.variables) {
      const Expr g = gradients(n.loss, {v.expr()})[0];
      updates.push_back({v, v - g / (1 + sqrt(sum(square(g))))});
    }
    return updates;
  };
  for (const DataParallelOptions& options : {kByRows, kByRowsAndShared}) {
    EXPECT_EQ(count_lines(plan_of(clipped, options), "rows are read where they are"), 2);
    expect_same_on_ranks([&] { return train(clipped, {6, 5, 7, 6}); }, 1e-11, {1, 2, 3, 4}, options);
  }
}

// Any other reader needs the gradient in one piece.
TEST(ByRows, TheLargestOfEachColumn) {
  const auto less_largest = [](const Network& n) {
    const Variable &v = n.variables[0], &other = n.variables[1];
    const Expr g = gradients(n.loss, {v.expr()})[0];
    return std::vector<Update>{{v, v - (g - max(g, {0}))}, {other, other - gradients(n.loss, {other.expr()})[0]}};
  };
  const std::string plan = plan_of(less_largest, kByRows);
  EXPECT_EQ(count_lines(plan, "rows are read where they are"), 1) << plan;
  EXPECT_EQ(count_lines(plan, "whole rows are needed"), 5) << plan;
  expect_same_on_ranks([&] { return train(less_largest, {6, 5, 7, 6}); }, 1e-11, {1, 2, 3, 4}, kByRows);
}

// Batches of which the ranks have unequal shares or no rows.
TEST(ByRows, TrainingIsThatOfOneRank) {
  const std::vector<std::int64_t> batches{6, 5, 7, 6, 3, 8, 2, 6};
  for (const DataParallelOptions& options : {kByRows, kByRowsAndShared}) {
    expect_same_on_ranks([&] { return train(with_sgd, batches); }, 1e-11, {1, 2, 3, 4}, options);
    expect_same_on_ranks([&] { return train(with_adam, batches); }, 1e-7, {2, 3, 4}, options);
  }
}

TEST(ByRows, ARankWithoutRows) {
  std::vector<Array> wanted;
  on_one_process([&] { wanted = train(with_sgd, {6, 6, 6}); });
  DataParallelOptions options = kByRows;
  options.local_feeds = true;
  on_ranks(
      3,
      [&](comm::Communicator& communicator) {
        set_floatx(DType::kFloat64);
        const Network n;
        Function step({n.x, n.y}, {n.loss}, with_sgd(n), "train");
        const std::int64_t begin[] = {0, 4, 4, 6};  // rank 1 has none
        for (std::uint64_t i = 0; i < 3; ++i) {
          std::vector<Array> own;
          for (const Array& all : batch_of(6, i)) {
            const std::int64_t row = all.shape()[1], first = begin[communicator.rank()],
                               last = begin[communicator.rank() + 1];
            own.push_back(Array(all.dtype(), {last - first, row}));
            std::copy_n(all.data<double>() + first * row, (last - first) * row, own.back().data<double>());
          }
          expect_near(step(own)[0], wanted[i], 1e-11);
        }
        for (std::size_t v = 0; v < n.variables.size(); ++v)
          expect_near(get_value(n.variables[v]), wanted[3 + v], 1e-11);
      },
      options);
}

// `add` writes to the shared memory at its start, while a late rank may still read gradients there.
std::vector<Array> train_and_sum(const std::function<void(int)>& late) {
  set_floatx(DType::kFloat64);
  const Network n;
  Function step({n.x, n.y}, {n.loss}, with_sgd(n), "train");
  const Expr rows = placeholder({.shape = {kUnknown, 20000}, .dtype = DType::kFloat64});
  const Variable total = variable(Array(DType::kFloat64, {20000}));
  Function add({rows}, {}, {{total, total + sum(rows * 2, {0})}}, "add");
  for (int i = 0; i < 20; ++i) {
    late(2 * i);
    step(batch_of(6, static_cast<std::uint64_t>(i)));
    late(2 * i + 1);
    add({random_doubles({4, 20000}, static_cast<std::uint64_t>(i))});
  }
  std::vector<Array> results{get_value(total)};
  for (const Variable& v : n.variables) results.push_back(get_value(v));
  return results;
}

TEST(ByRows, MemoryIsNotWrittenWhileOthersReadIt) {
  std::vector<Array> wanted;
  on_one_process([&] { wanted = train_and_sum([](int) {}); });
  const DataParallelOptions sums{.first_bucket = 1024, .by_rows_from = kNever, .share_from = 1};
  for (const DataParallelOptions& options : {kByRows, sums})
    for (const int size : {2, 3})
      on_ranks(
          size,
          [&](comm::Communicator& communicator) {
            const std::vector<Array> got = train_and_sum([&](int call) {
              if ((call / 3) % size == communicator.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            });
            for (std::size_t i = 0; i < wanted.size(); ++i)
              expect_near(got[i], wanted[i], 1e-11, join_text("value ", i));
          },
          options);
}

// Ranks of one node without room for shared memory.
class WithoutMemory : public comm::Forwarding {
 public:
  using comm::Forwarding::Forwarding;
  std::byte* shared_memory(std::size_t) override { return nullptr; }
};

TEST(ByRows, TheSameBitsWithoutSharedMemory) {
  std::vector<Array> wanted;
  on_ranks(
      3,
      [&](comm::Communicator& communicator) {
        const std::vector<Array> own = train(with_adam, {6, 5, 7});
        if (communicator.rank() == 0) wanted = own;
      },
      kByRows);
  comm::spawn_ranks(3, [&](comm::Communicator& shared) {
    WithoutMemory communicator(shared);
    Session session(5);
    SessionScope scope(session);
    session.distribute(make_data_parallel(communicator, kByRows));
    const std::vector<Array> own = train(with_adam, {6, 5, 7});
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(same_bits(own[i], wanted[i])) << i;
  });
}

// By rows and by sums, with batches of unequal shares and with own rows: one result for all layouts.
TEST(ByRows, TheSameBitsInEveryLayout) {
  for (const DataParallelOptions& options :
       {kByRows, DataParallelOptions{}, DataParallelOptions{.local_feeds = true}}) {
    std::vector<Array> wanted;
    for (const std::vector<int>& nodes :
         {std::vector<int>{0, 0, 0, 0}, {0, 0, 1, 1}, {0, 0, 0, 1}, {0, 1, 0, 1}, {0, 1, 2, 3}})
      on_ranks(
          4,
          [&](comm::Communicator& communicator) {
            const std::int64_t more = options.local_feeds ? communicator.rank() : 0;
            const std::vector<Array> own =
                train(with_adam, {6 + more, 5, 7 - more, options.local_feeds ? 2 * more : 4});
            static std::mutex mutex;
            const std::lock_guard lock(mutex);
            if (wanted.empty()) wanted = own;
            for (std::size_t i = 0; i < wanted.size(); ++i)
              EXPECT_TRUE(same_bits(own[i], wanted[i])) << i << " on rank " << communicator.rank();
          },
          options, 5, nodes);
  }
}

// The outputs may be those of a whole test set.
TEST(ByRows, OutputsTakeNoSharedMemory) {
  on_ranks(2, [](comm::Communicator& communicator) {
    const Expr x = placeholder({.shape = {kUnknown, 20000}, .dtype = DType::kFloat64});
    const std::vector<Array> feeds{random_doubles({4, 20000}, 1)};
    const std::vector<Array> got = Function({x}, {x * 2, permute_dimensions(x, {1, 0}) * 2}, {})(feeds);
    EXPECT_EQ(got[0].data<double>()[79999], 2 * feeds[0].data<double>()[79999]);
    EXPECT_EQ(got[1].data<double>()[79999], 2 * feeds[0].data<double>()[79999]);
    EXPECT_EQ(communicator.shared_memory_of(0), nullptr);
  });
}

TEST(Lease, EndsWithALaterTransfer) {
  on_ranks(2, [](comm::Communicator& communicator) {
    const auto ranks = make_data_parallel(communicator);
    Transfer sum;
    sum.count = 1;
    float value = 1;
    const std::vector<std::int64_t> bytes{0, 0};
    EXPECT_EQ(ranks->leased(), 0u);
    const std::uint64_t before = ranks->start(sum, 1, 1, &value, &value);
    ranks->lease(100);
    ranks->lease(60);
    ranks->wait(before);
    EXPECT_EQ(ranks->leased(), 100u);  // other ranks may have started it and still read
    ranks->gather("nothing", nullptr, nullptr, bytes);
    EXPECT_EQ(ranks->leased(), 0u);
    ranks->lease(60);
    ranks->reclaim();
    EXPECT_EQ(ranks->leased(), 0u);
  });
}

}  // namespace
}  // namespace syncline::testing
