// Predicts all-reduces of many nodes from the rounds of the wire (benchmarks/scaling/model.h) and, for nodes of one
// rank, simulates them in virtual time with the wire's own code (comm/local/virtual_job.h). Prints for each the times
// and the limit that the links' bandwidth sets. They do not depend on the machine; simulated messages have no bytes.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "benchmarks/scaling/model.h"

namespace {

using namespace syncline::comm;

struct Options {
  std::vector<int> nodes{8, 16, 64, 512, 767, 999, 1000, 1024};
  std::vector<std::int64_t> sizes{4, 64 << 10, 1 << 20, 25 << 20};
  int ranks_a_node = 1;
  VirtualLink link;
  bool model_only = false, json = false;

  bool simulates() const { return !model_only && ranks_a_node == 1; }
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Predicts and simulates all-reduces of many nodes."};
  app.add_option("--nodes", options.nodes, "numbers of nodes")->delimiter(',')->check(CLI::Range(2, 4096));
  app.add_option("--bytes", options.sizes, "sizes in bytes")->delimiter(',')->check(CLI::Range(4, 1 << 30));
  app.add_option("--ranks-a-node", options.ranks_a_node, "more than one: the model only")->check(CLI::Range(1, 64));
  app.add_option("--latency", options.link.latency, "of a message, in seconds")->check(CLI::NonNegativeNumber);
  app.add_option("--bandwidth", options.link.bandwidth, "of a node's link, in bytes/s")->check(CLI::PositiveNumber);
  app.add_option("--overhead", options.link.overhead, "of a message at its sender, in seconds")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--model", options.model_only, "the model only");
  app.add_flag("--json", options.json, "a line of JSON each");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  return options;
}

std::unique_ptr<VirtualJob> job_of(int nodes, const VirtualLink& link) {
  std::vector<int> node_of_rank(static_cast<std::size_t>(nodes));
  std::iota(node_of_rank.begin(), node_of_rank.end(), 0);
  return std::make_unique<VirtualJob>(VirtualOptions{.node_of_rank = node_of_rank, .link = link, .lengths_only = true});
}

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

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::int64_t most = options.simulates() ? *std::ranges::max_element(options.sizes) : 4;
  std::vector<float> zeros(static_cast<std::size_t>(most / 4 + 1));
  if (!options.json)
    fmt::print("{:>6} {:>12} {:>12}{} {:>12} {:>8}\n", "nodes", "bytes", "model, us",
               options.simulates() ? "  simul., us    error" : "", "limit, us", "ratio");
  for (const int nodes : options.nodes) {
    const auto job = options.simulates() ? job_of(nodes, options.link) : nullptr;
    for (const std::int64_t bytes : options.sizes) {
      const Collective sum = make_all_reduce({}, zeros.data(), bytes / 4, syncline::DType::kFloat32, Reduce::kSum);
      std::optional<double> simulated;
      if (job) simulated = job->run(std::vector<Collective>(static_cast<std::size_t>(nodes), sum));
      print(options, nodes, bytes, simulated);
    }
  }
}
