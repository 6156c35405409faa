// Simulates all-reduces of many nodes with one rank each in virtual time (comm/local/virtual_job.h), and prints for
// each the time and the limit that the links' bandwidth sets. The times do not depend on the machine; messages have no
// bytes.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <vector>

#include "comm/local/virtual_job.h"

namespace {

using namespace syncline::comm;

struct Options {
  std::vector<int> nodes{8, 16, 64, 512, 767, 999, 1000, 1024};
  std::vector<std::int64_t> sizes{4, 64 << 10, 1 << 20, 25 << 20};
  VirtualLink link;
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Simulates all-reduces of many nodes, one rank each."};
  app.add_option("--nodes", options.nodes, "numbers of nodes")->delimiter(',')->check(CLI::Range(2, 4096));
  app.add_option("--bytes", options.sizes, "sizes in bytes")->delimiter(',')->check(CLI::Range(4, 1 << 30));
  app.add_option("--latency", options.link.latency, "of a message, in seconds")->check(CLI::NonNegativeNumber);
  app.add_option("--bandwidth", options.link.bandwidth, "of a node's link, in bytes/s")->check(CLI::PositiveNumber);
  app.add_option("--overhead", options.link.overhead, "of a message at its sender, in seconds")
      ->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::exit(app.exit(e));
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::vector<float> zeros(static_cast<std::size_t>(*std::ranges::max_element(options.sizes) / 4 + 1));
  fmt::print("{:>6} {:>12} {:>12} {:>12} {:>8}\n", "nodes", "bytes", "us", "limit, us", "ratio");
  for (const int nodes : options.nodes) {
    std::vector<int> node_of_rank(static_cast<std::size_t>(nodes));
    std::iota(node_of_rank.begin(), node_of_rank.end(), 0);
    VirtualJob job({.node_of_rank = node_of_rank, .link = options.link, .lengths_only = true});
    for (const std::int64_t bytes : options.sizes) {
      const Collective sum = make_all_reduce({}, zeros.data(), bytes / 4, syncline::DType::kFloat32, Reduce::kSum);
      const double seconds = job.run(std::vector<Collective>(node_of_rank.size(), sum));
      const double limit = 2 * (nodes - 1.) / nodes * static_cast<double>(bytes) / options.link.bandwidth;
      fmt::print("{:6} {:12} {:12.1f} {:12.1f} {:8.3f}\n", nodes, bytes, 1e6 * seconds, 1e6 * limit, seconds / limit);
      std::fflush(stdout);
    }
  }
}
