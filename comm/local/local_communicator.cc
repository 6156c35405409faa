#include "comm/local/local_communicator.h"

#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/local/local_job.h"
#include "comm/shared/node_wire.h"
#include "syncline/distributed/ending.h"

namespace syncline::comm {
namespace {

std::unique_ptr<Wire> make_wire(LocalJob& job, int rank, const NodeWireOptions& options) {
  NodeParts parts{job.topology(rank), nullptr, job.memory(rank), job.network(rank)};
  parts.control = parts.memory->allocate(NodeControl::bytes_a_rank(options.staging_bytes / 2));
  return std::make_unique<NodeWire>(std::move(parts), options);
}

class LocalCommunicator : public WorkerCommunicator {
 public:
  LocalCommunicator(std::shared_ptr<LocalJob> job, int rank, const LocalOptions& options)
      : WorkerCommunicator(make_wire(*job, rank, {.format = options.format, .algorithms = options.algorithms}),
                           {.stall_limit = options.stall_limit, .wait_limit = options.limit}),
        job_(std::move(job)),
        options_(options) {}

  std::unique_ptr<Communicator> group(std::span<const int> ranks) override {
    const int rank = place_in_group(ranks, this->rank(), size());
    return std::make_unique<LocalCommunicator>(job_->group({ranks.begin(), ranks.end()}, rank), rank, options_);
  }

 private:
  const std::shared_ptr<LocalJob> job_;
  const LocalOptions options_;
};

}  // namespace

std::vector<std::unique_ptr<Wire>> make_local_wires(int size, std::vector<int> node_of_rank) {
  node_of_rank.resize(static_cast<std::size_t>(size), 0);
  const auto job = std::make_shared<LocalJob>(node_of_rank);
  std::vector<std::unique_ptr<Wire>> wires;
  for (int r = 0; r < size; ++r) wires.push_back(make_wire(*job, r, {}));
  return wires;
}

std::vector<std::unique_ptr<Communicator>> make_local_communicators(int size, const LocalOptions& options) {
  if (size < 1) fail("make_local_communicators: ", size, " ranks; there must be at least one");
  std::vector<int> nodes = options.node_of_rank;
  if (nodes.empty()) nodes.resize(static_cast<std::size_t>(size), 0);
  if (static_cast<int>(nodes.size()) != size)
    fail("make_local_communicators: ", nodes.size(), " nodes are given for ", size, " ranks; give one per rank");
  const auto job = std::make_shared<LocalJob>(std::move(nodes));
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(std::make_unique<LocalCommunicator>(job, r, options));
  return ranks;
}

void spawn_ranks(int size, const std::function<void(Communicator&)>& body, const LocalOptions& options) {
  auto ranks = make_local_communicators(size, options);
  std::mutex mutex;
  std::exception_ptr cause, consequence;
  const auto run_rank = [&](std::unique_ptr<Communicator> rank) {
    try {
      body(*rank);
    } catch (const RankGone&) {
      const std::lock_guard lock(mutex);
      if (!consequence) consequence = std::current_exception();
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!cause) cause = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (auto& rank : ranks) threads.emplace_back(run_rank, std::move(rank));
  for (std::thread& thread : threads) thread.join();
  if (cause || consequence) std::rethrow_exception(cause ? cause : consequence);
}

}  // namespace syncline::comm
