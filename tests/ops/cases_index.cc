// Op cases of index: subscripts with NumPy's meaning.
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"
#include "tests/ops/reference.h"

namespace syncline::testing {
namespace {

using Exprs = std::vector<Expr>;

// A result of this shape, whose element i is element from(i) of the input.
Reference taken(Shape shape, std::function<Index(const Index&)> from) {
  return
      [=](std::span<const Tensor> in) { return tabulate(shape, [&](const Index& i) { return at(in[0], from(i)); }); };
}

OpCase row(std::string name, Shape x, std::vector<Subscript> subscripts, Shape result,
           std::function<Index(const Index&)> from) {
  return {.name = std::move(name),
          .inputs = {{.shape = std::move(x)}},
          .build = [subscripts](const Exprs& e) { return index(e[0], subscripts); },
          .reference = taken(std::move(result), std::move(from)),
          .second_gradient = true};
}

std::vector<OpCase> range_rows() {
  return {
      row("index_range", {5, 4}, {Range{1, 4}}, {3, 4},
          [](const Index& i) {
            return Index{i[0] + 1, i[1]};
          }),
      row("index_range_from_the_end", {5, 4}, {Range{-3, {}}, Range{{}, -1}}, {3, 3},
          [](const Index& i) {
            return Index{i[0] + 2, i[1]};
          }),
      row("strided_slice", {5, 4}, {Range{{}, {}, 2}, Range{1, {}, 2}}, {3, 2},
          [](const Index& i) {
            return Index{2 * i[0], 2 * i[1] + 1};
          }),
      row("strided_slice_of_features", {5, 6}, {Ellipsis{}, Range{1, {}, 3}}, {5, 2},
          [](const Index& i) {
            return Index{i[0], 3 * i[1] + 1};
          }),
      row("strided_slice_backwards", {5, 4}, {Range{{}, {}, -1}, Range{3, 0, -2}}, {5, 2},
          [](const Index& i) {
            return Index{4 - i[0], 3 - 2 * i[1]};
          }),
      row("index_range_beyond", {5, 4}, {Range{-9, 9}, Range{2, 9, 3}}, {5, 1},
          [](const Index& i) {
            return Index{i[0], 2};
          }),
      row("index_range_of_nothing", {5, 4}, {Range{}, Range{3, 1}}, {5, 0}, [](const Index& i) { return i; }),
      row("index_strides_of_nothing", {5, 4}, {Range{}, Range{1, 3, -2}}, {5, 0}, [](const Index& i) { return i; }),
  };
}

std::vector<OpCase> axis_rows() {
  return {
      row("index_number", {5, 3, 4}, {Range{}, 1}, {5, 4},
          [](const Index& i) {
            return Index{i[0], 1, i[1]};
          }),
      row("index_last", {5, 3, 4}, {Ellipsis{}, -1}, {5, 3},
          [](const Index& i) {
            return Index{i[0], i[1], 3};
          }),
      row("index_rows", {5, 3}, {2}, {3},
          [](const Index& i) {
            return Index{2, i[0]};
          }),
      row("index_new_axes", {5, 3}, {NewAxis{}, Ellipsis{}, NewAxis{}}, {1, 5, 3, 1},
          [](const Index& i) {
            return Index{i[1], i[2]};
          }),
      row("index_everything", {4, 3, 2}, {Range{{}, {}, -1}, NewAxis{}, 1, Range{0, 1}}, {4, 1, 1},
          [](const Index& i) {
            return Index{3 - i[0], 1, i[2]};
          }),
      row("index_nothing", {5, 3}, {}, {5, 3}, [](const Index& i) { return i; }),
  };
}

std::vector<OpCase> tensor_rows() {
  OpCase columns{.name = "index_tensor",
                 .inputs = {{.shape = {5, 4, 3}}, {.shape = {2, 2}, .dtype = DType::kInt32, .low = 0, .high = 3}},
                 .build =
                     [](const Exprs& x) {
                       return index(x[0], {Range{}, x[1]});
                     },
                 .reference =
                     [](std::span<const Tensor> in) {
                       return tabulate({5, 2, 2, 3}, [&](const Index& i) {
                         return at(in[0], {i[0], static_cast<std::int64_t>(at(in[1], {i[1], i[2]})), i[3]});
                       });
                     },
                 .second_gradient = true};
  OpCase scalars{.name = "index_scalar_tensor",
                 .inputs = {{.shape = {5, 4}}, {.shape = {}, .dtype = DType::kUint8, .low = 0, .high = 4}},
                 .build =
                     [](const Exprs& x) {
                       return index(x[0], {x[1], Range{1, {}, 2}});
                     },
                 .reference =
                     [](std::span<const Tensor> in) {
                       return tabulate({2}, [&](const Index& i) {
                         return at(in[0], {static_cast<std::int64_t>(at(in[1], {})), 2 * i[0] + 1});
                       });
                     },
                 .second_gradient = true};
  OpCase from_end{.name = "index_scalar_tensor_from_the_end",
                  .inputs = {{.shape = {5, 4}}, {.shape = {}, .dtype = DType::kInt8, .low = -5, .high = -1}},
                  .build = [](const Exprs& x) { return index(x[0], {x[1]}); },
                  .reference =
                      [](std::span<const Tensor> in) {
                        return tabulate({4}, [&](const Index& i) {
                          return at(in[0], {5 + static_cast<std::int64_t>(at(in[1], {})), i[0]});
                        });
                      },
                  .second_gradient = true};
  OpCase bounds{.name = "index_to_tensor",
                .inputs = {{.shape = {5, 3}}},
                .build =
                    [](const Exprs& x) {
                      // The size as a tensor, even if it is known.
                      const Expr n = squeeze(slice_axis(shape(x[0]), 0, 0, 1), 0);
                      return index(x[0], {Range{1, n - 1.0}, Range{{}, {}, -1}});
                    },
                .reference = taken({3, 3},
                                   [](const Index& i) {
                                     return Index{i[0] + 1, 2 - i[1]};
                                   }),
                .second_gradient = true};
  OpCase sizes{.name = "index_of_shape",
               .inputs = {{.shape = {5, 3}}},
               .build = [](const Exprs& x) { return index(shape(x[0]), {0}) * index(shape(x[0]), {-1}); },
               .reference = literal({}, {15})};
  return {columns, scalars, from_end, bounds, sizes};
}

std::vector<OpCase> mask_rows() {
  return {
      {.name = "mask",
       .inputs = {{.shape = {5, 3}}, {.shape = {5}, .dtype = DType::kInt32, .low = 0, .high = 1}},
       .build = [](const Exprs& x) { return index(x[0], {equal(x[1], scalar_like(1, x[1]))}); },
       .reference =
           [](std::span<const Tensor> in) {
             std::vector<std::int64_t> rows;
             for (std::int64_t i = 0; i < 5; ++i)
               if (at(in[1], {i}) == 1) rows.push_back(i);
             return tabulate({static_cast<std::int64_t>(rows.size()), 3}, [&](const Index& i) {
               return at(in[0], {rows[static_cast<std::size_t>(i[0])], i[1]});
             });
           },
       .large = {{.shape = {4096, 40}}, {.shape = {4096}, .dtype = DType::kInt32, .low = 0, .high = 1}},
       .second_gradient = true},
  };
}

SYNCLINE_OP_CASES(range_rows)
SYNCLINE_OP_CASES(axis_rows)
SYNCLINE_OP_CASES(tensor_rows)
SYNCLINE_OP_CASES(mask_rows)

}  // namespace
}  // namespace syncline::testing
