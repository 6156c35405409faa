// Functions that rearrange elements (views, permutations, joining, cutting, repeating), and small tensors made from
// numbers. Axes may be negative. All take every dtype and throw ShapeError or ValueError while the graph is built.
// Semantics: Keras 2 backend documentation, sections on shape operations.
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

#pragma GCC visibility push(default)
namespace syncline {

// ---- views: the same elements in the same order ----
// At most one entry of `shape` may be -1; its size follows from the others.
Expr reshape(const Expr& x, const Dims& shape);
// x in the shape of `like`, which may be unknown yet.
Expr reshape_like(const Expr& x, const Expr& like);
// Inserts an axis of size 1 at position `axis` of the result.
Expr expand_dims(const Expr& x, int axis = -1);
// Removes an axis of size 1.
Expr squeeze(const Expr& x, int axis);
Expr flatten(const Expr& x);        // one axis
Expr batch_flatten(const Expr& x);  // two axes: the first, and all others

// ---- order ----
Expr permute_dimensions(const Expr& x, std::vector<int> pattern);
Expr transpose(const Expr& x);  // all axes reversed
Expr reverse(const Expr& x, Axes axes);

// ---- joining and cutting ----
// Sparse if all tensors are sparse; otherwise sparse tensors are made dense.
Expr concatenate(std::vector<Expr> tensors, int axis = -1);
Expr stack(const std::vector<Expr>& tensors, int axis = 0);
// x[start[0] : start[0] + size[0], ...]; a size of -1 reaches to the end. One entry per axis.
Expr slice(const Expr& x, const Dims& start, const Dims& size);
// x[start : stop : step], as in NumPy: bounds may be absent, negative (from the end) or out of range; step may be
// negative, but not 0.
struct Range {
  std::optional<Dim> start{}, stop{};
  std::int64_t step = 1;
};
struct NewAxis {};   // inserts an axis of size 1
struct Ellipsis {};  // all axes that no other subscript names
// A number or scalar tensor takes one element (negative: from the end) and removes the axis. A tensor of integers takes
// the elements with these indices; its axes replace that axis. An index out of range throws ValueError when the step
// runs. A mask, a bool tensor, covers as many axes as it has, and takes the elements where it is true, along one axis.
using Subscript = std::variant<std::int64_t, Range, NewAxis, Ellipsis, Expr>;
// x[subscripts...]: index(x, {Ellipsis{}, Range{1, -1}, -1}). Axes without a subscript are taken whole. Throws
// ValueError for a number out of range and for too many subscripts, ShapeError for a mask that does not fit, and
// DTypeError for a tensor of other dtypes.
Expr index(const Expr& x, const std::vector<Subscript>& subscripts);
// Elements [start, start + size) along one axis.
Expr slice_axis(const Expr& x, int axis, std::int64_t start, std::int64_t size);
// x without the first before[i] and last after[i] elements along axis i: the inverse of `pad`.
Expr trim(const Expr& x, std::vector<std::int64_t> before, std::vector<std::int64_t> after);
// Adds zeros around x: `before` and `after` have one entry per axis.
Expr pad(const Expr& x, std::vector<std::int64_t> before, std::vector<std::int64_t> after);
// Adds zeros before and after each spatial axis of images. data_format is "channels_last" or "channels_first" (default:
// the configuration's); others throw ValueError. temporal_padding pads the middle axis of (batch, time, features).
using Pads = std::pair<int, int>;
Expr temporal_padding(const Expr& x, Pads padding = {1, 1});
Expr spatial_2d_padding(const Expr& x, const std::array<Pads, 2>& padding = {{{1, 1}, {1, 1}}},
                        std::string_view data_format = current_config().image_data_format);
Expr spatial_3d_padding(const Expr& x, const std::array<Pads, 3>& padding = {{{1, 1}, {1, 1}, {1, 1}}},
                        std::string_view data_format = current_config().image_data_format);

// ---- repeating ----
// y broadcast to x's shape by NumPy's rule; x contributes its shape only.
Expr broadcast_like(const Expr& y, const Expr& x);
Expr repeat_elements(const Expr& x, int rep, int axis);  // each element `rep` times in a row
Expr repeat(const Expr& x, const Dim& n);                // (samples, dim) -> (samples, n, dim)
// Enlarges images or volumes by whole factors of at least 1, otherwise ValueError. "nearest" repeats elements of any
// dtype. "bilinear" takes floating x and follows Keras 2: element i of the result lies at i / factor of x, and beyond
// the last element x is constant.
Expr resize_images(const Expr& x, int height_factor, int width_factor, std::string_view data_format,
                   std::string_view interpolation = "nearest");
Expr resize_volumes(const Expr& x, int depth_factor, int height_factor, int width_factor, std::string_view data_format);
// n[i] copies of x along axis i; with fewer entries than axes they belong to the last axes.
Expr tile(const Expr& x, const Dims& n);

// ---- from numbers ----
// float32 (..., num_classes): 1 at the index, all zeros if the index is out of range. indices: any integer dtype.
Expr one_hot(const Expr& indices, const Dim& num_classes);
// start, start + step, ... up to but excluding stop; step may be negative.
Expr arange(double start, double stop, double step = 1, DType dtype = DType::kInt32);
Expr arange(double stop, DType dtype = DType::kInt32);
// Variants that accept tensors.
Expr arange(const Dim& start, const Dim& stop, const Dim& step = 1, DType dtype = DType::kInt32);
Expr arange(const Dim& stop, DType dtype = DType::kInt32);
// A matrix with ones on its diagonal.
Expr diagonal_of_ones(std::int64_t rows, std::int64_t columns, DType dtype);

}  // namespace syncline
#pragma GCC visibility pop
