// Op cases of random ops: several ranks draw the same numbers as one rank. random/draw_test.cc tests the numbers.
#include "syncline/backend/random.h"

#include "ops/graph/leaf.h"
#include "syncline/backend/gradients.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
RandomKey key() { return {12, 34}; }

std::vector<OpCase> random_rows() {
  const auto row = [](std::string name, Builder build, Shape shape = {6, 5}) -> OpCase {
    return {.name = std::move(name),
            .inputs = {{.shape = std::move(shape)}},
            .build = std::move(build),
            .no_reference = "random",
            .large = {{.shape = {1200, 1000}}},
            .gradient = false};  // each step draws new numbers
  };
  std::vector<OpCase> rows{
      row("random_uniform_like", [](const Exprs& x) { return random_uniform_like(x[0], key()); }),
      row("random_normal_like", [](const Exprs& x) { return random_normal_like(x[0], key()); }),
      row("truncated_normal_like", [](const Exprs& x) { return truncated_normal_like(x[0], key()); }),
      row("random_binomial_like", [](const Exprs& x) { return random_binomial_like(x[0], key(), {.p = 0.4}); }),
      row("random_uniform",
          [](const Exprs&) {
            return random_uniform({6, 5}, key());
          }),
      row("dropout_mask", [](const Exprs& x) { return dropout_mask(x[0], 0.4, key()); }),
      row("dropout_mask_of_a_level",
          [](const Exprs& x) { return dropout_mask(x[0], scalar(0.4, DType::kFloat32), key()); }),
      row("dropout_mask_of_images", [](const Exprs& x) { return dropout_mask(x[0], 0.4, key()); }, {4, 3, 2, 3}),
      row("dropout_mask_shared_by_rows",
          [](const Exprs& x) {
            return dropout_mask(x[0], 0.4, key(), Shape{1, -1});
          }),
      row("dropout_mask_of_rows",
          [](const Exprs& x) {
            return dropout_mask(x[0], 0.4, key(), Shape{-1, 1});
          }),
  };
  rows[4].large.clear();
  const auto holds = [](std::string name, Builder build) -> OpCase {
    return {.name = std::move(name),
            .inputs = {{.shape = {6, 5}}},
            .build = std::move(build),
            .reference = elementwise([](double) { return 1.0; })};
  };
  // An element is 0 or scaled.
  rows.push_back(holds("dropout", [](const Exprs& x) {
    const Expr y = dropout(x[0], 0.4, key()), scaled = x[0] * (1 / (1 - 0.4));
    return equal(y * (y - scaled), scalar_like(0, y));
  }));
  rows.push_back(holds("dropout_shared_by_rows", [](const Exprs& x) {
    const Expr y = dropout(x[0], 0.4, key(), Shape{1, -1}), scaled = x[0] * (1 / (1 - 0.4));
    return equal(y * (y - scaled), scalar_like(0, y));
  }));
  // Dropout is linear in x, so x times its gradient equals its result. Both use one mask within a step.
  rows.push_back(holds("dropout_gradient", [](const Exprs& x) {
    const Expr y = dropout(x[0], 0.4, key());
    return equal(gradients(sum(y), {x[0]})[0] * x[0], y);
  }));
  rows.push_back({.name = "dropout_of_nothing",
                  .inputs = {{.shape = {6, 5}}},
                  .build = [](const Exprs& x) { return dropout(x[0], 0, key()); },
                  .reference = elementwise([](double x) { return x; })});
  return rows;
}

SYNCLINE_OP_CASES(random_rows)

}  // namespace
}  // namespace syncline::testing
