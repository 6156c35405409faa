#include "benchmarks/collectives/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "benchmarks/collectives/timing.h"
#include "comm/rounds/topology.h"
#include "comm/worker/worker.h"
#include "io/files/atomic_file.h"
#include "runtime/session/algorithm_file.h"
#include "runtime/session/json_file.h"
#include "syncline/error.h"

namespace syncline::benchmarks {
namespace {

using comm::Algorithm;
using Json = nlohmann::ordered_json;
using Make = std::unique_ptr<Contender> (*)(comm::Communicator&, std::int64_t);

struct Shape {
  int nodes = 0, rails = 0, most_rails_of_a_rank = 0;
};

Shape shape_of(comm::Communicator& comm) {
  const std::int32_t index = comm.node_place().index;
  std::vector<std::int32_t> indices(static_cast<std::size_t>(comm.size()));
  const std::vector<std::int64_t> counts(indices.size(), sizeof index);
  comm.wait(comm.all_gather({}, &index, indices.data(), counts));
  std::vector<int> node_of_rank;  // ranks are numbered by node
  for (const std::int32_t of_rank : indices)
    node_of_rank.push_back(node_of_rank.empty() ? 0 : node_of_rank.back() + (of_rank == 0 ? 1 : 0));
  const comm::Topology topology = comm::make_topology(comm.rank(), node_of_rank);
  return {topology.node_count(), topology.rails, topology.most_rails_of_a_rank()};
}

const char* name_of(Algorithm algorithm) { return algorithm == Algorithm::kDirect ? "direct" : "halves"; }

// One communicator for each algorithm.
struct Job {
  Algorithm algorithm;
  std::unique_ptr<comm::Communicator> comm;
};

std::vector<Job> make_jobs(comm::CommOptions options) {
  std::vector<Job> jobs;
  for (const Algorithm algorithm : {Algorithm::kDirect, Algorithm::kHalves}) {
    const std::vector<comm::AlgorithmTable::Row> always{{.algorithm = algorithm}};
    options.algorithms = {always, always, always};
    jobs.push_back({algorithm, make_communicator(options)});
  }
  return jobs;
}

// The ranks of a node exchange data through shared memory, as buckets of gradients do; a job without would be slower.
void require_shared_memory(std::vector<Job>& jobs, std::int64_t bytes) {
  for (const Job& job : jobs) {
    const bool alone = job.comm->node_place().ranks == 1;
    std::int32_t has = alone || job.comm->shared_memory(static_cast<std::size_t>(bytes)) != nullptr ? 1 : 0;
    job.comm->wait(job.comm->all_reduce({}, &has, 1, DType::kInt32, comm::Reduce::kMin));
    if (has == 0)
      fail<ValueError>("--table: a node has no shared memory for ", jobs.size(), " buffers of ", bytes,
                       " bytes a rank; enlarge /dev/shm, or give smaller --bytes");
  }
}

// The faster algorithm for a size, by what it does.
class Races {
 public:
  Races(std::vector<Job>& jobs, const char* what, Make make, std::int64_t most, int repetitions)
      : jobs_(jobs), what_(what), repetitions_(repetitions) {
    for (Job& job : jobs) contenders_.push_back({name_of(job.algorithm), make(*job.comm, most)});
  }

  Algorithm faster(std::int64_t bytes) {
    const comm::Communicator& comm = *jobs_.front().comm;
    time_in_turn(contenders_, bytes / static_cast<std::int64_t>(sizeof(float)), repetitions_, comm.size());
    const double direct = contenders_[0].median(), halves = contenders_[1].median();
    if (comm.rank() == 0) fmt::print("{:>8}{:>12}{:>14.2f}{:>14.2f}\n", what_, bytes, direct * 1e6, halves * 1e6);
    return direct <= halves ? Algorithm::kDirect : Algorithm::kHalves;
  }

 private:
  std::vector<Job>& jobs_;
  const char* const what_;
  const int repetitions_;
  std::vector<Named> contenders_;
};

// The rows of one collective. A row ends half way, on a logarithmic scale, between two sizes with different winners.
Json rows_of(Races& races, const std::vector<std::int64_t>& sizes, const Shape& shape) {
  Json rows = Json::array();
  const auto add = [&](Algorithm algorithm) -> Json& {
    return rows.emplace_back(Json{{"nodes", shape.nodes}, {"algorithm", name_of(algorithm)}});
  };
  Algorithm last = races.faster(sizes.front());
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const Algorithm next = races.faster(sizes[i]);
    if (next == last) continue;
    const double middle = std::sqrt(static_cast<double>(sizes[i - 1]) * static_cast<double>(sizes[i]));
    add(last)["bytes"] = std::llround(middle / shape.nodes / shape.rails);
    last = next;
  }
  add(last);
  return rows;
}

// `path`'s rows with the measured ones in place of those of this number of nodes, in the order in which the first that
// fits counts.
Json merge(const std::string& path, Json tables, int nodes) {
  if (!std::filesystem::exists(path)) return tables;
  const Json before = read_json_file(path, "give another path");
  for (auto& [name, rows] : tables.items()) {
    if (!before.contains(name)) continue;
    std::map<std::int64_t, std::vector<Json>> by_nodes;
    for (const Json& row : before[name])
      if (const auto of = row.value("nodes", std::int64_t{comm::AlgorithmTable::kAnyNodes}); of != nodes)
        by_nodes[of].push_back(row);
    by_nodes[nodes].assign(rows.begin(), rows.end());
    rows.clear();
    for (const auto& [_, of] : by_nodes) std::ranges::copy(of, std::back_inserter(rows));
  }
  for (const auto& [name, rows] : before.items())
    if (!tables.contains(name)) tables[name] = rows;
  return tables;
}

void write(const std::string& path, const Json& tables) {
  const std::string text = tables.dump(1) + '\n';
  io::write_file_durably(path, std::as_bytes(std::span(text)));
}

}  // namespace

void write_algorithm_table(comm::Communicator& comm, const comm::CommOptions& options,
                           std::span<const std::int64_t> sizes, int repetitions, const std::string& path) {
  const Shape shape = shape_of(comm);
  if (options.transport == comm::Transport::kNccl)
    fail<ValueError>("--table: NCCL chooses its algorithms itself; set SYNCLINE_TRANSPORT to auto or mpi");
  if (shape.nodes < 2) fail<ValueError>("--table: the ranks are on one node; start them on two nodes or more");
  std::vector<std::int64_t> large;
  std::ranges::copy_if(sizes, std::back_inserter(large), [](std::int64_t bytes) { return bytes > comm::kSmallBytes; });
  std::ranges::sort(large);
  if (comm.rank() == 0 && std::filesystem::exists(path)) read_algorithm_file(path);  // throws if it is damaged
  if (large.empty()) fail<ValueError>("--table: give a size above ", comm::kSmallBytes, " bytes");
  std::vector<Job> jobs = make_jobs(options);
  require_shared_memory(jobs, large.back());
  if (comm.rank() == 0) fmt::print("{:>8}{:>12}{:>14}{:>14}\n", "", "bytes", "direct us", "halves us");
  Json tables;
  const auto race = [&](const char* name, Make make, const std::vector<std::int64_t>& of) {
    Races races(jobs, name, make, of.back(), repetitions);
    tables[name] = rows_of(races, of, shape);
  };
  race("meetings", &make_copied, {sizeof(float)});
  race("sums", &make_syncline, large);
  std::vector<std::int64_t> packed;
  std::ranges::copy_if(large, std::back_inserter(packed), [&](std::int64_t bytes) {
    return bytes / shape.rails * shape.most_rails_of_a_rank <= comm::AlgorithmTable::kMostPacked;
  });
  if (!packed.empty()) race("gathers", &make_gather, packed);
  if (comm.rank() == 0) write(path, merge(path, std::move(tables), shape.nodes));
}

}  // namespace syncline::benchmarks
