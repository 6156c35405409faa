// Times training steps of one network with data in memory, alone or as one of several ranks under mpirun. One JSON line
// on rank 0; scripts/bench puts it beside other frameworks on the same work.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "comm/make_communicator.h"
#include "examples/models.h"
#include "ops/kernels/parallel.h"
#include "runtime/config.h"
#include "runtime/data_parallel.h"
#include "runtime/function.h"
#include "runtime/optimizers.h"
#include "runtime/session.h"

namespace {
using namespace syncline;

struct Options {
  std::string model = "mlp";
  int threads = 1, steps = 50, warmup = 10;
  int background = -1;
  bool json = false, plan = false;
};

struct Work {
  Expr x, labels;
  examples::Model model;
  Optimizer optimizer;
  Expr loss;
  int rows = 0;  // of one rank
};

Work make_work(const std::string& name) {
  Work w;
  const bool small = name == "mlp_small";
  w.rows = small ? 32 : 128;
  const Shape sample = small ? Shape{kUnknown, 64} : Shape{kUnknown, 28, 28};
  w.x = placeholder({.shape = sample, .name = "x"});
  w.labels = placeholder({.shape = {kUnknown}, .dtype = DType::kInt32, .name = "labels"});
  if (small) w.model = examples::mlp(w.x, {64, 64}, 0);
  else w.model = examples::make_model(name, w.x);
  w.loss = examples::mean_loss(w.labels, w.model.logits);
  const auto weights = w.model.weights();
  if (small) w.optimizer = sgd(w.loss, weights);
  else if (name == "cnn") w.optimizer = adadelta(w.loss, weights);
  else w.optimizer = adam(w.loss, weights);
  return w;
}

double peak_mib() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int run(const Options& options) {
  comm::WorkerOptions transfers = comm::options_for_threads(options.threads);
  if (options.background >= 0) transfers.background = options.background != 0;
  const auto wire = comm::make_communicator(transfers);
  Session session(1);
  SessionScope scope(session);
  kernels::set_thread_count(options.threads);
  if (wire->size() > 1) session.distribute(make_data_parallel(*wire, {.local_feeds = true}));
  set_learning_phase(true);
  Work w = make_work(options.model);
  Function step({w.x, w.labels}, {w.loss}, w.optimizer.updates, "train");

  Shape shape = w.x.shape();
  shape[0] = w.rows;
  Array x = eval(random_uniform(shape));
  Array labels(DType::kInt32, Shape{w.rows});
  for (int i = 0; i < w.rows; ++i) labels.data<std::int32_t>()[i] = (i * 7 + wire->rank()) % 10;
  const std::vector<Array> feeds{x, labels};
  std::vector<Array> results = step(feeds);
  if (const std::string plan = step.describe(feeds); options.plan && wire->rank() == 0) std::cerr << plan;
  for (int i = 0; i < options.warmup; ++i) step.run(feeds, results);

  std::vector<double> ms;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < options.steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step.run(feeds, results);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (wire->rank() != 0) return 0;
  std::nth_element(ms.begin(), ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2), ms.end());
  const nlohmann::json line{{"model", options.model},
                            {"threads", options.threads},
                            {"ranks", wire->size()},
                            {"batch", w.rows},
                            {"step_ms", ms[ms.size() / 2]},
                            {"samples_per_s", static_cast<double>(w.rows) * wire->size() * options.steps / seconds},
                            {"peak_mib", peak_mib()},
                            {"loss", results[0].item()}};
  if (options.json) std::cout << line.dump() << '\n';
  else std::cout << options.model << ": " << ms[ms.size() / 2] << " ms a step\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Times training steps.");
  app.add_option("--model", options.model, "mlp_small, mlp or cnn")->check(CLI::IsMember({"mlp_small", "mlp", "cnn"}));
  app.add_option("--threads", options.threads, "threads of a rank")->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps, "steps timed")->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "steps before")->check(CLI::NonNegativeNumber);
  app.add_option("--background", options.background,
                 "transfers beside the computation: 1, 0, or -1: as fits the machine");
  app.add_flag("--json", options.json, "one JSON line");
  app.add_flag("--plan", options.plan, "print the plan on standard error");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& e) {
    std::cerr << "step_bench: " << e.what() << '\n';
    return 1;
  }
}
