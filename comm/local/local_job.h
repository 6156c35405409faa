// LocalJob: the state that ranks as threads of one process share: memory, and messages between "nodes".
//
// The ranks can be divided into nodes, so that tests cover inter-node code in one process. The wires of all ranks share
// the object; all calls are thread-safe.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/shared/node.h"

namespace syncline::comm {

class LocalJob : public std::enable_shared_from_this<LocalJob> {
 public:
  // `node_of_rank` of the launcher's ranks; those of the job are numbered by node.
  explicit LocalJob(const std::vector<int>& node_of_rank, JobNumbers numbers = {});

  // The parts of one rank's wire.
  Topology topology(int rank) const;
  std::unique_ptr<NodeMemory> memory(int rank);
  std::unique_ptr<Network> network(int rank);
  // The job of a subset of the ranks. `rank` is the caller's index in `ranks`. The n-th calls of all members with the
  // same `ranks` return the same job.
  std::shared_ptr<LocalJob> group(const std::vector<int>& ranks, int rank);

 private:
  friend class HeapMemory;
  friend class HeapNetwork;
  using Letter = std::vector<std::byte>;
  using Address = std::tuple<int, int, int>;  // from, to, channel

  // The ranks of one node that join one allocation.
  struct Gathering {
    std::shared_ptr<std::vector<std::byte>> memory;
    int joined = 0;
  };
  struct Pending {
    std::shared_ptr<LocalJob> job;
    std::size_t joined = 0;
  };

  std::shared_ptr<std::vector<std::byte>> join(int node, int ranks, std::size_t bytes);
  void send(const Address& address, Letter letter);
  bool receive(const Address& address, Letter& letter);
  bool has(const Address& address) const;

  std::vector<int> node_of_rank_;  // by node; constant after construction, like the next one
  JobNumbers numbers_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<Address, std::deque<Letter>> letters_;
  std::map<int, Gathering> gatherings_;
  std::map<std::pair<std::vector<int>, int>, int> groups_asked_for_;  // calls so far, by (ranks, caller)
  std::map<std::pair<std::vector<int>, int>, Pending> groups_;        // by (ranks, call number)
};

}  // namespace syncline::comm
