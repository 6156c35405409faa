#include "examples/models.h"

#include <cmath>

#include "syncline/backend/config.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"

namespace syncline::examples {
namespace {

// Keras's default initial value of a kernel: uniform within sqrt(6 / (fan_in + fan_out)).
Variable glorot_uniform(const Shape& shape, const std::string& name) {
  const std::int64_t receptive = shape.product(0, shape.ndim() - 2);
  const auto fans = static_cast<double>(receptive * (shape[shape.ndim() - 2] + shape.back()));
  const double limit = std::sqrt(6.0 / fans);
  return random_uniform_variable(shape, -limit, limit, {.name = name});
}

Expr with_weights(Model& model, const std::string& name, const Shape& kernel, Expr (*op)(const Expr&, const Expr&),
                  const Expr& x) {
  const Variable w = glorot_uniform(kernel, name + "/kernel"), b = zeros({kernel.back()}, {.name = name + "/bias"});
  model.layers.push_back({name, {w, b}});
  return bias_add(op(x, w), b);
}

Expr dense(Model& model, const std::string& name, const Expr& x, int units) {
  return with_weights(model, name, {x.shape().back(), units}, &dot, x);
}

Expr conv3x3(Model& model, const std::string& name, const Expr& x, int filters) {
  auto op = [](const Expr& image, const Expr& kernel) { return conv2d(image, kernel); };
  return with_weights(model, name, {3, 3, x.shape().back(), filters}, op, x);
}

Expr dropout_in_training(const Expr& x, double level) { return in_train_phase(dropout(x, level), x); }

}  // namespace

std::vector<Variable> Model::weights() const {
  std::vector<Variable> all;
  for (const NamedLayer& layer : layers) all.insert(all.end(), layer.weights.begin(), layer.weights.end());
  return all;
}

Model softmax_regression(const Expr& x, int classes) {
  Model model;
  model.logits = dense(model, "dense_1", batch_flatten(x), classes);
  return model;
}

Model mlp(const Expr& x, const std::vector<int>& units, double dropout_level, int classes) {
  Model model;
  Expr y = batch_flatten(x);
  for (const int n : units) {
    y = relu(dense(model, "dense_" + std::to_string(model.layers.size() + 1), y, n));
    if (dropout_level > 0) y = dropout_in_training(y, dropout_level);
  }
  model.logits = dense(model, "dense_" + std::to_string(model.layers.size() + 1), y, classes);
  return model;
}

Model cnn(const Expr& x, int classes) {
  Model model;
  Expr y = expand_dims(x, -1);
  y = relu(conv3x3(model, "conv2d_1", y, 32));
  y = relu(conv3x3(model, "conv2d_2", y, 64));
  y = dropout_in_training(pool2d(y, {2, 2}, {.strides = {2, 2}}), 0.25);
  y = relu(dense(model, "dense_1", batch_flatten(y), 128));
  model.logits = dense(model, "dense_2", dropout_in_training(y, 0.5), classes);
  return model;
}

Model make_model(const std::string& name, const Expr& x) {
  if (name == "softmax") return softmax_regression(x);
  if (name == "mlp") return mlp(x, {512, 512}, 0.2);
  if (name == "cnn") return cnn(x);
  fail<ValueError>("unknown model '", name, "'; use softmax, mlp or cnn");
}

Expr mean_loss(const Expr& labels, const Expr& logits) {
  return mean(sparse_categorical_crossentropy(labels, logits, {.from_logits = true}));
}

Expr accuracy(const Expr& labels, const Expr& logits) {
  return mean(cast(equal(argmax(logits), cast(labels, DType::kInt64)), logits.dtype()));
}

}  // namespace syncline::examples
