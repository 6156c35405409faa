#include "comm/mpi/mpi_communicator.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "base/affinity.h"
#include "comm/mpi/mpi_memory.h"
#include "comm/mpi/mpi_network.h"
#include "comm/nccl/with_nccl.h"
#include "comm/rounds/algorithms.h"
#include "comm/shared/node_wire.h"
#include "comm/worker/backoff.h"
#include "comm/worker/collective.h"
#include "comm/worker/stall_watch.h"
#include "syncline/timeline.h"

namespace syncline::comm {
namespace {

MpiHandle duplicate_world(const MpiOptions& options) {
  auto life = std::make_shared<MpiLife>(MpiSession::join());
  int size = 0;
  const LockedMpi mpi;
  check_mpi(mpi->world_size(&size), "MPI_Comm_size", "start");
  check_launch(options.launch, size);
  MpiComm comm = MpiComm::kNull;
  check_mpi(mpi->duplicate_world(&comm), "MPI_Comm_dup", "start");
  return {mpi, life, comm};
}

MpiHandle ranks_of_node(const MpiHandle& job) {
  const LockedMpi mpi;
  MpiComm comm = MpiComm::kNull;
  check_mpi(mpi->split_by_node(job.get(), job.rank(), &comm), "MPI_Comm_split_type", "start");
  return {mpi, job.life(), comm};
}

// What each rank tells about itself: the first rank of its machine; the first rank with which it shares memory, which
// identifies a node of the topology; and a digest of the options that must be equal.
using Place = std::array<int, 3>;

int digest_of(const MpiOptions& options) {
  const auto others = static_cast<std::uint64_t>(options.format) | std::uint64_t{options.share_memory} << 8 |
                      static_cast<std::uint64_t>(options.nccl) << 16;
  const std::uint64_t digest = digest_of(options.algorithms) + others;
  return static_cast<int>(static_cast<std::uint32_t>(digest ^ digest >> 32));
}

// Throws DisagreementError if the options differ.
std::vector<Place> gather_places(const MpiHandle& job, const MpiHandle& machine, bool shares,
                                 const MpiOptions& options) {
  const LockedMpi mpi;
  int first = job.rank();
  check_mpi(mpi->broadcast(&first, sizeof first, 0, machine.get()), "MPI_Bcast", "start");
  const Place own{first, shares ? first : job.rank(), digest_of(options)};
  std::vector<Place> all(static_cast<std::size_t>(job.size()));
  check_mpi(mpi->all_gather(own.data(), sizeof own, all.data(), job.get()), "MPI_Allgather", "start");
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r][2] != all[0][2])
      fail<DisagreementError>(
          "rank ", r, " has another wire format or table of algorithms than rank 0, or another transport; give all ",
          "ranks the same SYNCLINE_TRANSPORT and SYNCLINE_WIRE_FORMAT, and the same rows in the file of ",
          "SYNCLINE_ALGORITHMS");
  return all;
}

Topology topology_of(int rank, const std::vector<Place>& places) {
  std::vector<int> nodes;
  std::set<int> machines;
  for (const auto& [machine, node, options] : places) {
    machines.insert(machine);
    nodes.push_back(node);
  }
  Topology topology = make_topology(rank, nodes);
  topology.machines = static_cast<int>(machines.size());
  return topology;
}

// The number of processors on which the ranks of a machine may run, together.
int processors_of(const MpiHandle& machine) {
  using Set = std::bitset<4096>;
  Set own;
  for (const int processor : allowed_processors())
    if (static_cast<std::size_t>(processor) < own.size()) own.set(static_cast<std::size_t>(processor));
  std::vector<Set> all(static_cast<std::size_t>(machine.size()));
  const LockedMpi mpi;
  check_mpi(mpi->all_gather(&own, sizeof own, all.data(), machine.get()), "MPI_Allgather", "start");
  return static_cast<int>(std::reduce(all.begin(), all.end(), Set{}, std::bit_or{}).count());
}

// Adapts how ranks wait and transfer to the machine's processors, and numbers the machine's ranks.
MpiOptions adapt(MpiOptions options, const MpiHandle& machine) {
  const int processors = processors_of(machine);
  Backoff::set_crowded(processors > 0 && machine.size() > processors);
  options.launch.local_rank = machine.rank();  // also in groups: it selects the rank's GPU
  if (!options.worker.background)
    options.worker.background = machine.size() * options.worker.threads < std::max(processors, 1);
  return options;
}

// All ranks, numbered by machine, and whether the launcher numbers them otherwise.
std::pair<MpiHandle, bool> number_by_machine(MpiHandle world, const MpiHandle& machine, const MpiOptions& options) {
  std::vector<int> machines;
  for (const Place& place : gather_places(world, machine, true, options)) machines.push_back(place[0]);
  const std::vector<int> order = ranks_by_node(machines);
  if (std::ranges::is_sorted(order)) return {std::move(world), false};
  const LockedMpi mpi;
  MpiComm comm = MpiComm::kNull;
  check_mpi(mpi->group(world.get(), order.data(), world.size(), &comm), "MPI_Comm_create_group", "start");
  return {MpiHandle(mpi, world.life(), comm), true};
}

std::unique_ptr<Wire> maybe_with_nccl(std::unique_ptr<Wire> wire, const MpiOptions& options) {
  if (options.nccl == UseNccl::kNever) return wire;
  NcclOptions nccl = read_nccl_environment(options.launch);
  nccl.limit = 0.9 * options.worker.wait_limit;
  nccl.tell = [](const std::string& line) { std::fprintf(stderr, "syncline: %s\n", line.c_str()); };
  nccl.tells_choice = options.verbose && wire->rank() == 0;
  return with_nccl(std::move(wire), nccl);
}

std::unique_ptr<Wire> make_wire(MpiHandle job, const MpiOptions& options, const JobNumbers& numbers, bool renumbered) {
  const NodeWireOptions wire{.format = options.format, .algorithms = options.algorithms};
  NodeParts parts;
  MpiHandle node = ranks_of_node(job);
  const int rank = job.rank(), neighbours = node.size();
  const std::size_t bytes = NodeControl::bytes_a_rank(wire.staging_bytes / 2);
  auto memory = std::make_unique<MpiMemory>(std::move(node), options.worker);
  if (options.share_memory && neighbours > 1) {
    parts.control = memory->allocate(bytes);
    if (!parts.control && memory->node().rank() == 0)
      std::fprintf(
          stderr,
          "syncline: the %d ranks of rank %d's node exchange messages, which is slower than shared memory: %s\n",
          neighbours, numbers.of(rank), memory->why().c_str());
  }
  const bool shares = parts.control != nullptr;
  parts.topology = topology_of(rank, gather_places(job, memory->node(), shares, options));
  parts.topology.renumbered = renumbered;
  parts.topology.job = numbers;
  if (!shares) parts.control = make_private_window(bytes);
  parts.memory = std::move(memory);
  parts.network = std::make_unique<MpiNetwork>(std::move(job), parts.topology, options.worker);
  return maybe_with_nccl(std::make_unique<NodeWire>(std::move(parts), wire), options);
}

class MpiCommunicator : public WorkerCommunicator {
 public:
  MpiCommunicator(MpiHandle job, const MpiOptions& options, const JobNumbers& numbers, bool renumbered)
      : MpiCommunicator(job.life()->session, job.get(), std::move(job), options, numbers, renumbered) {}

  [[noreturn]] void abort_job(int exit_code) override {
    timeline::flush();
    abort_mpi(exit_code);
  }

  std::unique_ptr<Communicator> group(std::span<const int> ranks) override {
    place_in_group(ranks, rank(), size());
    const StallWatch watch(
        options_.worker,
        [&] {
          return Missing{join_text("rank ", numbers_.of(rank()), " of ", numbers_.size, " waits for all ", ranks.size(),
                                   " ranks of a group to create it")};
        },
        abort_mpi);
    return std::make_unique<MpiCommunicator>(handle_of(ranks), options_, numbers_.of_group(ranks), renumbered_);
  }

 private:
  MpiCommunicator(std::shared_ptr<MpiSession> session, MpiComm comm, MpiHandle&& job, const MpiOptions& options,
                  const JobNumbers& numbers, bool renumbered)
      : WorkerCommunicator(make_wire(std::move(job), options, numbers, renumbered), options.worker),
        session_(std::move(session)),
        comm_(comm),
        options_(options),
        numbers_(numbers),
        renumbered_(renumbered) {}

  MpiHandle handle_of(std::span<const int> ranks) const {
    const LockedMpi mpi;
    MpiComm comm = MpiComm::kNull;
    check_mpi(mpi->group(comm_, ranks.data(), static_cast<int>(ranks.size()), &comm), "MPI_Comm_create_group", "group");
    return {mpi, std::make_shared<MpiLife>(session_), comm};
  }

  const std::shared_ptr<MpiSession> session_;
  const MpiComm comm_;  // the wire's
  const MpiOptions options_;
  const JobNumbers numbers_;
  const bool renumbered_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions& options) {
  // MPI's start calls have no time limit, and MPI_Abort cannot be called during one.
  const Launch& launch = options.launch;
  const StallWatch watch(
      options.worker,
      [&] {
        const std::string of = launch.size > 0 ? join_text(" of ", launch.size) : "";
        return Missing{join_text(
            "rank ", launch.rank, of,
            " is starting and waits for the other ranks to join: one has ended before it joined, or starts late")};
      },
      [](int exit_code) {
        std::fflush(nullptr);
        std::_Exit(exit_code);
      });
  MpiHandle world = duplicate_world(options);
  const MpiHandle machine = ranks_of_node(world);
  const MpiOptions adapted = adapt(options, machine);
  auto [job, renumbered] = number_by_machine(std::move(world), machine, adapted);
  const JobNumbers numbers{.size = job.size()};
  return std::make_unique<MpiCommunicator>(std::move(job), adapted, numbers, renumbered);
}

}  // namespace syncline::comm
