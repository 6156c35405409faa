// Losses, normalization, connectionist temporal classification, random tensors.
#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

Built crossentropy_line(Choices& c) {
  const bool logits = c.flag("logits");
  const Expr x = c.floating("x", 1, 3);
  const Expr y = c.like("y", x);
  const int axis = c.axis("axis", x);
  if (c.flag("binary"))
    return c.made(binary_crossentropy(y, x, {.from_logits = logits, .epsilon = 1e-3}),
                  "binary_crossentropy(y, x, {.from_logits = logits != 0, .epsilon = 1e-3})");
  return c.made(categorical_crossentropy(y, x, {.from_logits = logits, .axis = axis, .epsilon = 1e-3}),
                "categorical_crossentropy(y, x, {.from_logits = logits != 0, .axis = axis, .epsilon = 1e-3})");
}

Shape without(Shape shape, int axis) {
  shape.erase(axis < 0 ? axis + shape.ndim() : axis);
  return shape;
}

Built sparse_crossentropy_line(Choices& c) {
  const bool logits = c.flag("logits");
  const Expr x = c.floating("x", 1, 3);
  const int axis = c.axis("axis", x);
  const std::int64_t classes = x.shape()[axis < 0 ? axis + x.ndim() : axis];
  const Expr y = c.fresh("y", DType::kInt32, without(x.shape(), axis), Pool::kIndex, classes);
  if (c.integer("picks", 0, 2) == 0) return SYNCLINE_MADE(gather_along_axis(x, y, axis));
  return c.made(sparse_categorical_crossentropy(y, x, {.from_logits = logits, .axis = axis, .epsilon = 1e-3}),
                "sparse_categorical_crossentropy(y, x, {.from_logits = logits != 0, .axis = axis, .epsilon = 1e-3})");
}

Built top_k_line(Choices& c) {
  const Expr x = c.floating("x", 2, 2);
  const Expr y = c.fresh("y", DType::kInt32, Shape{x.shape()[0]}, Pool::kIndex, x.shape()[1] + 1);
  const int k = static_cast<int>(c.integer("k", 1, 3));
  return SYNCLINE_MADE(in_top_k(x, y, k));
}

Built batch_normalization_line(Choices& c) {
  const Expr x = c.floating("x", 2, 4);
  const Shape channels{x.shape().back()};
  const Expr mean = c.of_shape("mean", Type::kFloating, channels), beta = c.of_shape("beta", Type::kFloating, channels);
  const Expr gamma = c.of_shape("gamma", Type::kFloating, channels);
  const Expr var = c.fresh("var", c.floatx(), channels, Pool::kPositive);
  if (c.flag("bare")) return SYNCLINE_MADE(batch_normalization(x, mean, var, Expr(), Expr(), -1, 0.01));
  return SYNCLINE_MADE(batch_normalization(x, mean, var, beta, gamma, -1, 0.01));
}

Built normalize_line(Choices& c) {
  const Expr x = c.floating("x", 2, 4);
  const Shape channels{x.shape().back()};
  const Expr gamma = c.of_meta("gamma", {x.dtype(), channels}), beta = c.of_meta("beta", {x.dtype(), channels});
  std::vector<int> axes;
  for (int i = 0; i + 1 < x.ndim(); ++i) axes.push_back(i);
  c.call("axes", x.ndim() == 2 ? "{0}" : x.ndim() == 3 ? "{0, 1}" : "{0, 1, 2}");
  switch (c.integer("way", 0, 2)) {
    case 0: return SYNCLINE_MADE(normalize_batch_in_training(x, gamma, beta, axes, 0.01).normalized);
    case 1: return SYNCLINE_MADE(normalize_batch_in_training(x, gamma, beta, axes, 0.01).variance);
    default: return SYNCLINE_MADE(normalize_batch_in_training(x, Expr(), Expr(), axes, 0.01).normalized);
  }
}

Built bias_line(Choices& c) {
  const Expr x = c.floating("x", 2, 4);
  const std::string format = c.word("format", {"channels_last", "channels_first"});
  const bool first = format == "channels_first" && x.ndim() > 2;
  Shape shape{first ? x.shape()[1] : x.shape().back()};
  if (c.integer("whole", 0, 3) == 0) {
    std::vector<std::int64_t> dims(x.shape().begin() + 1, x.shape().end());
    if (first) {
      dims.push_back(dims.front());
      dims.erase(dims.begin());
    }
    shape = Shape(dims);
  }
  const Expr bias = c.of_meta("bias", {x.dtype(), shape});
  return SYNCLINE_MADE(bias_add(x, bias, format));
}

Built ctc_line(Choices& c) {
  const auto n = c.integer("n", 0, 4), time = c.integer("time", 4, 6), classes = c.integer("classes", 2, 5);
  const Expr y = c.fresh("y", c.floatx(), Shape{n, time, classes}, Pool::kProbability);
  const Expr steps = c.fresh("steps", DType::kInt32, Shape{n, 1}, Pool::kIndex, 1);
  switch (c.integer("way", 0, 3)) {
    case 0: {
      const Expr lengths = c.fresh("lengths", DType::kInt32, Shape{n, 1}, Pool::kIndex, 3);
      const Expr labels = c.fresh("labels", DType::kInt32, Shape{n, 2}, Pool::kIndex, classes - 1);
      return SYNCLINE_MADE(ctc_batch_cost(labels, y, steps + 4.0, lengths));
    }
    case 1: return SYNCLINE_MADE(ctc_decode(y, steps + 4.0).decoded[0]);
    case 2: return SYNCLINE_MADE(ctc_decode(y, steps + 4.0).log_probability);
    default:
      return SYNCLINE_MADE(ctc_decode(y, steps + 4.0, {.greedy = false, .beam_width = 6, .top_paths = 2}).decoded[1]);
  }
}

// Random lines stand in bodies too. An iteration's numbers are compared between plans only: op by op, a loop is a plan
// of its own.
Built random_line(Choices& c) {
  const Expr x = c.floating("x", 1);
  const RandomKey key = c.key("key");
  const DType dtype = c.dtype("dtype", {DType::kFloat32, DType::kFloat64, DType::kFloat16});
  switch (c.integer("way", 0, 7)) {
    case 0: return SYNCLINE_MADE(random_uniform_like(x, key, {.dtype = dtype}));
    case 1: return SYNCLINE_MADE(random_normal_like(x, key, {.dtype = dtype}));
    case 2: return SYNCLINE_MADE(truncated_normal_like(x, key, {.dtype = dtype}));
    case 3: return SYNCLINE_MADE(random_binomial_like(x, key, {.p = 0.4, .dtype = dtype}));
    case 4: return SYNCLINE_MADE(random_uniform(Dims{dim(x, 0), 3}, key, {.dtype = dtype}));
    case 5: return SYNCLINE_MADE(dropout_mask(x, 0.4, key));
    default: return SYNCLINE_MADE(dropout(x, 0.4, key));
  }
}

// Parameters that a step computes; sigmoid keeps probabilities in their bounds.
Built random_of_tensors_line(Choices& c) {
  const Expr x = c.floating("x", 1, 3);
  const Expr level = sigmoid(c.floating("level", 0, 0)) * 0.9;
  c.call("level", "(sigmoid(" + c.text("level") + ") * 0.9)");
  const RandomKey key = c.key("key");
  const Expr last = c.of_meta("last", {x.dtype(), Shape{3}});
  switch (c.integer("way", 0, 4)) {
    case 0: return SYNCLINE_MADE(dropout(x, cast(level, x.dtype()), key));
    case 1:
      return SYNCLINE_MADE(random_normal(Dims{dim(x, 0), 3}, key, last, exp(minimum(last, scalar_like(3, last)))));
    case 2: return SYNCLINE_MADE(random_uniform(Dims{dim(x, 0), 3}, key, last, last + 2.0));
    case 3: return SYNCLINE_MADE(truncated_normal(Dims{dim(x, 0), 3}, key, last, last * last));
    default: return SYNCLINE_MADE(random_binomial(Dims{dim(x, 0), 3}, key, level, x.dtype()));
  }
}

}  // namespace

std::vector<Entry> network_entries() {
  return {{"crossentropy", &crossentropy_line, 6},
          {"sparse_crossentropy", &sparse_crossentropy_line, 8},
          {"in_top_k", &top_k_line, 3},
          {"batch_normalization", &batch_normalization_line, 4},
          {"normalize_batch_in_training", &normalize_line, 6},
          {"bias_add", &bias_line, 6},
          {"ctc", &ctc_line, 8, 0},
          {"random", &random_line, 12},
          {"random_of_tensors", &random_of_tensors_line, 6}};
}

}  // namespace syncline::graphs
