// A small network, whose variables the ranks share, and its training on ranks.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/session.h"
#include "syncline/training/optimizers.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/support.h"

namespace syncline::testing {

// Gradients of the dense kernels are scattered, that of the filters is not.
inline const DataParallelOptions kShares{.first_bucket = 1024, .share_from = 16};
inline const DataParallelOptions kSplits{
    .first_bucket = 1024, .share_from = 16, .optimizer_state = OptimizerState::kSplit};

inline Variable drawn(const Shape& shape, std::uint64_t seed, std::string name) {
  return variable(random_doubles(shape, seed).cast(DType::kFloat32), {.name = std::move(name)});
}

// A kernel of a convolution, whose first axis is short, dense kernels, and a bias that is too small to divide.
struct Network {
  Expr x = placeholder({.shape = {kUnknown, 8, 8, 3}, .name = "x"});
  Variable filters = drawn({3, 3, 3, 8}, 1, "conv/kernel");
  Variable kernel = drawn({72, 10}, 2, "dense/kernel");
  Variable scale = drawn({10}, 3, "dense/scale");
  Variable wide = drawn({72, 300}, 4, "wide/kernel");

  Expr hidden = relu(conv2d(x, filters, {.strides = {2, 2}}));
  Expr flat = reshape(hidden, {-1, 72});
  Expr out = (tanh(dot(flat, kernel)) + dot(flat * 0.5, kernel)) * scale;  // the kernel's gradient has two terms
  Expr loss = mean(square(out - 0.5)) + mean(square(dot(flat, wide)));
  std::vector<Variable> variables{filters, kernel, scale, wide};
  Optimizer optimizer = adam(loss, variables, {.learning_rate = 0.01});

  Function train() const { return {{x}, {loss}, optimizer.updates, "train"}; }
  void train_five_steps() const;
  std::vector<Variable> all() const {
    std::vector<Variable> all = variables;
    all.insert(all.end(), optimizer.weights.begin(), optimizer.weights.end());
    return all;
  }
  std::vector<Array> values() const { return batch_get_value(all()); }
};

inline Array batch(std::uint64_t seed, std::int64_t rows = 9) {
  return random_doubles({rows, 8, 8, 3}, seed).cast(DType::kFloat32);
}

// With batches of nine rows, and one of five.
inline void Network::train_five_steps() const {
  Function step = train();
  for (std::uint64_t i = 0; i < 5; ++i) step({batch(i, i == 3 ? 5 : 9)});
}

inline void expect_bits(const std::vector<Array>& got, const std::vector<Array>& wanted, const char* what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], wanted[i])) << what << ", variable " << i;
}

// The values on rank 0 after some steps; all ranks must have equal ones.
inline std::vector<Array> trained(int ranks, const std::vector<int>& nodes, DataParallelOptions options, bool shared) {
  std::vector<std::vector<Array>> values(static_cast<std::size_t>(ranks));
  on_ranks(
      ranks,
      [&](comm::Communicator& communicator) {
        const Network net;
        net.train_five_steps();
        EXPECT_EQ(net.kernel.state().shared() != nullptr, shared);
        values[static_cast<std::size_t>(communicator.rank())] = net.values();
      },
      options, 5, nodes);
  for (const auto& of_rank : values) expect_bits(of_rank, values[0], "a rank");
  return values[0];
}

// With `options`, the ranks share variables, which get the bits of variables that each rank keeps, in every layout.
inline void expect_bits_of_own(const std::vector<std::vector<int>>& layouts, DataParallelOptions options) {
  for (const std::vector<int>& nodes : layouts)
    for (const std::int64_t by_rows_from : {std::int64_t{16}, kNever}) {
      const auto ranks = static_cast<int>(nodes.size());
      const auto own = trained(ranks, nodes, {.by_rows_from = by_rows_from, .share_from = kNever}, false);
      options.by_rows_from = by_rows_from;
      expect_bits(trained(ranks, nodes, options, true), own, "shared");
    }
}

// Trains, sets values by hand, trains, and reads through functions that were made before and after.
inline std::vector<Array> worked_with(DataParallelOptions options, const std::vector<int>& nodes = {0, 0}) {
  std::array<std::vector<Array>, 2> results;
  on_ranks(
      2,
      [&](comm::Communicator& communicator) {
        const Network net;
        Function predict({net.x}, {net.out}, {}, "predict");
        Function decay({}, {sum(net.kernel)}, {update(net.kernel, net.kernel * 0.5)}, "decay");
        Function turn({}, {}, {update(net.kernel, reverse(net.kernel, {0}))}, "turn");
        const Variable& slot = net.optimizer.weights[2];
        Function halve({}, {}, {update(slot, slot * 0.5)}, "halve");
        Function norm({}, {sum(abs(slot)), slot + 1.0}, {}, "norm");
        Function train = net.train();
        std::vector<Array> seen;
        const auto look = [&](std::vector<Array> values) { seen.insert(seen.end(), values.begin(), values.end()); };
        look(predict({batch(7)}));
        look(train({batch(1)}));
        EXPECT_EQ(net.kernel.state().shared() != nullptr, options.share_from < kNever);
        look(predict({batch(7)}));
        look(decay({}));
        look(decay({}));
        turn({});
        look(net.values());
        halve({});
        look(norm({}));
        set_value(slot, random_doubles(slot.shape(), 8).cast(DType::kFloat32));
        look(norm({}));
        look(train({batch(6)}));
        look(norm({}));
        set_value(net.kernel, net.kernel.state().value().copy());
        set_value(net.filters, drawn({3, 3, 3, 8}, 9, "other").state().value());
        look(predict({batch(7)}));
        look(train({batch(2)}));
        look({eval(net.kernel + 1.0)});
        look(net.values());
        if (nodes[0] == nodes[1]) {  // one process may go on: the node has all
          Session::current().undistribute();
          look(net.values());
          look(train({batch(3)}));  // in one process
          look(net.values());
          Session::current().distribute(make_data_parallel(communicator, options));
          look(train({batch(4)}));
          {
            Session alone(7);
            const SessionScope scope(alone);
            look({eval(net.kernel * 2.0)});
          }
          look(train({batch(5)}));
          look(net.values());
        }
        results[static_cast<std::size_t>(communicator.rank())] = std::move(seen);
      },
      options, 5, nodes);
  expect_bits(results[1], results[0], "rank 1");
  return results[0];
}

}  // namespace syncline::testing
