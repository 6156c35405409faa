// Op cases of map_fn, foldl and foldr, against plain loops.
#include <cmath>

#include "syncline/backend/control.h"
#include "syncline/backend/core.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

std::vector<OpCase> map_rows() {
  return {{.name = "map_fn",
           .inputs = {{.shape = {5, 3}}},
           .build = [](const Exprs& x) { return map_fn([](const Expr& e) { return tanh(e) * e; }, x[0]); },
           .reference = elementwise([](double x) { return std::tanh(x) * x; }),
           .second_gradient = true},
          {.name = "map_fn_to_scalars",
           .inputs = {{.shape = {5, 3}}},
           .build = [](const Exprs& x) { return map_fn([](const Expr& e) { return sum(e * e); }, x[0]); },
           .reference =
               [](std::span<const Tensor> in) {
                 return tabulate({5}, [&](const Index& i) {
                   double total = 0;
                   for (std::int64_t j = 0; j < 3; ++j) total += at(in[0], {i[0], j}) * at(in[0], {i[0], j});
                   return total;
                 });
               },
           .second_gradient = true},
          {.name = "map_fn_of_scalars",
           .inputs = {{.shape = {5}, .dtype = DType::kInt32, .low = -3, .high = 3}},
           .build = [](const Exprs& x) { return map_fn([](const Expr& e) { return e * 2.0; }, x[0], DType::kFloat32); },
           .reference = elementwise([](double x) { return 2 * x; })},
          {.name = "map_fn_with_captured",
           .inputs = {{.shape = {5, 2, 3}}, {.shape = {3, 2}}},
           .build = [](const Exprs& x) { return map_fn([&](const Expr& e) { return dot(e, x[1]); }, x[0]); },
           .reference =
               [](std::span<const Tensor> in) {
                 return tabulate({5, 2, 2}, [&](const Index& i) {
                   double z = 0;
                   for (std::int64_t k = 0; k < 3; ++k) z += at(in[0], {i[0], i[1], k}) * at(in[1], {k, i[2]});
                   return z;
                 });
               },
           .second_gradient = true},
          // Two inputs and two results, whose shapes and order differ from the inputs'.
          {.name = "map_fn_of_two",
           .inputs = {{.shape = {5, 2}}, {.shape = {5}}},
           .build =
               [](const Exprs& x) {
                 const MapFunctionOfMany fn = [](const Exprs& e) {
                   return Exprs{expand_dims(e[1] * e[1]), e[0] * e[1]};
                 };
                 return concatenate(map_fn(fn, {x[0], x[1]}), 1);
               },
           .reference =
               [](std::span<const Tensor> in) {
                 return tabulate({5, 3}, [&](const Index& i) {
                   const double y = at(in[1], {i[0]});
                   return i[1] == 0 ? y * y : at(in[0], {i[0], i[1] - 1}) * y;
                 });
               },
           .second_gradient = true}};
}

// acc = acc * 0.5 + tanh(x[i] * w), from the first or from the last element.
Tensor folded(const Tensor& x, const Tensor& w, std::vector<double> acc, std::int64_t first, bool from_last) {
  const std::int64_t n = x.shape[0];
  for (std::int64_t k = first; k < n; ++k) {
    const std::int64_t i = from_last ? n - 1 - k : k;
    for (std::size_t j = 0; j < acc.size(); ++j) {
      const Index index{i, static_cast<std::int64_t>(j)};
      acc[j] = acc[j] * 0.5 + std::tanh(at(x, index) * w.values[j]);
    }
  }
  return {{static_cast<std::int64_t>(acc.size())}, acc};
}

OpCase fold_row(const std::string& name, bool from_last, bool with_initializer) {
  return {.name = name,
          .inputs = {{.shape = {5, 3}}, {.shape = {3}}, {.shape = {3}}},
          .build =
              [=](const Exprs& x) {
                const FoldFunction fn = [&](const Expr& acc, const Expr& e) { return acc * 0.5 + tanh(e * x[1]); };
                const Expr initial = with_initializer ? x[2] : Expr{};
                const Expr y = from_last ? foldr(fn, x[0], initial) : foldl(fn, x[0], initial);
                return with_initializer ? y : y + x[2] * 0.0;
              },
          .reference =
              [=](std::span<const Tensor> in) {
                const std::int64_t first = with_initializer ? 0 : 1;
                std::vector<double> acc = in[2].values;
                for (std::int64_t j = 0; !with_initializer && j < 3; ++j)
                  acc[static_cast<std::size_t>(j)] = at(in[0], {from_last ? 4 : 0, j});
                return folded(in[0], in[1], acc, first, from_last);
              },
          .second_gradient = true};
}

// Two sequences and two accumulators: a sum of products and an alternating sum.
OpCase two_row(bool from_last) {
  return {.name = from_last ? "foldr_of_two" : "foldl_of_two",
          .inputs = {{.shape = {5, 2}}, {.shape = {5, 2}}, {.shape = {2}}, {.shape = {2}}},
          .build =
              [=](const Exprs& x) {
                const FoldFunctionOfMany fn = [](const Exprs& acc, const Exprs& e) {
                  return Exprs{acc[0] + e[0] * e[1], e[0] - acc[1]};
                };
                const Exprs elems{x[0], x[1]}, initial{x[2], x[3]};
                return concatenate(from_last ? foldr(fn, elems, initial) : foldl(fn, elems, initial));
              },
          .reference =
              [=](std::span<const Tensor> in) {
                std::vector<double> y = in[2].values;
                y.insert(y.end(), in[3].values.begin(), in[3].values.end());
                for (std::int64_t k = 0; k < 5; ++k)
                  for (std::int64_t j = 0; j < 2; ++j) {
                    const Index index{from_last ? 4 - k : k, j};
                    y[static_cast<std::size_t>(j)] += at(in[0], index) * at(in[1], index);
                    double& alternating = y[static_cast<std::size_t>(j + 2)];
                    alternating = at(in[0], index) - alternating;
                  }
                return Tensor{{4}, y};
              },
          .second_gradient = true};
}

std::vector<OpCase> fold_rows() {
  return {
      fold_row("foldl", false, false),
      fold_row("foldl_from_initializer", false, true),
      fold_row("foldr", true, false),
      fold_row("foldr_from_initializer", true, true),
      two_row(false),
      two_row(true),
      // Without elements the result is the initializer.
      {.name = "foldl_of_nothing",
       .inputs = {{.shape = {0, 3}}, {.shape = {3}}},
       .build = [](const Exprs& x) { return foldl([](const Expr& a, const Expr& e) { return a * e; }, x[0], x[1]); },
       .reference = [](std::span<const Tensor> in) { return in[1]; }},
      {.name = "map_fn_of_nothing",
       .inputs = {{.shape = {0, 3}}, {.shape = {3, 2}}},
       .build =
           [](const Exprs& x) {
             return map_fn([&](const Expr& e) { return sum(dot(expand_dims(e, 0), x[1]), {0}); }, x[0]);
           },
       .reference =
           [](std::span<const Tensor>) {
             return Tensor{{0, 2}, {}};
           }}};
}

SYNCLINE_OP_CASES(map_rows)
SYNCLINE_OP_CASES(fold_rows)

}  // namespace
}  // namespace syncline::testing
