#include "tests/runtime/training/small_fit.h"

#include <cstring>
#include <stdexcept>

#include "base/digest.h"
#include "io/data/data_order.h"
#include "syncline/backend/config.h"
#include "syncline/backend/convolution.h"
#include "syncline/backend/linalg.h"
#include "syncline/backend/math.h"
#include "syncline/backend/nn.h"
#include "syncline/backend/reduce.h"
#include "syncline/session.h"
#include "syncline/training/accumulation.h"

namespace syncline::training {
namespace {

constexpr std::int64_t kRows = 42, kBatch = 8, kInputs = 7, kUnits = 9;
constexpr DType kFloat = DType::kFloat32;

struct Graph {
  Expr x, loss, error;
};

Graph make_graph(const Variable& kernel, const Variable& bias, const Variable& top) {
  Graph graph;
  graph.x = placeholder({.shape = {kUnknown, kInputs}, .dtype = kFloat});
  const Expr hidden = tanh(bias_add(dot(graph.x, kernel), bias));
  const Expr units = in_train_phase(dropout(hidden, 0.3), hidden);
  const Expr off = dot(units, top) - sum(square(graph.x), {1}, /*keepdims=*/true);
  graph.loss = mean(square(off));
  graph.error = mean(abs(off));
  return graph;
}

Array make_rows() {
  Array rows(kFloat, Shape{kRows, kInputs});
  for (std::int64_t i = 0; i < rows.size(); ++i)
    rows.data<float>()[i] = static_cast<float>((i * 37 + i / 5 * 11) % 29) / 29.0F;
  return rows;
}

// Batches of the rows in the order of the epoch; for evaluation, in that of epoch 0.
Batches make_batches(bool training) {
  Batches batches{.samples = kRows, .batch = kBatch, .read = {}};
  const std::uint64_t seed = Session::current().seed();
  batches.read = [rows = make_rows(), seed, training](std::int64_t epoch, std::int64_t step) {
    const auto order = io::epoch_order(seed, training ? epoch : 0, kRows);
    const std::int64_t begin = step * kBatch, end = std::min(begin + kBatch, kRows);
    Array batch(kFloat, Shape{end - begin, kInputs});
    for (std::int64_t i = begin; i < end; ++i)
      std::memcpy(batch.data<float>() + (i - begin) * kInputs,
                  rows.data<float>() + order[static_cast<std::size_t>(i)] * kInputs, kInputs * sizeof(float));
    return std::vector<Array>{batch, Array::scalar(training)};
  };
  return batches;
}

}  // namespace

void Witness::note(Fit& fit, const std::string& what) {
  seen.push_back(what);
  if (what == stop_at) fit.stop();
  if (what == pause_at) fit.pause();
  if (what == throw_at) throw std::runtime_error("thrown at " + what);
}

void Witness::on_epoch_end(Fit& fit, std::int64_t epoch, Logs& logs) {
  epochs.push_back(logs);
  note(fit, "epoch end " + std::to_string(epoch));
}

void Witness::on_failure(Fit&, const std::exception& error) noexcept {
  seen.push_back(std::string("failure: ") + error.what());
}

SmallFit::SmallFit(std::int64_t epochs, std::vector<Callback*> callbacks, std::int64_t accumulate)
    : kernel(random_normal_variable({kInputs, kUnits}, 0, 0.3, {.dtype = kFloat, .name = "kernel"})),
      bias(zeros({kUnits}, {.dtype = kFloat, .name = "bias"})),
      top(random_normal_variable({kUnits, 1}, 0, 0.3, {.dtype = kFloat, .name = "top"})),
      step({}, {}),
      score({}, {}) {
  const Graph graph = make_graph(kernel, bias, top);
  optimizer = adam(graph.loss, std::vector<Variable>{kernel, bias, top});
  if (accumulate > 1) {
    const AccumulatingOptimizer slower = syncline::accumulate(optimizer, accumulate);
    optimizer = slower;
    accumulated = slower.accumulated;
  }
  step = Function({graph.x, learning_phase()}, {graph.loss, graph.error}, optimizer.updates, "train");
  score = Function({graph.x, learning_phase()}, {graph.loss, graph.error}, {}, "evaluate");
  fit = std::make_unique<Fit>(FitOptions{.step = &step,
                                         .names = {"loss", "error"},
                                         .batches = make_batches(true),
                                         .epochs = epochs,
                                         .evaluate =
                                             [this] {
                                               return evaluate(score, {"loss", "error"}, make_batches(false));
                                             },
                                         .callbacks = std::move(callbacks)});
}

std::vector<Variable> SmallFit::variables() const {
  std::vector<Variable> all{kernel, bias, top};
  all.insert(all.end(), optimizer.weights.begin(), optimizer.weights.end());
  return all;
}

std::uint64_t SmallFit::digest() const {
  std::uint64_t digest = kEmptyDigest;
  for (const Variable& v : variables())
    digest = digest_bytes(v.state().value().raw(), v.state().value().bytes(), digest);
  return digest;
}

}  // namespace syncline::training
