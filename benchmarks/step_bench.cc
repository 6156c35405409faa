// Times training steps of one network with data in memory, on one rank or on several under mpirun. Rank 0 prints one
// JSON line; scripts/bench compares it with other frameworks on the same work.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "benchmarks/networks.h"
#include "ops/kernels/parallel.h"
#include "syncline/backend/config.h"
#include "syncline/backend/function.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/distributed/keras_json.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/session.h"

namespace {
using namespace syncline;

struct Options {
  std::string model = "mlp";
  int threads = 1, steps = 50, warmup = 10, rows = 0;
  int background = -1;
  bool json = false, plan = false;
};

// A batch of random values.
std::vector<Array> make_feeds(const benchmarks::Network& net, int rank) {
  Shape shape = net.x.shape();
  shape[0] = net.rows;
  Array x = net.words == 0 ? eval(random_uniform(shape)) : Array(net.x.dtype(), shape);
  for (std::int64_t i = 0; net.words > 0 && i < x.size(); ++i)
    x.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7919 % net.words);
  Array labels(DType::kInt32, Shape{net.rows});
  for (int i = 0; i < net.rows; ++i) labels.data<std::int32_t>()[i] = (i * 7 + rank) % net.classes;
  return {x, labels};
}

double peak_mib() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int run(const Options& options) {
  comm::CommOptions transfers = comm::options_for_threads(options.threads, keras_json().comm);
  if (options.background >= 0) transfers.worker.background = options.background != 0;
  const auto communicator = comm::make_communicator(transfers);
  Session session(1);
  SessionScope scope(session);
  set_thread_count(options.threads);
  if (communicator->size() > 1 || keras_json().parts > 0)
    session.distribute(make_data_parallel(*communicator, {.local_feeds = true}));
  set_learning_phase(true);
  benchmarks::Network net = benchmarks::make_network(options.model);
  if (options.rows > 0) net.rows = options.rows;
  Function step({net.x, net.labels}, {net.loss}, net.updates, "train");
  const std::vector<Array> feeds = make_feeds(net, communicator->rank());
  std::vector<Array> results = step(feeds);
  if (const std::string plan = step.describe(feeds); options.plan && communicator->rank() == 0) std::cerr << plan;
  for (int i = 0; i < options.warmup; ++i) step.run(feeds, results);

  std::vector<double> ms;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < options.steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    step.run(feeds, results);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (communicator->rank() != 0) return 0;
  std::nth_element(ms.begin(), ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2), ms.end());
  const nlohmann::json line{
      {"model", options.model},
      {"threads", options.threads},
      {"ranks", communicator->size()},
      {"batch", net.rows},
      {"step_ms", ms[ms.size() / 2]},
      {"samples_per_s", static_cast<double>(net.rows) * communicator->size() * options.steps / seconds},
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
  app.add_option("--model", options.model, "the network")->check(CLI::IsMember(benchmarks::network_names()));
  app.add_option("--threads", options.threads, "threads of a rank")->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps, "steps timed")->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup, "steps before")->check(CLI::NonNegativeNumber);
  app.add_option("--rows", options.rows, "rows of a rank's batch; 0: the network's")->check(CLI::NonNegativeNumber);
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
