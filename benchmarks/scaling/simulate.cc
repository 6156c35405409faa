// Predicts all-reduces of many nodes from the rounds of the wire (benchmarks/scaling/model.h), and simulates them in
// virtual time with the wire's own code (comm/local/virtual_job.h). Prints for each the times and the limit that the
// links' bandwidth sets. Simulates training steps too: ranks that compute while their sums are under way. The times do
// not depend on the machine. Simulated messages have no bytes, unless --real asks for them.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "benchmarks/scaling/model.h"

namespace {

using namespace syncline::comm;

struct Options {
  std::vector<int> nodes{8, 16, 64, 512, 767, 999, 1000, 1024};
  std::vector<std::int64_t> sizes{4, 64 << 10, 1 << 20, 25 << 20};
  int ranks_a_node = 1;
  VirtualLink link;
  std::string step;  // file
  bool model_only = false, json = false, real = false;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Predicts and simulates all-reduces of many nodes."};
  app.add_option("--nodes", options.nodes, "numbers of nodes")->delimiter(',')->check(CLI::Range(2, 4096));
  app.add_option("--bytes", options.sizes, "sizes in bytes")->delimiter(',')->check(CLI::Range(4, 1 << 30));
  app.add_option("--ranks-a-node", options.ranks_a_node, "ranks of each node")->check(CLI::Range(1, 64));
  app.add_option("--latency", options.link.latency, "of a message, in seconds")->check(CLI::NonNegativeNumber);
  app.add_option("--bandwidth", options.link.bandwidth, "of a node's link, in bytes/s")->check(CLI::PositiveNumber);
  app.add_option("--overhead", options.link.overhead, "of a message at its sender, in seconds")
      ->check(CLI::NonNegativeNumber);
  CLI::Option* const step =
      app.add_option("--step", options.step,
                     "simulates a training step in place of all-reduces: a JSON file of [\"compute\", seconds, 0], "
                     "[\"submit\", bucket, bytes] and [\"wait\", bucket, 0]")
          ->check(CLI::ExistingFile);
  CLI::Option* const model = app.add_flag("--model", options.model_only, "the model only, of all-reduces");
  app.add_flag("--json", options.json, "a line of JSON each");
  app.add_flag("--real", options.real,
               "each rank has its own numbers, and all must get the same bits: takes ranks * bytes of memory")
      ->excludes(step)
      ->excludes(model);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  return options;
}

// What a rank does in a step: it computes, and then begins a sum of some bytes or waits for the sum with a number.
struct Action {
  double computes = 0;
  std::int64_t begins = 0;
  int awaits = -1;
};

struct Step {
  std::vector<Action> actions;
  double computes = 0;    // in all
  std::int64_t most = 4;  // bytes of a sum
};

Step read_step(const std::string& path) {
  Step step;
  std::map<nlohmann::json, int> buckets;
  step.actions.emplace_back();
  for (const nlohmann::json& line : nlohmann::json::parse(std::ifstream(path))) {
    const std::string action = line.at(0);
    if (action == "compute") {
      step.actions.back().computes += line.at(1).get<double>();
      step.computes += line.at(1).get<double>();
      continue;
    }
    if (action == "submit") {
      if (line.at(2) < 4) throw std::runtime_error(path + ": a bucket of less than 4 bytes");
      buckets.emplace(line.at(1), static_cast<int>(buckets.size()));
      step.actions.back().begins = line.at(2);
      step.most = std::max(step.most, step.actions.back().begins);
    } else {
      if (action != "wait") throw std::runtime_error(path + ": " + action + " is neither compute, submit nor wait");
      step.actions.back().awaits = buckets.at(line.at(1));
    }
    step.actions.emplace_back();
  }
  return step;
}

// Nodes in virtual time, whose ranks have memory for sums of so many bytes.
class Simulation {
 public:
  Simulation(const Options& options, int nodes, std::int64_t bytes)
      : job_({.node_of_rank = node_of_rank(nodes, options.ranks_a_node),
              .link = options.link,
              .lengths_only = !options.real}),
        real_(options.real),
        count_(static_cast<std::size_t>(bytes / 4 + 1)) {
    job_.run(of_all(make_memory(Kind::kSharedMemory, bytes)));
    if (job_.shared_memory(0) == nullptr) memory_.resize(count_ * static_cast<std::size_t>(real_ ? job_.size() : 1));
  }

  double seconds(std::int64_t bytes) {
    if (real_) set_terms(bytes);
    std::vector<Collective> sums;
    for (int r = 0; r < job_.size(); ++r) sums.push_back(sum_of(bytes, r));
    const double seconds = job_.run(sums);
    if (real_) require_equal_sums(bytes);
    return seconds;
  }
  double seconds(const Step& step) {
    std::vector<VirtualAction> actions;
    for (const auto& [computes, begins, awaits] : step.actions) {
      actions.push_back({.seconds = computes, .awaits = awaits});
      if (begins > 0) actions.back().begins = sum_of(begins, 0);
    }
    return job_.run(of_all(actions));
  }

 private:
  static std::vector<int> node_of_rank(int nodes, int ranks_a_node) {
    std::vector<int> numbers(static_cast<std::size_t>(nodes * ranks_a_node));
    for (std::size_t r = 0; r < numbers.size(); ++r) numbers[r] = static_cast<int>(r) / ranks_a_node;
    return numbers;
  }
  // Of lengths, all ranks have one memory.
  float* numbers_of(int rank) {
    const int owner = real_ ? rank : 0;
    void* const shared = job_.shared_memory(owner);
    return shared != nullptr ? static_cast<float*>(shared) : &memory_[count_ * static_cast<std::size_t>(owner)];
  }
  void set_terms(std::int64_t bytes) {
    for (std::int64_t r = 0; r < job_.size(); ++r)
      for (std::int64_t i = 0; i < bytes / 4; ++i)
        numbers_of(static_cast<int>(r))[i] = static_cast<float>((r * 2654435761 + i * 40503) % 1000003) / 1000 - 500;
  }
  void require_equal_sums(std::int64_t bytes) {
    for (int r = 1; r < job_.size(); ++r)
      if (std::memcmp(numbers_of(r), numbers_of(0), static_cast<std::size_t>(bytes / 4 * 4)) != 0)
        throw std::runtime_error(fmt::format("rank {}'s sum of {} bytes is not rank 0's", r, bytes));
  }
  Collective sum_of(std::int64_t bytes, int rank) {
    return make_all_reduce({}, numbers_of(rank), bytes / 4, syncline::DType::kFloat32, Reduce::kSum);
  }
  template <class Of>
  std::vector<Of> of_all(const Of& of_a_rank) const {
    return std::vector<Of>(static_cast<std::size_t>(job_.size()), of_a_rank);
  }

  VirtualJob job_;
  const bool real_;
  const std::size_t count_;    // numbers of a rank
  std::vector<float> memory_;  // of ranks that are alone on their nodes
};

void print(const Options& options, int nodes, std::int64_t bytes, std::optional<double> simulated) {
  const double model = predicted_seconds(nodes, options.ranks_a_node, bytes, options.link);
  const double limit = 2 * (nodes - 1.) / nodes * static_cast<double>(bytes) / options.link.bandwidth;
  if (options.json) {
    fmt::print(R"({{"nodes": {}, "ranks_a_node": {}, "bytes": {}, "model": {}, "limit": {})", nodes,
               options.ranks_a_node, bytes, model, limit);
    if (simulated) fmt::print(R"(, "simulated": {})", *simulated);
    fmt::print("}}\n");
  } else {
    fmt::print("{:6} {:12} {:12.1f}", nodes, bytes, 1e6 * model);
    if (simulated) fmt::print(" {:12.1f} {:+8.1f}%", 1e6 * *simulated, 100 * (model / *simulated - 1));
    fmt::print(" {:12.1f} {:8.3f}\n", 1e6 * limit, simulated.value_or(model) / limit);
  }
  std::fflush(stdout);
}

void sums(const Options& options) {
  if (!options.json)
    fmt::print("{:>6} {:>12} {:>12}{} {:>12} {:>8}\n", "nodes", "bytes", "model, us",
               options.model_only ? "" : "  simul., us    error", "limit, us", "ratio");
  for (const int nodes : options.nodes) {
    std::optional<Simulation> simulation;
    if (!options.model_only) simulation.emplace(options, nodes, *std::ranges::max_element(options.sizes));
    for (const std::int64_t bytes : options.sizes)
      print(options, nodes, bytes, simulation ? std::optional(simulation->seconds(bytes)) : std::nullopt);
  }
}

void steps(const Options& options) {
  const Step step = read_step(options.step);
  if (!options.json) fmt::print("{:>6} {:>12} {:>12} {:>12}\n", "nodes", "compute, ms", "step, ms", "efficiency");
  for (const int nodes : options.nodes) {
    const double seconds = Simulation(options, nodes, step.most).seconds(step);
    if (options.json)
      fmt::print("{{\"nodes\": {}, \"ranks_a_node\": {}, \"compute\": {}, \"step\": {}}}\n", nodes,
                 options.ranks_a_node, step.computes, seconds);
    else
      fmt::print("{:6} {:12.3f} {:12.3f} {:12.4f}\n", nodes, 1e3 * step.computes, 1e3 * seconds,
                 step.computes / seconds);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  if (options.step.empty()) sums(options);
  else steps(options);
} catch (const std::exception& error) {
  fmt::print(stderr, "simulate: {}\n", error.what());
  return 1;
}
