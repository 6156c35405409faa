// LocalJob: what ranks that are threads of one process share: their memory, and the letters between "nodes".
//
// Ranks may be told apart into nodes, so that what happens between nodes is tested without any. Shared by its ranks'
// wires; safe to use from all of them.
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
  explicit LocalJob(std::vector<int> node_of_rank);

  // Of one rank.
  Topology topology(int rank) const;
  std::unique_ptr<NodeMemory> memory(int rank);
  std::unique_ptr<Network> network(int rank);
  // Of some of the ranks: what one of them asks for first, second, ... is the same job for all of them. `rank` is its
  // number among them.
  std::shared_ptr<LocalJob> group(const std::vector<int>& ranks, int rank);

 private:
  friend class HeapMemory;
  friend class HeapNetwork;
  using Letter = std::vector<std::byte>;
  using Address = std::tuple<int, int, int>;  // from, to, channel

  // A meeting of a node's ranks at one allocation.
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

  const std::vector<int> node_of_rank_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<Address, std::deque<Letter>> letters_;
  std::map<int, Gathering> gatherings_;
  std::map<std::pair<std::vector<int>, int>, int> groups_asked_for_;  // by whom, how often
  std::map<std::pair<std::vector<int>, int>, Pending> groups_;        // the how manieth of these ranks
};

}  // namespace syncline::comm
