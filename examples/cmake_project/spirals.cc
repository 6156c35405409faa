// Trains a network that tells two spirals of points apart. Run it as ./spirals or mpirun -n 2 ./spirals.
#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>

#include "syncline/backend.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/distributed/ending.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/session.h"
#include "syncline/training/callbacks/progress_bar.h"
#include "syncline/training/fit.h"
#include "syncline/training/optimizers.h"

using namespace syncline;

constexpr std::int64_t kRows = 4096, kBatch = 128;

struct Spirals {
  Array points{DType::kFloat32, {kRows, 2}}, labels{DType::kInt64, {kRows}};
  Spirals() {
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t i = row * 1237 % kRows, spiral = i % 2;  // 1237 shares no factor with kRows: a fixed shuffle
      const double turns = 1.5 * static_cast<double>(i) / kRows;
      const double angle = (2 * turns + static_cast<double>(spiral)) * std::numbers::pi;
      points.data<float>()[2 * row] = static_cast<float>((0.2 + turns) * std::cos(angle));
      points.data<float>()[2 * row + 1] = static_cast<float>((0.2 + turns) * std::sin(angle));
      labels.data<std::int64_t>()[row] = spiral;
    }
  }
  // Every rank gives the whole batch; the library computes each rank's share of it.
  std::vector<Array> batch(std::int64_t step) {
    const std::int64_t first = step * kBatch;
    return {Array::borrow(DType::kFloat32, {kBatch, 2}, points.data<float>() + 2 * first),
            Array::borrow(DType::kInt64, {kBatch}, labels.data<std::int64_t>() + first)};
  }
};

Expr dense(std::vector<Variable>& weights, const Expr& x, std::int64_t units) {
  const double limit = std::sqrt(6.0 / static_cast<double>(x.shape().back() + units));
  const Variable kernel = random_uniform_variable({x.shape().back(), units}, -limit, limit), bias = zeros({units});
  weights.insert(weights.end(), {kernel, bias});
  return bias_add(dot(x, kernel), bias);
}

void train(comm::Communicator& communicator) {
  Session session;
  SessionScope scope(session);
  if (communicator.size() > 1) session.distribute(make_data_parallel(communicator));

  std::vector<Variable> weights;
  const Expr points = placeholder({.shape = {kUnknown, 2}});
  const Expr labels = placeholder({.shape = {kUnknown}, .dtype = DType::kInt64});
  const Expr hidden = relu(dense(weights, relu(dense(weights, points, 64)), 64));
  const Expr logits = dense(weights, hidden, 2);
  const Expr loss = mean(sparse_categorical_crossentropy(labels, logits, {.from_logits = true}));
  const Expr accuracy = mean(cast(equal(argmax(logits), labels), DType::kFloat32));
  Function step({points, labels}, {loss, accuracy}, adam(loss, weights, {.learning_rate = 0.01}).updates);

  Spirals data;
  training::ProgressBar bar(&communicator);
  training::Fit fit({.step = &step,
                     .names = {"loss", "accuracy"},
                     .batches = {kRows, kBatch, [&](std::int64_t, std::int64_t step) { return data.batch(step); }},
                     .epochs = 20,
                     .callbacks = {&bar}});
  fit.run();
}

int main() {
  std::unique_ptr<comm::Communicator> communicator;
  try {
    communicator = comm::make_communicator();  // one process, or a rank of mpirun -n N
    train(*communicator);
  } catch (const std::exception& error) {
    if (communicator) comm::end_job(*communicator, "spirals", error);  // ends all ranks
    std::fprintf(stderr, "spirals: %s\n", error.what());
    return 1;
  }
}
