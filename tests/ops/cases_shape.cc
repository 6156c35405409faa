// Op cases of ops that rearrange or repeat elements, and of tensors made from numbers.
#include <algorithm>

#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;
using Numbers = std::vector<std::int64_t>;

// The elements in their order with another shape.
Reference reshaped(Shape shape) {
  return [shape](std::span<const Tensor> in) { return Tensor{shape, in[0].values}; };
}

OpCase view(std::string name, Shape from, Shape to, Builder build) {
  return {.name = std::move(name),
          .inputs = {{.shape = std::move(from)}},
          .build = std::move(build),
          .reference = reshaped(std::move(to)),
          .second_gradient = true};
}

std::vector<OpCase> view_rows() {
  std::vector<OpCase> rows{
      view("reshape", {6, 4}, {6, 2, 2},
           [](const Exprs& x) {
             return reshape(x[0], {-1, 2, 2});
           }),
      view("reshape_merges_rows", {6, 4, 3}, {24, 3},
           [](const Exprs& x) {
             return reshape(x[0], {-1, 3});
           }),
      view("reshape_splits_rows", {6, 4}, {2, 3, 4},
           [](const Exprs& x) {
             return reshape(x[0], {2, -1, 4});
           }),
      view("reshape_mixes_rows", {6, 4}, {8, 3},
           [](const Exprs& x) {
             return reshape(x[0], {8, 3});
           }),
      view("reshape_to_scalar", {1, 1}, {}, [](const Exprs& x) { return reshape(x[0], {}); }),
      view("reshape_twice", {6, 4}, {4, 6},
           [](const Exprs& x) {
             return reshape(reshape(x[0], {-1}), {4, 6});
           }),
      view("expand_dims", {5, 3}, {5, 3, 1}, [](const Exprs& x) { return expand_dims(x[0]); }),
      view("expand_dims_first", {5, 3}, {1, 5, 3}, [](const Exprs& x) { return expand_dims(x[0], 0); }),
      view("squeeze", {5, 1, 3}, {5, 3}, [](const Exprs& x) { return squeeze(x[0], 1); }),
      view("squeeze_first", {1, 5, 3}, {5, 3}, [](const Exprs& x) { return squeeze(x[0], 0); }),
      view("flatten", {5, 2, 3}, {30}, [](const Exprs& x) { return flatten(x[0]); }),
      view("batch_flatten", {5, 2, 3}, {5, 6}, [](const Exprs& x) { return batch_flatten(x[0]); }),
      view("batch_flatten_vector", {5}, {5, 1}, [](const Exprs& x) { return batch_flatten(x[0]); }),
  };
  for (OpCase& row : rows)
    if (row.name == "squeeze_first") row.open_batch = false;
  rows.push_back({.name = "reshape_like",
                  .inputs = {{.shape = {6, 4}}, {.shape = {6, 2, 2}}},
                  .build = [](const Exprs& x) { return reshape_like(x[0], x[1]); },
                  .reference = reshaped({6, 2, 2})});
  // A shape with two unknown dimensions, which a list with a single -1 cannot express.
  rows.push_back({.name = "reshape_like_of_two_unknown",
                  .inputs = {{.shape = {6, 4}}, {.shape = {6}}, {.shape = {4}}},
                  .build =
                      [](const Exprs& x) {
                        const Expr both = expand_dims(x[1], 1) + expand_dims(x[2], 0);
                        return reshape_like(flatten(x[0]), both) * both;
                      },
                  .reference = elementwise([](double x) { return x; })});
  rows.back().reference = [](std::span<const Tensor> in) {
    return tabulate({6, 4}, [&](const Index& i) { return at(in[0], i) * (at(in[1], {i[0]}) + at(in[2], {i[1]})); });
  };
  return rows;
}

// The output's axis i is the operand's axis pattern[i].
Reference permuted(std::vector<int> pattern) {
  return [pattern](std::span<const Tensor> in) {
    Shape shape;
    for (const int axis : pattern) shape.push_back(in[0].shape[axis]);
    return tabulate(shape, [&](const Index& index) {
      Index from(index.size());
      for (std::size_t i = 0; i < index.size(); ++i) from[static_cast<std::size_t>(pattern[i])] = index[i];
      return at(in[0], from);
    });
  };
}

OpCase permutation(std::string name, Shape shape, std::vector<int> pattern) {
  return {.name = std::move(name),
          .inputs = {{.shape = std::move(shape)}},
          .build = [=](const Exprs& x) { return permute_dimensions(x[0], pattern); },
          .reference = permuted(pattern),
          .second_gradient = true};
}

OpCase large_permutation(std::string name, Shape shape, std::vector<int> pattern) {
  OpCase row = permutation(std::move(name), std::move(shape), std::move(pattern));
  row.large = row.inputs;
  row.gradient = row.placement = row.second_gradient = false;
  return row;
}

Reference reversed(std::vector<int> axes) {
  return [axes](std::span<const Tensor> in) {
    return tabulate(in[0].shape, [&](Index index) {
      for (const int axis : axes) {
        std::int64_t& digit = index[static_cast<std::size_t>(axis)];
        digit = in[0].shape[axis] - 1 - digit;
      }
      return at(in[0], index);
    });
  };
}

std::vector<OpCase> order_rows() {
  std::vector<OpCase> rows{
      permutation("permute_last_two", {5, 3, 4}, {0, 2, 1}),
      permutation("permute_first_two", {5, 3, 4}, {1, 0, 2}),
      permutation("permute_around", {5, 2, 3, 4}, {3, 1, 0, 2}),
      permutation("permute_identity", {5, 3}, {0, 1}),
      permutation("permute_of_ones", {5, 1, 3}, {1, 0, 2}),
      large_permutation("transpose_large", {1000, 515}, {1, 0}),
      large_permutation("permute_images", {16, 28, 28, 32}, {0, 3, 1, 2}),
      large_permutation("permute_batches", {32, 100, 64}, {1, 0, 2}),
  };
  rows.push_back({.name = "transpose",
                  .inputs = {{.shape = {5, 2, 3}}},
                  .build = [](const Exprs& x) { return transpose(x[0]); },
                  .reference = permuted({2, 1, 0}),
                  .second_gradient = true});
  rows.push_back({.name = "transpose_twice_of_integers",
                  .inputs = {{.shape = {5, 3}, .dtype = DType::kInt16, .low = -9, .high = 9}},
                  .build = [](const Exprs& x) { return transpose(transpose(x[0])); },
                  .reference = permuted({0, 1})});
  for (const std::vector<int>& axes : {std::vector<int>{0}, std::vector<int>{1}, std::vector<int>{0, 2}}) {
    std::string name = "reverse";
    for (const int axis : axes) name.append(1, '_').append(std::to_string(axis));
    rows.push_back({.name = name,
                    .inputs = {{.shape = {5, 3, 2}}},
                    .build = [axes](const Exprs& x) { return reverse(x[0], axes); },
                    .reference = reversed(axes),
                    .large = {{.shape = {64, 128, 33}}},
                    .second_gradient = true});
  }
  return rows;
}

// The concatenation of the inputs along the axis.
Reference joined(int axis) {
  return [axis](std::span<const Tensor> in) {
    const int along = axis < 0 ? axis + in[0].shape.ndim() : axis;
    Shape shape = in[0].shape;
    for (const Tensor& x : in.subspan(1)) shape[along] += x.shape[along];
    return tabulate(shape, [&](Index index) {
      std::int64_t& digit = index[static_cast<std::size_t>(along)];
      std::size_t i = 0;
      while (digit >= in[i].shape[along]) digit -= in[i++].shape[along];
      return at(in[i], index);
    });
  };
}

std::vector<OpCase> join_rows() {
  const auto stacked = [](int axis) -> Reference {
    return [axis](std::span<const Tensor> in) {
      std::vector<Tensor> expanded(in.begin(), in.end());
      for (Tensor& x : expanded) x.shape.insert(axis, 1);
      return joined(axis)(expanded);
    };
  };
  return {
      {.name = "concatenate",
       .inputs = {{.shape = {5, 3}}, {.shape = {5, 2}}},
       .build =
           [](const Exprs& x) {
             return concatenate({x[0], x[1]});
           },
       .reference = joined(-1),
       .large = {{.shape = {512, 300}}, {.shape = {512, 200}}},
       .second_gradient = true},
      {.name = "concatenate_rows",
       .inputs = {{.shape = {5, 3}}, {.shape = {2, 3}}, {.shape = {5, 3}}},
       .build = [](const Exprs& x) { return concatenate(x, 0); },
       .reference = joined(0),
       .second_gradient = true},
      {.name = "concatenate_one",
       .inputs = {{.shape = {5, 3}}},
       .build = [](const Exprs& x) { return concatenate({x[0]}); },
       .reference = joined(1)},
      {.name = "concatenate_the_middle",
       .inputs = {{.shape = {5, 1, 3}, .dtype = DType::kInt64}, {.shape = {5, 2, 3}, .dtype = DType::kInt64}},
       .build = [](const Exprs& x) { return concatenate(x, 1); },
       .reference = joined(1)},
      {.name = "stack",
       .inputs = {{.shape = {5, 3}}, {.shape = {5, 3}}},
       .build =
           [](const Exprs& x) {
             return stack({x[0], x[1]});
           },
       .reference = stacked(0),
       .second_gradient = true},
      {.name = "stack_last",
       .inputs = {{.shape = {5, 3}}, {.shape = {5, 3}}},
       .build =
           [](const Exprs& x) {
             return stack({x[0], x[1]}, -1);
           },
       .reference = stacked(2)},
  };
}

// The elements of x at `start` plus the index, for the indices of `shape`; zeros outside x.
Reference boxed(Numbers start, Shape shape) {
  return [start, shape](std::span<const Tensor> in) {
    return tabulate(shape, [&](Index index) {
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        index[axis] += start[axis];
        if (index[axis] < 0 || index[axis] >= in[0].shape[static_cast<int>(axis)]) return 0.0;
      }
      return at(in[0], index);
    });
  };
}

OpCase box(std::string name, Shape from, Numbers start, Shape to, Builder build) {
  return {.name = std::move(name),
          .inputs = {{.shape = std::move(from)}},
          .build = std::move(build),
          .reference = boxed(std::move(start), std::move(to)),
          .second_gradient = true};
}

OpCase padded(std::string name, const Shape& from, const Numbers& before, const Numbers& after, Shape large) {
  Numbers start;
  Shape to = from;
  for (std::size_t i = 0; i < before.size(); ++i) {
    start.push_back(-before[i]);
    to[static_cast<int>(i)] += before[i] + after[i];
  }
  OpCase row = box(std::move(name), from, start, to, [=](const Exprs& x) { return pad(x[0], before, after); });
  row.large = {{.shape = std::move(large)}};
  return row;
}

std::vector<OpCase> box_rows() {
  return {
      box("slice", {5, 4}, {0, 1}, {5, 2},
          [](const Exprs& x) {
            return slice(x[0], {0, 1}, {-1, 2});
          }),
      box("slice_rows", {5, 4}, {1, 0}, {3, 4},
          [](const Exprs& x) {
            return slice(x[0], {1, 0}, {3, -1});
          }),
      box("slice_to_the_end", {5, 4, 3}, {2, 0, 1}, {3, 4, 2},
          [](const Exprs& x) {
            return slice(x[0], {2, 0, 1}, {-1, 4, -1});
          }),
      box("slice_of_all", {5, 4}, {0, 0}, {5, 4},
          [](const Exprs& x) {
            return slice(x[0], {0, 0}, {-1, 4});
          }),
      box("slice_axis", {5, 4}, {0, 2}, {5, 2}, [](const Exprs& x) { return slice_axis(x[0], -1, 2, -1); }),
      box("trim", {5, 6}, {1, 2}, {3, 3},
          [](const Exprs& x) {
            return trim(x[0], {1, 2}, {1, 1});
          }),
      padded("pad", {5, 3}, {0, 1}, {0, 2}, {300, 70}),
      padded("pad_rows", {5, 3}, {2, 0}, {1, 0}, {1000, 97}),
      padded("pad_by_nothing", {5, 3}, {0, 0}, {0, 0}, {300, 70}),
      padded("pad_of_outer_axes", {3, 2, 4, 2}, {1, 2, 0, 0}, {1, 1, 0, 0}, {30, 33, 20, 9}),
      padded("pad_of_inner_axes", {3, 2, 4, 2}, {0, 1, 0, 2}, {0, 0, 1, 1}, {30, 33, 20, 9}),
      box("temporal_padding", {5, 3, 2}, {0, -1, 0}, {5, 6, 2},
          [](const Exprs& x) {
            return temporal_padding(x[0], {1, 2});
          }),
      box("spatial_2d_padding", {3, 2, 3, 2}, {0, -1, -1, 0}, {3, 4, 5, 2},
          [](const Exprs& x) { return spatial_2d_padding(x[0]); }),
      box("spatial_2d_padding_channels_first", {3, 2, 2, 3}, {0, 0, -1, 0}, {3, 2, 3, 5},
          [](const Exprs& x) {
            return spatial_2d_padding(x[0], {{{1, 0}, {0, 2}}}, "channels_first");
          }),
  };
}

// y[index] = x[from(index)].
Reference taken(Shape shape, std::function<Index(const Index&)> from) {
  return [shape, from](std::span<const Tensor> in) {
    return tabulate(shape, [&](const Index& index) { return at(in[0], from(index)); });
  };
}

std::vector<OpCase> repeat_rows() {
  return {
      {.name = "repeat_elements",
       .inputs = {{.shape = {5, 3}}},
       .build = [](const Exprs& x) { return repeat_elements(x[0], 2, 1); },
       .reference = taken({5, 6},
                          [](const Index& i) {
                            return Index{i[0], i[1] / 2};
                          }),
       .large = {{.shape = {256, 700}}},
       .second_gradient = true},
      {.name = "repeat_elements_of_rows",
       .inputs = {{.shape = {5, 3}}},
       .build = [](const Exprs& x) { return repeat_elements(x[0], 3, 0); },
       .reference = taken({15, 3},
                          [](const Index& i) {
                            return Index{i[0] / 3, i[1]};
                          })},
      {.name = "repeat",
       .inputs = {{.shape = {5, 3}}},
       .build = [](const Exprs& x) { return repeat(x[0], 4); },
       .reference = taken({5, 4, 3},
                          [](const Index& i) {
                            return Index{i[0], i[2]};
                          }),
       .second_gradient = true},
      {.name = "tile",
       .inputs = {{.shape = {5, 3}}},
       .build =
           [](const Exprs& x) {
             return tile(x[0], {2, 3});
           },
       .reference = taken({10, 9},
                          [](const Index& i) {
                            return Index{i[0] % 5, i[1] % 3};
                          }),
       .second_gradient = true},
      {.name = "tile_of_integers",
       .inputs = {{.shape = {5, 3}, .dtype = DType::kInt8, .low = -9, .high = 9}},
       .build = [](const Exprs& x) { return tile(x[0], {2}); },
       .reference = taken({5, 6},
                          [](const Index& i) {
                            return Index{i[0], i[1] % 3};
                          })},
      {.name = "broadcast_like",
       .inputs = {{.shape = {3}}, {.shape = {5, 3}}},
       .build = [](const Exprs& x) { return broadcast_like(x[0], x[1]); },
       .reference = taken({5, 3}, [](const Index& i) { return Index{i[1]}; }),
       .open_batch = false,
       .second_gradient = true},
      {.name = "broadcast_like_times",
       .inputs = {{.shape = {5, 1}}, {.shape = {5, 3}}},
       .build = [](const Exprs& x) { return broadcast_like(x[0], x[1]) * x[1]; },
       .reference = elementwise([](double x, double y) { return x * y; }),
       .second_gradient = true},
  };
}

std::vector<OpCase> number_rows() {
  return {
      {.name = "one_hot",
       .inputs = {{.shape = {5, 2}, .dtype = DType::kInt32, .low = -1, .high = 4}},
       .build = [](const Exprs& x) { return one_hot(x[0], 4); },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate({5, 2, 4}, [&](const Index& i) {
               return double(at(in[0], {i[0], i[1]}) == static_cast<double>(i[2]));
             });
           },
       .large = {{.shape = {4096}, .dtype = DType::kInt64, .low = 0, .high = 99}}},
      {.name = "arange",
       .inputs = {{.shape = {5}, .dtype = DType::kInt32, .low = -9, .high = 9}},
       .build = [](const Exprs& x) { return x[0] + arange(1, 10, 2); },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate({5}, [&](const Index& i) { return at(in[0], i) + 1 + 2 * static_cast<double>(i[0]); });
           }},
      {.name = "arange_down",
       .inputs = {{.shape = {3}}},
       .build = [](const Exprs& x) { return x[0] * arange(1, 0, -0.4, x[0].dtype()); },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate({3}, [&](const Index& i) { return at(in[0], i) * (1 - 0.4 * static_cast<double>(i[0])); });
           },
       .open_batch = false},
      {.name = "eye",
       .inputs = {{.shape = {3, 3}}},
       .build = [](const Exprs& x) { return x[0] + diagonal_of_ones(3, 3, x[0].dtype()); },
       .reference =
           [](std::span<const Tensor> in) {
             return tabulate({3, 3}, [&](const Index& i) { return at(in[0], i) + double(i[0] == i[1]); });
           }},
  };
}

SYNCLINE_OP_CASES(view_rows)
SYNCLINE_OP_CASES(order_rows)
SYNCLINE_OP_CASES(join_rows)
SYNCLINE_OP_CASES(box_rows)
SYNCLINE_OP_CASES(repeat_rows)
SYNCLINE_OP_CASES(number_rows)

}  // namespace
}  // namespace syncline::testing
