// Functions that rearrange elements: views, permutations, joining, cutting, repeating; and small tensors made from
// numbers. Axes may be negative. All take every dtype and throw ShapeError or ValueError while the graph is built;
// source of meanings: Keras 2 backend documentation, sections on shape operations.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "syncline/axes.h"
#include "syncline/config.h"
#include "syncline/dims.h"
#include "syncline/dtype.h"
#include "syncline/expr.h"

namespace syncline {

// ---- views: the same elements in the same order ----
// At most one entry of `shape` may be -1: it takes what is left.
Expr reshape(const Expr& x, const Dims& shape);
// x in the shape of `like`, which may be unknown yet.
Expr reshape_like(const Expr& x, const Expr& like);
// A new axis of one element, at `axis` of the result.
Expr expand_dims(const Expr& x, int axis = -1);
// Drops an axis of one element.
Expr squeeze(const Expr& x, int axis);
Expr flatten(const Expr& x);        // one axis
Expr batch_flatten(const Expr& x);  // two axes: the first, and all others

// ---- order ----
Expr permute_dimensions(const Expr& x, std::vector<int> pattern);
Expr transpose(const Expr& x);  // all axes reversed
Expr reverse(const Expr& x, Axes axes);

// ---- joining and cutting ----
// Of sparse tensors only: sparse. If some are sparse, they are made dense.
Expr concatenate(std::vector<Expr> tensors, int axis = -1);
Expr stack(const std::vector<Expr>& tensors, int axis = 0);
// x[start[0] : start[0] + size[0], ...]; a size of -1 reaches to the end. One entry an axis.
Expr slice(const Expr& x, const Dims& start, const Dims& size);
// x[start : stop : step], as NumPy reads it: bounds may be absent, negative (from the end) or outside; step may be
// negative, but not 0.
struct Range {
  std::optional<Dim> start{}, stop{};
  std::int64_t step = 1;
};
struct NewAxis {};   // adds an axis of one element
struct Ellipsis {};  // stands for all axes that no other subscript names
// A number takes one element, negative from the end, and drops the axis. A tensor of integers takes the elements that
// it numbers from 0; its axes come in place of that axis, and a number outside throws ValueError when the step runs. A
// mask, a tensor of bool, stands for as many axes as it has, and takes the elements where it is true, along one axis.
using Subscript = std::variant<std::int64_t, Range, NewAxis, Ellipsis, Expr>;
// x[subscripts...]: index(x, {Ellipsis{}, Range{1, -1}, -1}). Axes that are not named are taken whole. Throws
// ValueError for a number outside the axis and for too many subscripts, ShapeError for a mask that does not fit, and
// DTypeError for a tensor of other dtypes.
Expr index(const Expr& x, const std::vector<Subscript>& subscripts);
// Elements [start, start + size) along one axis.
Expr slice_axis(const Expr& x, int axis, std::int64_t start, std::int64_t size);
// x without its first before[i] and last after[i] elements along axis i: what undoes `pad`.
Expr trim(const Expr& x, std::vector<std::int64_t> before, std::vector<std::int64_t> after);
// Zeros around x: `before` and `after` have one entry an axis.
Expr pad(const Expr& x, std::vector<std::int64_t> before, std::vector<std::int64_t> after);
// Zeros around the space of images: before and after each of its axes. data_format is "channels_last" or
// "channels_first" (the configuration's unless given); anything else is a ValueError. temporal_padding pads the middle
// axis of (batch, time, features).
using Pads = std::pair<int, int>;
Expr temporal_padding(const Expr& x, Pads padding = {1, 1});
Expr spatial_2d_padding(const Expr& x, const std::array<Pads, 2>& padding = {{{1, 1}, {1, 1}}},
                        std::string_view data_format = current_config().image_data_format);
Expr spatial_3d_padding(const Expr& x, const std::array<Pads, 3>& padding = {{{1, 1}, {1, 1}, {1, 1}}},
                        std::string_view data_format = current_config().image_data_format);

// ---- repeating ----
// y in the shape that x has, by NumPy's broadcasting; x contributes its shape only.
Expr broadcast_like(const Expr& y, const Expr& x);
Expr repeat_elements(const Expr& x, int rep, int axis);  // each element `rep` times in a row
Expr repeat(const Expr& x, const Dim& n);                // (samples, dim) -> (samples, n, dim)
// Images, and volumes, enlarged by whole factors (1 or more), else ValueError. "nearest" repeats elements, any dtype.
// "bilinear" is for floating x, and is Keras 2's: element i of the result lies at i / factor of x, and beyond the last
// element x does not change.
Expr resize_images(const Expr& x, int height_factor, int width_factor, std::string_view data_format,
                   std::string_view interpolation = "nearest");
Expr resize_volumes(const Expr& x, int depth_factor, int height_factor, int width_factor, std::string_view data_format);
// n[i] copies of x along axis i, one after the other; fewer entries than axes belong to the last axes.
Expr tile(const Expr& x, const Dims& n);

// ---- from numbers ----
// (..., num_classes) of float32: 1 at the index, zeros if it is out of range. indices: any integer dtype.
Expr one_hot(const Expr& indices, const Dim& num_classes);
// start, start + step, ... below stop (above, if step is negative).
Expr arange(double start, double stop, double step = 1, DType dtype = DType::kInt32);
Expr arange(double stop, DType dtype = DType::kInt32);
// The same with tensors among the numbers.
Expr arange(const Dim& start, const Dim& stop, const Dim& step = 1, DType dtype = DType::kInt32);
Expr arange(const Dim& stop, DType dtype = DType::kInt32);
// A matrix with ones on its diagonal.
Expr diagonal_of_ones(std::int64_t rows, std::int64_t columns, DType dtype);

}  // namespace syncline
