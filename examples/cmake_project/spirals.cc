// Trains a network that tells two spirals of points apart. Run it as ./spirals or mpirun -n 2 ./spirals.
#include <cmath>

#include "syncline/backend.h"
#include "syncline/data/source.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/training/callbacks/progress_bar.h"
#include "syncline/training/fit.h"
#include "syncline/training/optimizers.h"

using namespace syncline;

constexpr std::int64_t kRows = 4096, kBatch = 128;

std::unique_ptr<io::Source> make_spirals() {
  Array points(DType::kFloat32, {kRows, 2}), labels(DType::kInt64, {kRows});
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t i = row * 1237 % kRows, spiral = i % 2;  // 1237 shares no factor with kRows: a fixed shuffle
    const float turns = 1.5f * static_cast<float>(i) / kRows;
    const float angle = (2 * turns + static_cast<float>(spiral)) * 3.14159265f;
    points.data<float>()[2 * row] = (0.2f + turns) * std::cos(angle);
    points.data<float>()[2 * row + 1] = (0.2f + turns) * std::sin(angle);
    labels.data<std::int64_t>()[row] = spiral;
  }
  return io::array_source({{"points", points}, {"labels", labels}});
}

Expr dense(std::vector<Variable>& weights, const Expr& x, std::int64_t units) {
  const double limit = std::sqrt(6.0 / static_cast<double>(x.shape().back() + units));
  weights.push_back(random_uniform_variable({x.shape().back(), units}, -limit, limit));
  weights.push_back(zeros({units}));
  return bias_add(dot(x, weights.end()[-2]), weights.back());
}

void train(comm::Communicator& communicator) {
  Session session;
  SessionScope scope(session);
  session.distribute(make_data_parallel(communicator));

  std::vector<Variable> weights;
  const Expr points = placeholder({.shape = {kUnknown, 2}});
  const Expr labels = placeholder({.shape = {kUnknown}, .dtype = DType::kInt64});
  const Expr logits = dense(weights, relu(dense(weights, relu(dense(weights, points, 64)), 64)), 2);
  const Expr loss = mean(sparse_categorical_crossentropy(labels, logits, {.from_logits = true}));
  const Expr accuracy = mean(cast(equal(argmax(logits), labels), DType::kFloat32));
  Function step({points, labels}, {loss, accuracy}, adam(loss, weights, {.learning_rate = 0.01}).updates);

  // Every rank gives the whole batch; the library computes each rank's share of it.
  const std::unique_ptr<io::Source> spirals = make_spirals();
  const auto read = [&](std::int64_t, std::int64_t i) { return spirals->read_range(i * kBatch, (i + 1) * kBatch); };
  training::ProgressBar bar(&communicator);
  training::FitOptions options{.step = &step, .names = {"loss", "accuracy"}, .batches = {kRows, kBatch, read}};
  options.epochs = 20, options.callbacks = {&bar};
  training::Fit(std::move(options)).run();
}

int main() { return comm::run_job("spirals", comm_options, train); }  // in one process, or as a rank of mpirun -n N
