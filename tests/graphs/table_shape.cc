// Functions that move elements.
#include <algorithm>

#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

Expr any_of(Choices& c, int least = 0, int most = 4) { return c.operand("x", Type::kAny, least, most); }

Built reshape_line(Choices& c) {
  const Expr x = any_of(c);
  if (c.integer("way", 0, 2) == 0 && x.ndim() > 0) return SYNCLINE_MADE(reshape(x, Dims{dim(x, 0), -1}));
  const std::vector<std::int64_t> shape = c.flag("two") ? c.integers("shape", 2, -1, 8) : c.integers("shape", 3, -1, 6);
  return SYNCLINE_MADE(reshape(x, Dims(shape)));
}

Built slice_axis_line(Choices& c) {
  const Expr x = any_of(c, 1);
  const int axis = c.axis("axis", x);
  const auto start = c.integer("start", 0, 4), size = c.integer("size", 0, 4);
  return SYNCLINE_MADE(slice_axis(x, axis, start, size));
}

Built slice_line(Choices& c) {
  const Expr x = any_of(c, 1, 3);
  const auto start = c.integers("start", x.ndim(), 0, 2), size = c.integers("size", x.ndim(), -1, 3);
  return SYNCLINE_MADE(slice(x, Dims(start), Dims(size)));
}

Range range_of(Choices& c) {
  const auto start = c.integer("start", -4, 4), stop = c.integer("stop", -4, 6), step = c.integer("step", -2, 2);
  Range range;
  if (c.flag("from")) range.start = start;
  if (c.flag("to")) range.stop = stop;
  Choices::require(step != 0);
  range.step = step;
  return range;
}

std::string range_text(const Range& r) {
  auto end = [](const std::optional<Dim>& d) { return d ? std::to_string(d->number()) : std::string("{}"); };
  return "Range{" + end(r.start) + ", " + end(r.stop) + ", " + std::to_string(r.step) + "}";
}

Built index_line(Choices& c) {
  const Expr x = any_of(c, 1, 3);
  std::vector<Subscript> subscripts;
  std::string text;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i > 0) text += ", ";
    switch (c.integer("way", 0, 5)) {
      case 0: {
        const auto n = c.integer("n", -3, 3);
        subscripts.emplace_back(n);
        text += "std::int64_t{" + std::to_string(n) + "}";
        break;
      }
      case 1: subscripts.emplace_back(NewAxis{}), text += "NewAxis{}"; break;
      case 2: subscripts.emplace_back(Range{}), text += "Range{}"; break;
      default: {
        const Range range = range_of(c);
        subscripts.emplace_back(range);
        text += range_text(range);
      }
    }
  }
  text = "index(x, {" + text + "})";
  if (is_floating(x.dtype()) && c.flag("squared"))  // its gradient has a gradient
    return c.made(square(index(x, subscripts)), "square(" + text + ")");
  return c.made(index(x, subscripts), text);
}

// Common subscripts: all but the last element, all but the first.
Built tail_line(Choices& c) {
  const Expr x = any_of(c, 1, 3);
  if (c.flag("first")) return SYNCLINE_MADE(index(x, {Range{.stop = -1}}));
  return SYNCLINE_MADE(index(x, {Ellipsis{}, Range{.start = 1}}));
}

// Sizes that depend on values.
Built mask_line(Choices& c) {
  const Expr x = any_of(c, 1, 3);
  const auto axes = c.integer("axes", 1, x.ndim());
  Shape shape;
  for (int axis = 0; axis < axes; ++axis) shape.push_back(x.shape()[axis]);
  Choices::require(shape.is_known());
  const Expr mask = c.fresh("mask", DType::kBool, shape, Pool::kTies);
  if (c.flag("whole")) return SYNCLINE_MADE(index(x, {mask}));
  return SYNCLINE_MADE(sum(index(x, {mask}), {0}));
}

Built counted_line(Choices& c) {
  const Expr mask = c.fresh("mask", DType::kBool, Shape{c.integer("n", 0, 6)}, Pool::kTies);
  const Expr count = sum(cast(mask, DType::kInt32));
  c.call("count", c.text("sum(cast(mask, DType::kInt32))"));
  if (c.flag("numbers")) return SYNCLINE_MADE(cast(arange(Dim(count)), DType::kFloat32));
  const Expr x = any_of(c, 1, 3);
  return SYNCLINE_MADE(index(x, {Range{{}, count}}));
}

Built picked_rows_line(Choices& c) {
  const Expr x = any_of(c, 1, 3);
  const auto n = c.integer("n", 0, 4);
  const Expr rows = c.fresh("rows", DType::kInt32, Shape{n}, Pool::kIndex, x.shape()[0]);
  return SYNCLINE_MADE(index(x, {rows}));
}

Built concatenate_line(Choices& c) {
  const Expr x = any_of(c, 1);
  const int axis = c.axis("axis", x);
  Shape shape = x.shape();
  if (c.integer("other", 0, 2) == 0) shape[axis < 0 ? axis + x.ndim() : axis] = c.integer("size", 0, 4);
  const Expr y = c.of_meta("y", {x.dtype(), shape});
  if (c.flag("three")) return SYNCLINE_MADE(concatenate({x, y, x}, axis));
  return SYNCLINE_MADE(concatenate({x, y}, axis));
}

Built stack_line(Choices& c) {
  const Expr x = any_of(c, 0, 3);
  const Expr y = c.like("y", x);
  const auto axis = static_cast<int>(c.integer("axis", -x.ndim() - 1, x.ndim()));
  return SYNCLINE_MADE(stack({x, y}, axis));
}

Built permute_line(Choices& c) {
  const Expr x = any_of(c);
  const std::vector<int> pattern = c.permutation("pattern", x.ndim());
  return SYNCLINE_MADE(permute_dimensions(x, pattern));
}

Built pad_line(Choices& c) {
  const Expr x = any_of(c, 1);
  const auto before = c.integers("before", x.ndim(), 0, 2), after = c.integers("after", x.ndim(), 0, 2);
  if (c.flag("away")) return SYNCLINE_MADE(trim(x, before, after));
  return SYNCLINE_MADE(pad(x, before, after));
}

Built padding_line(Choices& c) {
  const std::string format = c.word("format", {"channels_last", "channels_first"});
  const auto a = static_cast<int>(c.integer("a", 0, 2)), b = static_cast<int>(c.integer("b", 0, 2));
  switch (c.integer("way", 0, 2)) {
    case 0: {
      const Expr x = any_of(c, 3, 3);
      return SYNCLINE_MADE(temporal_padding(x, {a, b}));
    }
    case 1: {
      const Expr x = any_of(c, 4, 4);
      return SYNCLINE_MADE(spatial_2d_padding(x, {{{a, b}, {b, a}}}, format));
    }
    default: {
      const Expr x = c.fresh("x", c.floatx(), Shape{2, 2, 1, 3, 2});
      return SYNCLINE_MADE(spatial_3d_padding(x, {{{a, b}, {b, a}, {a, 1}}}, format));
    }
  }
}

Built resize_line(Choices& c) {
  const std::string format = c.word("format", {"channels_last", "channels_first"});
  const auto a = static_cast<int>(c.integer("a", 1, 3)), b = static_cast<int>(c.integer("b", 1, 3));
  if (c.integer("way", 0, 3) == 0) {
    const Expr x = c.fresh("x", c.floatx(), Shape{c.integer("n", 0, 2), 2, 1, 3, 2});
    return SYNCLINE_MADE(resize_volumes(x, a, b, 2, format));
  }
  const Expr x = c.floating("x", 4, 4);
  const std::string how = c.word("how", {"nearest", "bilinear"});
  return SYNCLINE_MADE(resize_images(x, a, b, format, how));
}

Built repeat_line(Choices& c) {
  const Expr x = any_of(c, 1, 3);
  const auto n = c.integer("n", 0, 3);
  switch (c.integer("way", 0, 3)) {
    case 0: {
      const int axis = c.axis("axis", x);
      return SYNCLINE_MADE(repeat_elements(x, static_cast<int>(n), axis));
    }
    case 1: return SYNCLINE_MADE(repeat(x, n));
    case 2: return SYNCLINE_MADE(tile(x, Dims{dim(x, 0), n}));
    default: {
      const auto copies = c.integers("copies", x.ndim(), 0, 3);
      return SYNCLINE_MADE(tile(x, Dims(copies)));
    }
  }
}

Built broadcast_line(Choices& c) {
  const Expr x = any_of(c, 1);
  const Expr y = c.broadcasting("y", x);
  return SYNCLINE_MADE(broadcast_like(y, x));
}

Built reshape_like_line(Choices& c) {
  const Expr x = any_of(c, 1, 3);
  std::vector<std::int64_t> dims(x.shape().begin(), x.shape().end());
  std::reverse(dims.begin(), dims.end());
  const Expr like = c.of_shape("like", Type::kAny, Shape(dims));
  return SYNCLINE_MADE(reshape_like(x, like));
}

Built one_hot_line(Choices& c) {
  const auto classes = c.integer("classes", 1, 5);
  const Expr x = c.operand("x", Type::kInteger, 0, 2);
  return SYNCLINE_MADE(one_hot(x, classes));
}

Built arange_line(Choices& c) {
  const auto start = c.integer("start", -3, 3), stop = c.integer("stop", -3, 7), step = c.integer("step", -2, 3);
  const DType dtype = c.dtype("dtype", {DType::kInt32, DType::kFloat32, DType::kInt64, DType::kFloat64});
  return SYNCLINE_MADE(arange(start, stop, step, dtype));
}

Built filled_line(Choices& c) {
  const Expr x = any_of(c, 1);
  const double value = c.number("value", {0, 1, 0.5});
  const DType dtype = c.dtype("dtype", {DType::kFloat32, DType::kFloat64});
  if (c.flag("like")) return SYNCLINE_MADE(fill(Dims{dim(x, 0), 2}, value, dtype));
  return SYNCLINE_MADE(fill(dims_of(x), value, dtype));
}

#define MOVED(function, least, most)                 \
  {                                                  \
#function, [](Choices& c) {                        \
      const Expr x = any_of(c, least, most);           \
      return SYNCLINE_MADE(function(x));               \
    } \
  }

}  // namespace

std::vector<Entry> shape_entries() {
  return {
      MOVED(flatten, 0, 4),
      MOVED(batch_flatten, 2, 4),
      MOVED(transpose, 0, 4),
      {"reshape", &reshape_line},
      {"slice_axis", &slice_axis_line},
      {"slice", &slice_line},
      {"index", &index_line, 8},
      {"tail", &tail_line, 4},
      {"picked_rows", &picked_rows_line, 2},
      {"mask", &mask_line, 4},
      {"counted", &counted_line, 2},
      {"concatenate", &concatenate_line, 6},
      {"stack", &stack_line, 3},
      {"permute_dimensions", &permute_line},
      {"pad", &pad_line},
      {"padding", &padding_line, 3},
      {"resize", &resize_line, 5},
      {"repeat", &repeat_line},
      {"broadcast_like", &broadcast_line},
      {"reshape_like", &reshape_like_line},
      {"one_hot", &one_hot_line},
      {"arange", &arange_line, 1},
      {"fill", &filled_line, 2},
      {"expand_dims",
       [](Choices& c) {
         const Expr x = any_of(c, 0, 3);
         const int axis = static_cast<int>(c.integer("axis", -x.ndim() - 1, x.ndim()));
         return SYNCLINE_MADE(expand_dims(x, axis));
       }},
      {"squeeze",
       [](Choices& c) {
         const Expr x = any_of(c, 1);
         const int axis = c.axis("axis", x);
         return SYNCLINE_MADE(squeeze(x, axis));
       },
       3},
      {"reverse",
       [](Choices& c) {
         const Expr x = any_of(c, 1);
         const std::vector<int> axes = c.axes("axes", x);
         return SYNCLINE_MADE(reverse(x, axes));
       }},
      {"diagonal_of_ones",
       [](Choices& c) {
         const auto n = c.integer("n", 0, 5);
         const DType dtype = c.any_dtype("dtype");
         return SYNCLINE_MADE(diagonal_of_ones(n, 3, dtype));
       },
       1},
  };
}

}  // namespace syncline::graphs
