// Convolutions and pooling.
#include "tests/graphs/reference.h"
#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

const std::vector<std::string> kFormats{"channels_last", "channels_last", "channels_first"};
const std::vector<std::string> kPaddings{"valid", "same"};

int small(Choices& c, const char* name, int high) { return static_cast<int>(c.integer(name, 1, high)); }

// A small image, sometimes one that is large enough for every algorithm.
Expr image(Choices& c, int space) {
  if (c.integer("old", 0, 1) == 0) return c.floating("x", space + 2, space + 2);
  Shape shape{c.integer("images", 0, 4)};
  const bool large = c.integer("large", 0, 9) == 0;
  for (int i = 0; i < space; ++i) shape.push_back(c.integer("size", 1, large ? 20 : 6));
  shape.push_back(c.integer("channels", 1, large ? 17 : 4));
  return c.fresh("x", c.floatx(), shape);
}

std::int64_t channels_of(const Expr& x, const std::string& format) {
  return format == "channels_first" ? x.shape()[1] : x.shape().back();
}

Built conv1d_line(Choices& c) {
  const Expr x = image(c, 1);
  const std::string format = c.word("format", kFormats), padding = c.word("padding", {"valid", "same", "causal"});
  const auto k = c.integer("k", 1, 3), n = c.integer("n", 1, 5);
  const int s = small(c, "s", 2), d = small(c, "d", 2);
  const Expr kernel = c.of_meta("kernel", {x.dtype(), Shape{k, channels_of(x, format), n}});
  return SYNCLINE_MADE(
      conv1d(x, kernel, {.strides = s, .padding = padding, .data_format = format, .dilation_rate = d}));
}

Built conv2d_line(Choices& c) {
  const Expr x = image(c, 2);
  const std::string format = c.word("format", kFormats), padding = c.word("padding", kPaddings);
  const auto k = c.integer("k", 1, 3), l = c.integer("l", 1, 3), n = c.integer("n", 1, 17);
  const int s = small(c, "s", 2), t = small(c, "t", 2), d = small(c, "d", 2);
  const Expr kernel = c.of_meta("kernel", {x.dtype(), Shape{k, l, channels_of(x, format), n}});
  if (c.flag("plain")) return SYNCLINE_MADE(conv2d(x, kernel, {.padding = padding, .data_format = format}));
  return SYNCLINE_MADE(
      conv2d(x, kernel, {.strides = {s, t}, .padding = padding, .data_format = format, .dilation_rate = {d, 1}}));
}

// Enough tiles and channels for Winograd, with work for several threads; sometimes a kernel whose planes exceed the
// cache. Ranks then have one of two images, so their sums differ.
Built large_conv_line(Choices& c) {
  const bool wide = c.integer("wide", 0, 2) == 0;
  const auto size = wide ? 13 : c.integer("size", 9, 20);
  const auto channels = wide ? c.integer("channels", 80, 100) : c.integer("channels", 16, 33);
  const auto n = wide ? c.integer("n", 7281 / channels + 1, 100) : c.integer("n", 16, 33);
  const std::string padding = c.word("padding", kPaddings);
  const Expr x = c.large("x", Shape{wide ? 2 : c.integer("images", 1, 3), size, size + 1, channels});
  const Expr kernel = c.large("kernel", Shape{3, 3, channels, n});
  if (c.flag("forward")) return SYNCLINE_CHECKED(&check_conv2d, conv2d(x, kernel, {.padding = padding}));
  const Expr dy = c.large("dy", conv2d(x, kernel, {.padding = padding}).shape());
  return SYNCLINE_CHECKED(
      &check_conv2d_gradient,
      slice_axis(gradients(sum(conv2d(x, kernel, {.padding = padding}) * dy), std::vector<Expr>{kernel})[0], 0, 1, 1));
}

Built conv3d_line(Choices& c) {
  const Expr x = image(c, 3);
  const std::string format = c.word("format", kFormats), padding = c.word("padding", kPaddings);
  const auto k = c.integer("k", 1, 2), l = c.integer("l", 1, 3), n = c.integer("n", 1, 4);
  const int s = small(c, "s", 2);
  const Expr kernel = c.of_meta("kernel", {x.dtype(), Shape{k, l, 2, channels_of(x, format), n}});
  return SYNCLINE_MADE(conv3d(x, kernel, {.strides = {s, 1, s}, .padding = padding, .data_format = format}));
}

Built transpose_line(Choices& c) {
  const std::string format = c.word("format", kFormats), padding = c.word("padding", kPaddings);
  const auto k = c.integer("k", 1, 3), n = c.integer("n", 1, 4);
  const int s = small(c, "s", 2);
  const bool first = format == "channels_first";
  if (c.integer("volume", 0, 2) == 0) {
    const Expr x = image(c, 3);
    const Expr kernel = c.of_meta("kernel", {x.dtype(), Shape{k, 2, k, n, channels_of(x, format)}});
    const Shape out =
        first ? Shape{kUnknown, n, kUnknown, kUnknown, kUnknown} : Shape{kUnknown, kUnknown, kUnknown, kUnknown, n};
    c.call("out", first ? join_text("Shape{-1, ", n, ", -1, -1, -1}") : join_text("Shape{-1, -1, -1, -1, ", n, "}"));
    return SYNCLINE_MADE(
        conv3d_transpose(x, kernel, out, {.strides = {s, 1, s}, .padding = padding, .data_format = format}));
  }
  const Expr x = image(c, 2);
  const Expr kernel = c.of_meta("kernel", {x.dtype(), Shape{k, k, n, channels_of(x, format)}});
  const Shape out = first ? Shape{kUnknown, n, kUnknown, kUnknown} : Shape{kUnknown, kUnknown, kUnknown, n};
  c.call("out", first ? join_text("Shape{-1, ", n, ", -1, -1}") : join_text("Shape{-1, -1, -1, ", n, "}"));
  return SYNCLINE_MADE(
      conv2d_transpose(x, kernel, out, {.strides = {s, s}, .padding = padding, .data_format = format}));
}

Built depthwise_line(Choices& c) {
  const Expr x = image(c, 2);
  const std::string format = c.word("format", kFormats), padding = c.word("padding", kPaddings);
  const auto k = c.integer("k", 1, 3), m = c.integer("m", 1, 3), n = c.integer("n", 1, 4);
  const int s = small(c, "s", 2);
  const std::int64_t channels = channels_of(x, format);
  const Expr kernel = c.of_meta("kernel", {x.dtype(), Shape{k, k, channels, m}});
  if (c.flag("plain"))
    return SYNCLINE_MADE(depthwise_conv2d(x, kernel, {.strides = {s, s}, .padding = padding, .data_format = format}));
  const Expr point = c.of_meta("point", {x.dtype(), Shape{1, 1, channels * m, n}});
  return SYNCLINE_MADE(
      separable_conv2d(x, kernel, point, {.strides = {s, s}, .padding = padding, .data_format = format}));
}

Built separable1d_line(Choices& c) {
  const Expr x = image(c, 1);
  const std::string format = c.word("format", kFormats), padding = c.word("padding", {"valid", "same", "causal"});
  const auto k = c.integer("k", 1, 3), m = c.integer("m", 1, 2), n = c.integer("n", 1, 3);
  const std::int64_t channels = channels_of(x, format);
  const Expr kernel = c.of_meta("kernel", {x.dtype(), Shape{k, channels, m}});
  const Expr point = c.of_meta("point", {x.dtype(), Shape{1, channels * m, n}});
  return SYNCLINE_MADE(separable_conv1d(x, kernel, point, {.padding = padding, .data_format = format}));
}

Built local_line(Choices& c) {
  const bool flat = c.flag("flat");
  const Expr x = image(c, flat ? 1 : 2);
  const int k = small(c, "k", 3), s = small(c, "s", 2);
  const auto n = c.integer("n", 1, 4);
  const std::string format = c.word("format", {"channels_last", "channels_first"});
  const bool first = format == "channels_first";
  const std::int64_t rows = x.shape()[first ? 2 : 1], channels = channels_of(x, format);
  Choices::require(rows >= k);
  const int high = static_cast<int>((rows - k) / s + 1);
  if (flat) {
    const Expr kernel = c.of_meta("kernel", {x.dtype(), Shape{high, k * channels, n}});
    return SYNCLINE_MADE(local_conv1d(x, kernel, k, s, format));
  }
  const std::int64_t columns = x.shape()[first ? 3 : 2];
  Choices::require(columns >= 1);
  const int wide = static_cast<int>(columns);
  const Expr kernel = c.of_meta("kernel", {x.dtype(), Shape{high * wide, k * channels, n}});
  c.call("high", std::to_string(high));
  c.call("wide", std::to_string(wide));
  return SYNCLINE_MADE(local_conv2d(x, kernel, {k, 1}, {s, 1}, {high, wide}, format));
}

Built pool_line(Choices& c) {
  const std::string format = c.word("format", kFormats), padding = c.word("padding", kPaddings);
  const std::string mode = c.word("mode", {"max", "avg"});
  const int a = small(c, "a", 3), b = small(c, "b", 3), s = small(c, "s", 3), t = small(c, "t", 2);
  if (c.integer("volume", 0, 2) == 0) {
    const Expr x = image(c, 3);
    return SYNCLINE_MADE(
        pool3d(x, {a, b, 2}, {.strides = {s, t, 1}, .padding = padding, .data_format = format, .pool_mode = mode}));
  }
  const Expr x = image(c, 2);
  if (c.integer("squared", 0, 3) > 0)  // its gradient has a gradient
    return SYNCLINE_MADE(
        square(pool2d(x, {a, b}, {.strides = {s, t}, .padding = padding, .data_format = format, .pool_mode = mode})));
  return SYNCLINE_MADE(
      pool2d(x, {a, b}, {.strides = {s, t}, .padding = padding, .data_format = format, .pool_mode = mode}));
}

}  // namespace

std::vector<Entry> window_entries() {
  return {{"conv1d", &conv1d_line, 4},
          {"conv2d", &conv2d_line, 7},
          {"large_conv", &large_conv_line, 2, 0},
          {"conv3d", &conv3d_line, 3},
          {"conv_transpose", &transpose_line, 7},
          {"depthwise", &depthwise_line, 5},
          {"separable_conv1d", &separable1d_line, 3},
          {"local", &local_line, 6},
          {"pool", &pool_line, 18}};
}

}  // namespace syncline::graphs
