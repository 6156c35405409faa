#include "benchmarks/networks.h"

#include <cmath>
#include <map>

#include "examples/models.h"
#include "syncline/backend/config.h"
#include "syncline/backend/control.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/function.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/backend/shape.h"
#include "syncline/training/optimizers.h"

namespace syncline::benchmarks {
namespace {

Expr images(Shape sample) {
  sample.insert(0, kUnknown);
  return placeholder({.shape = sample, .name = "x"});
}

Expr class_labels() { return placeholder({.shape = {kUnknown}, .dtype = DType::kInt32, .name = "labels"}); }

// Makes the weights of a network and collects them.
class Weights {
 public:
  Variable kernel(Shape shape) {
    const std::int64_t receptive = shape.product(0, shape.ndim() - 2);
    const auto fans = static_cast<double>(receptive * (shape[shape.ndim() - 2] + shape.back()));
    const double limit = std::sqrt(6.0 / fans);
    return add(random_uniform_variable(std::move(shape), -limit, limit, {.name = "kernel"}));
  }
  Variable vector(std::int64_t size, double value) {
    return add(variable(fill(Shape{size}, value), {.name = "vector"}));
  }
  const std::vector<Variable>& all() const { return all_; }

 private:
  Variable add(const Variable& v) {
    all_.push_back(v);
    return v;
  }
  std::vector<Variable> all_;
};

Expr dense(Weights& weights, const Expr& x, int units) {
  const Variable kernel = weights.kernel({x.shape().back(), units}), bias = weights.vector(units, 0);
  return bias_add(dot(x, kernel), bias);
}

Network mlp_small() {
  Network n{.x = images({64}), .labels = class_labels(), .rows = 32, .classes = 10};
  const examples::Model model = examples::mlp(n.x, {64, 64}, 0);
  n.loss = examples::mean_loss(n.labels, model.logits);
  n.updates = sgd(n.loss, model.weights()).updates;
  return n;
}

Network mlp_wide() {
  Network n{.x = images({1024}), .labels = class_labels(), .rows = 32, .classes = 10};
  const examples::Model model = examples::mlp(n.x, {2048, 2048}, 0);
  n.loss = examples::mean_loss(n.labels, model.logits);
  n.updates = sgd(n.loss, model.weights()).updates;
  return n;
}

Network mlp() {
  Network n{.x = images({28, 28}), .labels = class_labels(), .rows = 128, .classes = 10};
  const examples::Model model = examples::make_model("mlp", n.x);
  n.loss = examples::mean_loss(n.labels, model.logits);
  n.updates = adam(n.loss, model.weights()).updates;
  return n;
}

Network cnn() {
  Network n{.x = images({28, 28}), .labels = class_labels(), .rows = 128, .classes = 10};
  const examples::Model model = examples::make_model("cnn", n.x);
  n.loss = examples::mean_loss(n.labels, model.logits);
  n.updates = adadelta(n.loss, model.weights()).updates;
  return n;
}

// Columns [i * units, (i + 1) * units): one gate's part.
Expr part(const Expr& x, int i, std::int64_t units) { return slice_axis(x, x.ndim() - 1, i * units, units); }

// The last output of a long short-term memory.
Expr long_short_term_memory(Weights& weights, const Expr& x, std::int64_t units) {
  const Variable kernel = weights.kernel({x.shape().back(), 4 * units}), recurrent = weights.kernel({units, 4 * units}),
                 bias = weights.vector(4 * units, 0);
  auto step = [&](const Expr& input, const std::vector<Expr>& states) {
    const Expr z = bias_add(dot(input, kernel) + dot(states[0], recurrent), bias);
    const Expr c = sigmoid(part(z, 1, units)) * states[1] + sigmoid(part(z, 0, units)) * tanh(part(z, 2, units));
    const Expr h = sigmoid(part(z, 3, units)) * tanh(c);
    return std::pair{h, std::vector<Expr>{h, c}};
  };
  const Expr zeros = fill_like(dot(slice_axis(x, 1, 0, 1), fill({x.shape().back(), units}, 0)), 0);
  const Expr state = squeeze(zeros, 1);
  return rnn(step, x, {state, state}).last_output;
}

Network lstm() {
  constexpr int kWords = 20000, kUnits = 128;
  Network n{.labels = class_labels(), .rows = 32, .classes = 2, .words = kWords};
  n.x = placeholder({.shape = {kUnknown, 80}, .dtype = DType::kInt32, .name = "x"});
  Weights weights;
  const Variable table = weights.kernel({kWords, kUnits});
  const Expr last = long_short_term_memory(weights, gather(table, n.x), kUnits);
  const Expr logit = squeeze(dense(weights, last, 1), 1);
  n.loss = mean(binary_crossentropy(cast(n.labels, DType::kFloat32), logit, {.from_logits = true}));
  n.updates = adam(n.loss, weights.all()).updates;
  return n;
}

// The last output of a gated recurrent unit, with the reset gate after the recurrent product (Keras's reset_after).
Expr gated_recurrent_unit(Weights& weights, const Expr& x, std::int64_t units) {
  const Variable kernel = weights.kernel({x.shape().back(), 3 * units}), recurrent = weights.kernel({units, 3 * units}),
                 input_bias = weights.vector(3 * units, 0), recurrent_bias = weights.vector(3 * units, 0);
  auto step = [&](const Expr& input, const std::vector<Expr>& states) {
    const Expr a = bias_add(dot(input, kernel), input_bias), b = bias_add(dot(states[0], recurrent), recurrent_bias);
    const Expr update = sigmoid(part(a, 0, units) + part(b, 0, units));
    const Expr reset = sigmoid(part(a, 1, units) + part(b, 1, units));
    const Expr candidate = tanh(part(a, 2, units) + reset * part(b, 2, units));
    const Expr h = update * states[0] + (1.0 - update) * candidate;
    return std::pair{h, std::vector<Expr>{h}};
  };
  const Expr state = squeeze(fill_like(dot(slice_axis(x, 1, 0, 1), fill({x.shape().back(), units}, 0)), 0), 1);
  return rnn(step, x, {state}).last_output;
}

Network gru() {
  Network n{.x = images({100, 64}), .labels = class_labels(), .rows = 32, .classes = 10};
  Weights weights;
  const Expr logits = dense(weights, gated_recurrent_unit(weights, n.x, 256), n.classes);
  n.loss = examples::mean_loss(n.labels, logits);
  n.updates = sgd(n.loss, weights.all()).updates;
  return n;
}

class ResidualNetwork {
 public:
  explicit ResidualNetwork(int filters) : filters_(filters) {}

  Expr conv(const Expr& x) {
    return conv2d(x, weights.kernel({3, 3, x.shape().back(), filters_}), {.padding = "same"});
  }

  // Normalizes with the batch's statistics and adds the updates of the moving ones, as Keras's layer does.
  Expr normalize(const Expr& x) {
    const Variable gamma = weights.vector(filters_, 1), beta = weights.vector(filters_, 0);
    const Variable mean = zeros({filters_}), variance = ones({filters_});
    const NormalizedBatch batch = normalize_batch_in_training(x, gamma, beta, {0, 1, 2});
    updates.push_back(moving_average_update(mean, batch.mean, 0.99));
    updates.push_back(moving_average_update(variance, batch.variance, 0.99));
    return batch.normalized;
  }

  Expr block(const Expr& x) { return relu(normalize(conv(relu(normalize(conv(x))))) + x); }

  Weights weights;
  std::vector<Update> updates;

 private:
  int filters_;
};

Network residual() {
  Network n{.x = images({32, 32, 3}), .labels = class_labels(), .rows = 32, .classes = 10};
  ResidualNetwork net(64);
  Expr y = relu(net.normalize(net.conv(n.x)));
  for (int i = 0; i < 3; ++i) y = net.block(y);
  n.loss = examples::mean_loss(n.labels, dense(net.weights, mean(y, {1, 2}), n.classes));
  n.updates = sgd(n.loss, net.weights.all(), {.learning_rate = 0.01, .momentum = 0.9}).updates;
  n.updates.insert(n.updates.end(), net.updates.begin(), net.updates.end());
  return n;
}

const std::map<std::string, Network (*)()> kNetworks{
    {"mlp_small", mlp_small}, {"mlp_wide", mlp_wide}, {"mlp", mlp},          {"cnn", cnn},
    {"lstm", lstm},           {"gru", gru},           {"residual", residual}};

}  // namespace

const std::vector<std::string>& network_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const auto& [name, make] : kNetworks) found.push_back(name);
    return found;
  }();
  return names;
}

Network make_network(const std::string& name) {
  const auto found = kNetworks.find(name);
  if (found == kNetworks.end()) fail<ValueError>("no network '", name, "'; see step_bench --help");
  return found->second();
}

}  // namespace syncline::benchmarks
