#include "examples/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/digest.h"
#include "examples/progress.h"
#include "io/data_order.h"
#include "ops/math.h"
#include "runtime/config.h"
#include "runtime/session.h"

namespace syncline::examples {
namespace {

constexpr std::int64_t kScoreRows = 1000;  // of an evaluation step

Optimizer make_optimizer(const std::string& name, const Expr& loss, std::span<const Variable> weights) {
  if (name == "sgd") return sgd(loss, weights, {.learning_rate = 0.05, .momentum = 0.9});
  if (name == "rmsprop") return rmsprop(loss, weights);
  if (name == "adadelta") return adadelta(loss, weights);
  if (name == "adam") return adam(loss, weights);
  fail<ValueError>("unknown optimizer '", name, "'; use sgd, rmsprop, adam or adadelta");
}

io::Weight weight_of(const Variable& v) { return {v.name() + ":0", get_value(v)}; }

}  // namespace

Training::Training(const Options& options, int rank) : options_(options), rank_(rank) {
  train_ = io::load_fashion_mnist(options.data, io::Split::kTrain);
  test_ = io::load_fashion_mnist(options.data, io::Split::kTest);
  if (options.samples > 0 && options.samples < train_.images.shape()[0])
    train_ = {train_.images.rows(0, options.samples), train_.labels.rows(0, options.samples)};
  if (options.resume) read_checkpoint();
  state_.seed = Session::current().seed();
  state_.batch = options.batch;
  state_.samples = train_.images.shape()[0];
}

void Training::build() {
  const DType floatx = syncline::floatx();
  const Expr images = placeholder({.shape = {kUnknown, 28, 28}, .dtype = DType::kUint8, .name = "images"});
  const Expr labels = placeholder({.shape = {kUnknown}, .dtype = DType::kUint8, .name = "labels"});
  model_ = make_model(options_.model, cast(images, floatx) / 255.0);
  const Expr classes = cast(labels, DType::kInt32);
  const Expr loss = mean_loss(classes, model_.logits), right = accuracy(classes, model_.logits);
  optimizer_ = make_optimizer(options_.optimizer, loss, model_.weights());
  const std::vector<Expr> inputs{images, labels, learning_phase()};
  step_ = std::make_unique<Function>(inputs, std::vector<Expr>{loss, right}, optimizer_.updates, "train");
  score_ = std::make_unique<Function>(inputs, std::vector<Expr>{loss, right}, std::vector<Update>{}, "evaluate");
}

std::int64_t Training::steps_of_epoch() const { return (state_.samples + state_.batch - 1) / state_.batch; }

Array Training::batch_of(const Array& rows, std::int64_t begin, std::int64_t end) const {
  Shape shape = rows.shape();
  const std::size_t row = static_cast<std::size_t>(shape.product(1, shape.ndim())) * size_of(rows.dtype());
  shape[0] = end - begin;
  Array batch(rows.dtype(), shape);
  for (std::int64_t i = begin; i < end; ++i)
    std::memcpy(batch.raw() + static_cast<std::size_t>(i - begin) * row,
                rows.raw() + static_cast<std::size_t>(order_[static_cast<std::size_t>(i)]) * row, row);
  return batch;
}

void Training::run() {
  while (state_.epoch < options_.epochs && !stopped()) train_epoch();
}

void Training::train_epoch() {
  order_ = io::epoch_order(state_.seed, state_.epoch, state_.samples);
  Progress progress(rank_ == 0, state_.epoch, options_.epochs, steps_of_epoch(), state_.step);
  while (state_.step < steps_of_epoch() && !stopped()) {
    const std::int64_t begin = state_.step * state_.batch, end = std::min(begin + state_.batch, state_.samples);
    const auto results =
        (*step_)({batch_of(train_.images, begin, end), batch_of(train_.labels, begin, end), Array::scalar(true)});
    ++state_.step;
    ++state_.global_step;
    progress.step(end - begin, results[0].item(), results[1].item());
    if (state_.global_step % options_.save_every == 0 && state_.step < steps_of_epoch()) save();
  }
  progress.finish();
  if (state_.step == steps_of_epoch()) {
    ++state_.epoch;
    state_.step = 0;
  }
  save();
}

Training::Score Training::evaluate() {
  double loss = 0, right = 0;
  const std::int64_t rows = test_.images.shape()[0];
  for (std::int64_t begin = 0; begin < rows; begin += kScoreRows) {
    const std::int64_t end = std::min(begin + kScoreRows, rows);
    const auto results =
        (*score_)({test_.images.rows(begin, end), test_.labels.rows(begin, end), Array::scalar(false)});
    loss += results[0].item() * static_cast<double>(end - begin);
    right += results[1].item() * static_cast<double>(end - begin);
  }
  return {loss / static_cast<double>(rows), right / static_cast<double>(rows)};
}

io::Checkpoint Training::checkpoint() const {
  io::Checkpoint checkpoint;
  checkpoint.model = options_.model;
  checkpoint.state = state_;
  checkpoint.state.random_step = Session::current().random_step();
  for (const NamedLayer& layer : model_.layers) {
    checkpoint.layers.push_back({layer.name, {}});
    for (const Variable& v : layer.weights) checkpoint.layers.back().weights.push_back(weight_of(v));
  }
  for (const Variable& v : optimizer_.weights) checkpoint.optimizer.push_back(weight_of(v));
  return checkpoint;
}

void Training::save() {
  if (!options_.checkpoint.empty() && rank_ == 0) io::save_checkpoint(options_.checkpoint, checkpoint());
}

void Training::read_checkpoint() {
  const std::string& path = options_.checkpoint;
  if (!std::filesystem::exists(path)) {
    if (rank_ == 0) fmt::print("no checkpoint at {} yet: training starts from the beginning\n", path);
    return;
  }
  found_ = io::load_checkpoint(path);
  if (!found_->has_state) fail<IoError>(path, ": holds weights only, not where training stood; train without --resume");
  Session::current().set_seed(found_->state.seed);  // dropout draws from it too
}

void Training::resume() {
  if (!found_) return;
  const std::string& path = options_.checkpoint;
  const io::Checkpoint found = std::move(*found_);
  found_.reset();
  io::require_same_model(path, io::spec_of(found), io::spec_of(checkpoint()));
  if (found.state.batch != state_.batch || found.state.samples != state_.samples)
    fail<IoError>(path, ": was written with --batch ", found.state.batch, " on ", found.state.samples,
                  " samples; this run has --batch ", state_.batch, " on ", state_.samples,
                  ": the place in the epoch would be another");
  std::vector<std::pair<Variable, Value>> values;
  for (std::size_t l = 0; l < model_.layers.size(); ++l)
    for (std::size_t w = 0; w < model_.layers[l].weights.size(); ++w)
      values.emplace_back(model_.layers[l].weights[w], found.layers[l].weights[w].value);
  for (std::size_t w = 0; w < optimizer_.weights.size(); ++w)
    values.emplace_back(optimizer_.weights[w], found.optimizer[w].value);
  batch_set_value(values);
  state_ = found.state;
  Session::current().set_random_step(state_.random_step);
  if (rank_ == 0) fmt::print("resumed {} at epoch {}, step {}\n", path, state_.epoch + 1, state_.step);
}

std::uint64_t Training::digest() const {
  std::uint64_t digest = kEmptyDigest;
  auto add = [&](const Variable& v) {
    const Array& value = v.state().value();
    digest = digest_bytes(value.raw(), value.bytes(), digest);
  };
  for (const Variable& v : model_.weights()) add(v);
  for (const Variable& v : optimizer_.weights) add(v);
  return digest;
}

}  // namespace syncline::examples
