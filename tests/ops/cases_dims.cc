// Op cases of functions whose shape arguments contain tensors.
#include "syncline/dims.h"

#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/random.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

// The size of an axis as a tensor, even if it is known.
Expr size_of_axis(const Expr& x, int axis) { return squeeze(slice_axis(shape(x), 0, axis, 1), 0); }

Reference reshaped(Shape shape) {
  return [shape](std::span<const Tensor> in) { return Tensor{shape, in[0].values}; };
}

Reference tiled(Shape shape) {
  return [shape](std::span<const Tensor> in) {
    return tabulate(shape, [&](Index index) {
      for (std::size_t axis = 0; axis < index.size(); ++axis) index[axis] %= in[0].shape[static_cast<int>(axis)];
      return at(in[0], index);
    });
  };
}

std::vector<OpCase> reshape_rows() {
  const auto row = [](std::string name, Shape from, Shape to, Builder build) -> OpCase {
    return {.name = std::move(name),
            .inputs = {{.shape = std::move(from)}},
            .build = std::move(build),
            .reference = reshaped(std::move(to)),
            .second_gradient = true};
  };
  return {
      row("deferred", {6, 4}, {6, 2, 2},
          [](const Exprs& x) {
            return reshape(x[0], {size_of_axis(x[0], 0), 2, -1});
          }),
      row("reshape_by_arithmetic", {6, 4}, {24, 1},
          [](const Exprs& x) {
            return reshape(x[0], {size_of_axis(x[0], 0) * size_of_axis(x[0], 1), 1});
          }),
      row("reshape_by_a_vector", {6, 4}, {6, 4},
          [](const Exprs& x) {
            return square(reshape(reshape(x[0], {-1}), shape(x[0]))) / reshape(x[0], shape(x[0]));
          }),
      row("reshape_of_many_unknown", {3, 2, 2, 2}, {3, 2, 4},
          [](const Exprs& x) {
            return reshape(x[0], {size_of_axis(x[0], 0), size_of_axis(x[0], 1), -1});
          }),
  };
}

std::vector<OpCase> size_rows() {
  return {
      {.name = "tile_by_tensor",
       .inputs = {{.shape = {3, 2}}, {.shape = {3}}},
       .build =
           [](const Exprs& x) {
             return tile(x[0], {1, size_of_axis(x[1], 0)});
           },
       .reference = tiled({3, 6}),
       .second_gradient = true},
      {.name = "tile_by_vector",
       .inputs = {{.shape = {3, 2}}},
       .build = [](const Exprs& x) { return tile(x[0], shape(x[0])); },
       .reference = tiled({9, 4}),
       .second_gradient = true},
      {.name = "repeat_by_tensor",
       .inputs = {{.shape = {3, 2}}},
       .build = [](const Exprs& x) { return repeat(x[0], size_of_axis(x[0], 0)); },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate({3, 3, 2}, [&](const Index& i) { return at(in[0], {i[0], i[2]}); });
           },
       .second_gradient = true},
      {.name = "slice_by_tensors",
       .inputs = {{.shape = {5, 4}}},
       .build =
           [](const Exprs& x) {
             return slice(x[0], {size_of_axis(x[0], 0) - size_of_axis(x[0], 1), 1}, {-1, size_of_axis(x[0], 1) - 2.0});
           },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate({4, 2}, [&](const Index& i) { return at(in[0], {i[0] + 1, i[1] + 1}); });
           },
       .second_gradient = true},
  };
}

std::vector<OpCase> number_rows() {
  return {
      {.name = "fill_by_tensor",
       .inputs = {{.shape = {5, 3}}},
       .build =
           [](const Exprs& x) {
             return x[0] + fill({size_of_axis(x[0], 0), 1}, 2, x[0].dtype());
           },
       .reference = elementwise([](double x) { return x + 2; })},
      {.name = "arange_by_tensor",
       .inputs = {{.shape = {5}}},
       .build = [](const Exprs& x) { return x[0] * arange(size_of_axis(x[0], 0), x[0].dtype()); },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate({5}, [&](const Index& i) { return at(in[0], i) * static_cast<double>(i[0]); });
           }},
      {.name = "arange_between_tensors",
       .inputs = {{.shape = {5}}},
       .build = [](const Exprs& x) { return arange(size_of_axis(x[0], 0), -2, -3, DType::kInt64); },
       .reference = literal({3}, {5, 2, -1})},
      {.name = "one_hot_by_tensor",
       .inputs = {{.shape = {3}, .dtype = DType::kInt32, .low = 0, .high = 2}},
       .build = [](const Exprs& x) { return one_hot(x[0], size_of_axis(x[0], 0)); },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate(
                 {3, 3}, [&](const Index& i) { return at(in[0], {i[0]}) == static_cast<double>(i[1]) ? 1.0 : 0.0; });
           }},
      {.name = "stack_of_numbers",
       .inputs = {{.shape = {5, 3}}},
       .build =
           [](const Exprs& x) {
             return stack(Dims{size_of_axis(x[0], 0), 7, shape(x[0])}, DType::kInt64);
           },
       .reference = literal({4}, {5, 7, 5, 3})},
      {.name = "dropout_by_tensor",
       .inputs = {{.shape = {6, 5}}},
       .build =
           [](const Exprs& x) {
             // One draw per row: all elements of a row are 0, or all are scaled.
             const Expr y = dropout(x[0], 0.4, {12, 34}, Dims{size_of_axis(x[0], 0), 1});
             const Expr kept = not_equal(y, scalar_like(0, y));
             return all(equal(kept, any(kept, {1}, true)), {1});
           },
       .reference = [](std::span<const Tensor> in) { return tabulate({in[0].shape[0]}, [](auto&) { return 1.0; }); }},
      {.name = "random_by_tensor",
       .inputs = {{.shape = {6, 5}}},
       .build =
           [](const Exprs& x) {
             return equal(random_normal(shape(x[0]), {12, 34}), random_normal_like(x[0], {12, 34}));
           },
       .reference = elementwise([](double) { return 1.0; })},
  };
}

SYNCLINE_OP_CASES(reshape_rows)
SYNCLINE_OP_CASES(size_rows)
SYNCLINE_OP_CASES(number_rows)

}  // namespace
}  // namespace syncline::testing
