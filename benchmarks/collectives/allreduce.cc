// Times all-reduce of float32 under mpirun: Syncline's, of a buffer in shared memory and of one in ordinary memory; one
// MPI_Allreduce with MPI's defaults; and a bare loop over a shared window, the limit of one node. Checks the results,
// times the contenders in turn, and prints medians over the repetitions. The time of a call is that of its slowest
// rank; GB/s are the buffer's bytes divided by that time.
//   mpirun -n 2 build/release/benchmarks/allreduce [--json]
// scripts/bench also times PyTorch's gloo.
//
// With --table FILE, on ranks of several nodes: times both algorithms of collectives between nodes, and writes a table
// of the faster ones for the option `algorithms`. FILE may have rows of other numbers of nodes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "benchmarks/collectives/contenders.h"
#include "benchmarks/collectives/table.h"
#include "benchmarks/collectives/timing.h"
#include "syncline/distributed/keras_json.h"
#include "syncline/distributed/make_communicator.h"
#include "syncline/error.h"

namespace syncline::benchmarks {
namespace {

struct Settings {
  std::vector<std::int64_t> bytes;
  int repetitions = 7;
  bool json = false;
  std::string table = {};  // empty: none is written
};

std::vector<std::int64_t> all_sizes() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 4; bytes <= 256 << 20; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

// Checks a sum of small integers, which is exact in any order. Throws CommError.
void check(Named& named, const comm::Communicator& comm, std::int64_t count) {
  float* data = named.contender->data();
  for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<float>((comm.rank() + 1) * (i % 7 + 1));
  named.contender->call(count);
  const int ranks = comm.size() * (comm.size() + 1) / 2;
  for (std::int64_t i = 0; i < count; ++i)
    if (data[i] != static_cast<float>(ranks * (i % 7 + 1)))
      fail<CommError>(named.name, ": element ", i, " of ", count, " is ", data[i], " on rank ", comm.rank(), ", not ",
                      ranks * (i % 7 + 1));
}

void print(const std::vector<Named>& contenders, std::int64_t bytes, int ranks, bool json) {
  nlohmann::ordered_json line{{"bytes", bytes}, {"ranks", ranks}};
  std::string row = fmt::format("{:>10}", bytes);
  for (const Named& named : contenders) {
    const double seconds = named.median();
    line[fmt::format("{}_gbs", named.name)] = static_cast<double>(bytes) / seconds * 1e-9;
    line[fmt::format("{}_us", named.name)] = seconds * 1e6;
    row += fmt::format("{:>12.3f}{:>12.2f}", static_cast<double>(bytes) / seconds * 1e-9, seconds * 1e6);
  }
  fmt::print("{}\n", json ? line.dump() : row);
  std::fflush(stdout);
}

void print_head(const std::vector<Named>& contenders) {
  std::string head = fmt::format("{:>10}", "bytes");
  for (const Named& named : contenders) head += fmt::format("{:>12}{:>12}", fmt::format("{} GB/s", named.name), "us");
  fmt::print("{}\n", head);
}

std::vector<Named> make_contenders(comm::Communicator& comm, std::int64_t bytes) {
  std::vector<Named> contenders;
  contenders.push_back({"syncline", make_syncline(comm, bytes), {}});
  contenders.push_back({"copied", make_copied(comm, bytes), {}});
  contenders.push_back({"mpi", make_mpi(bytes), {}});
  if (auto window = make_window(bytes)) contenders.push_back({"limit", std::move(window), {}});
  return contenders;
}

void run(comm::Communicator& comm, const Settings& settings) {
  std::vector<Named> contenders =
      make_contenders(comm, *std::max_element(settings.bytes.begin(), settings.bytes.end()));
  for (const std::int64_t bytes : settings.bytes)
    for (Named& named : contenders) check(named, comm, bytes / static_cast<std::int64_t>(sizeof(float)));
  if (comm.rank() == 0 && contenders.size() < 4)
    fmt::print(stderr, "allreduce: no window: the ranks are on several nodes, or /dev/shm is too small\n");
  if (comm.rank() == 0 && !settings.json) print_head(contenders);
  for (const std::int64_t bytes : settings.bytes) {
    time_in_turn(contenders, bytes / static_cast<std::int64_t>(sizeof(float)), settings.repetitions, comm.size());
    if (comm.rank() == 0) print(contenders, bytes, comm.size(), settings.json);
  }
}

}  // namespace
}  // namespace syncline::benchmarks

int main(int argc, char** argv) {
  using namespace syncline;
  benchmarks::Settings settings{.bytes = benchmarks::all_sizes()};
  CLI::App app("Times all-reduce of float32: ours, MPI's, and what the memory of one node allows.");
  app.add_option("--bytes", settings.bytes, "Sizes of the buffer")->delimiter(',')->check(CLI::Range(4, 1 << 30));
  app.add_option("--repetitions", settings.repetitions, "Samples, the median of which counts")
      ->check(CLI::PositiveNumber);
  CLI::Option* const json = app.add_flag("--json", settings.json, "One JSON object a line");
  app.add_option("--table", settings.table, "Write a table of algorithms to this file")->excludes(json);
  CLI11_PARSE(app, argc, argv);
  const auto options = [] { return comm::options_for_threads(1, keras_json().comm); };
  return comm::run_job("allreduce", options, [&](comm::Communicator& comm) {
    if (comm.size() == 1) fail("run it with mpirun -n 2 or more");
    if (settings.table.empty()) benchmarks::run(comm, settings);
    else benchmarks::write_algorithm_table(comm, options(), settings.bytes, settings.repetitions, settings.table);
  });
}
