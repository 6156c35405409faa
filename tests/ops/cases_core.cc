// Op cases of ops/core: fills, identity, shapes, counts.
#include "syncline/backend/core.h"

#include "ops/graph/leaf.h"
#include "syncline/backend/math.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

Tensor same(std::span<const Tensor> in) { return in[0]; }

std::vector<OpCase> core_rows() {
  return {
      {.name = "fill",
       .inputs = {{.shape = {5, 3}}},
       .build =
           [](const Exprs& x) {
             return x[0] + fill({5, 3}, 0.25, x[0].dtype());
           },
       .reference = elementwise([](double x) { return x + 0.25; })},
      {.name = "fill_like",
       .inputs = {{.shape = {5, 3}}},
       .build = [](const Exprs& x) { return fill_like(x[0], 2.5); },
       .reference = elementwise([](double) { return 2.5; })},
      {.name = "fill_like_of_integers",
       .inputs = {{.shape = {5, 3}}},
       .build = [](const Exprs& x) { return fill_like(x[0], 7, DType::kInt32); },
       .reference = elementwise([](double) { return 7.0; })},
      {.name = "identity",
       .inputs = {{.shape = {5, 3}}},
       .build = [](const Exprs& x) { return identity(x[0]); },
       .reference = &same,
       .second_gradient = true},
      {.name = "stop_gradient",
       .inputs = {{.shape = {5, 3}}},
       .build = [](const Exprs& x) { return stop_gradient(x[0]); },
       .reference = &same,
       .gradient = false},
      {.name = "shape",
       .inputs = {{.shape = {5, 3, 2}}},
       .build = [](const Exprs& x) { return shape(x[0]); },
       .reference = literal({3}, {5, 3, 2})},
      {.name = "count_of_all",
       .inputs = {{.shape = {5, 3, 2}}},
       .build = [](const Exprs& x) { return count(x[0], {}, x[0].dtype()); },
       .reference = literal({}, {30})},
      {.name = "count_along_axes",
       .inputs = {{.shape = {5, 3, 2}}},
       .build =
           [](const Exprs& x) {
             return count(x[0], {0, -1}, DType::kInt64);
           },
       .reference = literal({}, {10})},
  };
}

SYNCLINE_OP_CASES(core_rows)

}  // namespace
}  // namespace syncline::testing
