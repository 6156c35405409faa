// The parts of a batch: a training has the same bits on any number of ranks, in any layout.
#include <gtest/gtest.h>

#include <bit>

#include "comm/local/local_communicator.h"
#include "runtime/placement/strategy.h"
#include "syncline/backend/config.h"
#include "syncline/backend/control.h"
#include "syncline/backend/convolution.h"
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
#include "syncline/training/accumulation.h"
#include "syncline/training/optimizers.h"
#include "tests/ops/refusal.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {
namespace {

constexpr int kParts = 8;

Variable drawn(const Shape& shape, std::uint64_t seed, std::string name) {
  const Array values = random_doubles(shape, seed).cast(DType::kFloat32);
  return variable(values, {.name = std::move(name)});
}

Array batch(const Shape& shape, std::uint64_t seed) { return random_doubles(shape, seed).cast(DType::kFloat32); }

// A convolution, batch normalization, dropout and dense layers; a kernel is used twice.
struct Images {
  Expr x = placeholder({.shape = {kUnknown, 8, 8, 3}, .name = "x"});
  Variable filters = drawn({3, 3, 3, 16}, 1, "conv/kernel");
  Variable again = drawn({3, 3, 16, 16}, 2, "conv_1/kernel");
  Variable gamma = drawn({16}, 3, "normalization/gamma");
  Variable kernel = drawn({64, 64}, 4, "dense/kernel");
  Variable last = drawn({64, 10}, 5, "dense_1/kernel");
  Variable moving = drawn({16}, 6, "moving_mean");

  Expr first = relu(conv2d(x, filters));
  Expr second = conv2d(first, again);
  Expr center = mean(second, {0, 1, 2});
  Expr normalized = (second - center) / sqrt(mean(square(second - center), {0, 1, 2}) + 1e-3) * gamma;
  Expr flat = reshape(pool2d(relu(normalized), {2, 2}, {.strides = {2, 2}}), {-1, 64});
  Expr hidden = dropout(tanh(dot(tanh(dot(flat, kernel)), kernel)), 0.3);
  Expr loss = mean(square(dot(hidden, last) - 0.5)) + 1e-3 * sum(square(kernel));
  std::vector<Variable> variables{filters, again, gamma, kernel, last};

  static Array feed(std::uint64_t step, std::int64_t rows) { return batch({rows, 8, 8, 3}, step); }
  std::vector<Update> extra() const { return {moving_average_update(moving, center, 0.9)}; }
};

// A recurrent layer over an embedding; a sum over the iterations of a loop.
struct Words {
  Expr x = placeholder({.shape = {kUnknown, 7}, .dtype = DType::kInt32, .name = "words"});
  Variable table = drawn({20, 6}, 1, "embedding");
  Variable kernel = drawn({6, 12}, 2, "kernel");
  Variable recurrent = drawn({12, 12}, 3, "recurrent_kernel");
  Variable scale = drawn({12}, 4, "scale");
  Variable last = drawn({12, 1}, 5, "dense/kernel");

  RnnResult result = rnn(
      [this](const Expr& word, const std::vector<Expr>& states) {
        const Expr next = tanh(dot(word, kernel) + dot(states[0], recurrent)) * scale;
        return std::pair{next, std::vector<Expr>{next}};
      },
      gather(table, x), {dot(mean(gather(table, x), {1}), kernel)});
  Expr loss = mean(square(sigmoid(dot(result.last_output, last)) - 0.5));
  std::vector<Variable> variables{table, kernel, recurrent, scale, last};

  static Array feed(std::uint64_t step, std::int64_t rows) {
    Array words = Array::uninitialized(DType::kInt32, {rows, 7});
    for (std::int64_t i = 0; i < words.size(); ++i)
      words.data<std::int32_t>()[i] = static_cast<std::int32_t>((i * 7 + static_cast<std::int64_t>(step)) % 20);
    return words;
  }
  std::vector<Update> extra() const { return {}; }
};

// Losses and variables on rank 0 after steps with batches of many rows, of 9 rows and of fewer rows than parts. All
// ranks must have equal ones.
template <class Net>
std::vector<Array> trained(const std::vector<int>& nodes, std::int64_t accumulated, DataParallelOptions options = {}) {
  if (options.parts == 0) options.parts = kParts;
  const auto ranks = static_cast<int>(nodes.size());
  std::vector<std::vector<Array>> values(nodes.size());
  on_ranks(
      ranks,
      [&](comm::Communicator& communicator) {
        const Net net;
        const AccumulatingOptimizer optimizer =
            accumulate(adam(net.loss, net.variables, {.learning_rate = 0.01}), accumulated);
        std::vector<Update> updates = optimizer.updates;
        for (const Update& update : net.extra()) updates.push_back(update);
        Function train({net.x}, {net.loss}, updates, "train");
        auto& own = values[static_cast<std::size_t>(communicator.rank())];
        std::uint64_t step = 0;
        for (const std::int64_t rows : {64, 9, 64, 5, 2}) own.push_back(train({Net::feed(++step, rows)})[0].copy());
        for (const std::vector<Variable>* some : {&net.variables, &optimizer.weights, &optimizer.accumulated})
          for (Array& value : batch_get_value(*some)) own.push_back(value);
        for (const Update& update : net.extra()) own.push_back(get_value(update.target));
      },
      options, 5, nodes);
  for (const std::vector<Array>& of_rank : values)
    for (std::size_t i = 0; i < of_rank.size(); ++i)
      EXPECT_TRUE(same_bits(of_rank[i], values[0][i])) << "value " << i << " of a rank differs from rank 0's";
  return values[0];
}

const std::vector<std::vector<int>> kLayouts{{0, 0},
                                             {0, 1},
                                             {0, 0, 0},
                                             {0, 1, 1},
                                             {0, 0, 1, 1},
                                             {0, 0, 0, 1},
                                             {0, 0, 0, 0, 0},
                                             {0, 0, 0, 1, 1, 1},
                                             {0, 0, 0, 1, 1, 1, 1},
                                             {0, 0, 0, 0, 0, 0, 0, 0},
                                             {0, 0, 0, 1, 1, 1, 2, 2}};

template <class Net>
void expect_equal_bits(std::int64_t accumulated, const DataParallelOptions& options = {},
                       const std::vector<std::vector<int>>& layouts = kLayouts) {
  const std::vector<Array> wanted = trained<Net>({0}, accumulated, options);
  for (const std::vector<int>& nodes : layouts) {
    const std::vector<Array> got = trained<Net>(nodes, accumulated, options);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(same_bits(got[i], wanted[i])) << "value " << i << " on " << nodes.size() << " ranks";
  }
}

TEST(Parts, ConvolutionsHaveEqualBits) { expect_equal_bits<Images>(1); }
TEST(Parts, RecurrentLayersHaveEqualBits) { expect_equal_bits<Words>(1); }
TEST(Parts, AccumulatedGradientsHaveEqualBits) { expect_equal_bits<Images>(2); }
TEST(Parts, SharedVariablesHaveEqualBits) { expect_equal_bits<Images>(1, {.by_rows_from = 16, .share_from = 16}); }

TEST(Parts, SumsThatUpdatesAddHaveEqualBits) {
  expect_equal_bits<Images>(1, {.first_bucket = 1024, .by_rows_from = kNever, .share_from = 16});
}

TEST(Parts, MoreRanksThanUsualParts) {
  expect_equal_bits<Images>(1, {.parts = 16},
                            {std::vector<int>(9, 0), std::vector<int>(13, 0), {0, 0, 1, 1, 1, 1, 2, 2, 2, 3}});
}

TEST(Parts, DecideBits) {
  const auto gradient = [](int parts) {
    Array value;
    on_ranks(1,
             [&](comm::Communicator&) {
               const Images net;
               value = Function({net.x}, gradients(net.loss, net.variables))({Images::feed(1, 64)})[0].copy();
             },
             {.parts = parts});
    return value;
  };
  const Array with = gradient(kParts), without = gradient(0);
  EXPECT_FALSE(same_bits(with, without));  // otherwise the tests above compare nothing
  expect_near(with, without, 1e-4, "a gradient");
}

TEST(Parts, OwnRowsMustBeThoseOfTheParts) {
  const auto sum_of = [](const std::vector<std::int64_t>& rows) {
    on_ranks(2,
             [&](comm::Communicator& communicator) {
               const Expr x = placeholder({.shape = {kUnknown, 3}});
               const Array own = batch({rows[static_cast<std::size_t>(communicator.rank())], 3}, 1);
               Function({x}, {sum(x)})({own});
             },
             {.local_feeds = true, .parts = 4});
  };
  sum_of({8, 8});
  sum_of({2, 3});
  expect_refused<ValueError>(
      [&] {
        sum_of({6, 2});
      },
      "under local_feeds the rows of rank 1 begin at 6 of the batch's 8, but at 4 if the batch has 4 parts");
}

// A rank of n has at most as many parts as one of the next lower power of two.
TEST(Parts, AreSharedEvenly) {
  EXPECT_EQ(first_parts(3, 8), (std::vector<int>{0, 2, 4, 8}));
  EXPECT_EQ(first_parts(3, 0), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_THROW(first_parts(0, 8), ValueError);
  EXPECT_EQ(first_parts(5, 8), (std::vector<int>{0, 2, 4, 5, 6, 8}));
  for (int ranks = 1; ranks <= 64; ++ranks)
    for (const int parts : {64, 256}) {
      const std::vector<int> first = first_parts(ranks, parts);
      const int most = parts / static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
      ASSERT_EQ(first.size(), static_cast<std::size_t>(ranks) + 1);
      EXPECT_EQ(first.front(), 0);
      EXPECT_EQ(first.back(), parts);
      for (std::size_t r = 1; r < first.size(); ++r) {
        const int own = first[r] - first[r - 1];
        EXPECT_TRUE(own == most || 2 * own == most) << "rank " << r - 1 << " of " << ranks << " has " << own;
      }
    }
}

TEST(Parts, RefusesOtherNumbers) {
  const auto distribute = [](int ranks, int parts) {
    comm::spawn_ranks(ranks,
                      [&](comm::Communicator& communicator) { make_data_parallel(communicator, {.parts = parts}); });
  };
  for (const int wrong : {6, -1, 2048})
    expect_refused<ValueError>(
        [&] { distribute(1, wrong); },
        join_text("the number of parts is ", wrong, "; give a power of two up to 1024, or 0 for none"));
  expect_refused<ValueError>([&] { distribute(3, 2); }, "3 ranks cannot share 2 parts of a batch");
  distribute(3, 4);
  expect_refused<ValueError>(
      [] {
        comm::spawn_ranks(2, [](comm::Communicator& communicator) { make_data_parallel(communicator, {.parts = 2}); },
                          {.format = comm::WireFormat::kFloat16});
      },
      "there are 2 parts of a batch, but with NCCL or a 16-bit wire format sums depend on the ranks");
}

// Sums over an axis before the rows, a loop over the rows with a weight's gradient, extremes of zeros of both signs,
// and the gradient of a product whose columns are the batch.
TEST(Parts, OtherOperationsHaveEqualBits) {
  const auto computed = [](int ranks) {
    std::vector<Array> results;
    on_ranks(ranks,
             [&](comm::Communicator& communicator) {
               const Expr x = placeholder({.shape = {kUnknown, 40, 3}});
               const Variable w = drawn({3}, 1, "w");
               const Expr by_time = permute_dimensions(x, {1, 0, 2});
               const Expr mapped = map_fn([&](const Expr& row) { return sum(row * w); }, x);
               const Expr zeros = x * 0.0;
               const Variable memory = drawn({4096, 64}, 2, "memory"), query = drawn({3, 64}, 3, "query");
               const Expr found = dot(memory, permute_dimensions(dot(mean(x, {1}), query), {1, 0}));
               const std::vector<Expr> roots{sum(by_time, {0}),
                                             var(by_time, {0}),
                                             softmax(by_time, 0),
                                             mapped,
                                             gradients(sum(square(mapped)), std::vector<Variable>{w})[0],
                                             max(zeros, {0}),
                                             min(zeros, {0}),
                                             gradients(sum(square(found)), std::vector<Variable>{query})[0]};
               std::vector<Array> own = Function({x}, roots)({batch({21, 40, 3}, 1)});
               if (communicator.rank() != 0) return;
               for (const Array& result : own) results.push_back(result.copy());
             },
             {.parts = kParts});
    return results;
  };
  const std::vector<Array> wanted = computed(1);
  for (const int ranks : {2, 3, 5, 8}) {
    const std::vector<Array> got = computed(ranks);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(same_bits(got[i], wanted[i])) << "value " << i << " on " << ranks << " ranks";
  }
}

}  // namespace
}  // namespace syncline::testing
