// Reports: what nodes tell each other while a collective stalls, so that every node can name the ranks that have not
// come.
//
// Only the thread that drives the wire calls exchange; any thread may call missing.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "comm/shared/node.h"
#include "comm/shared/node_control.h"

namespace syncline::comm {

class Reports {
 public:
  Reports(const Topology& topology, Network& network, const NodeControl& control);

  // Call it often while the rank waits. Twice a second, notes that the rank polls. Every millisecond, receives the
  // reports of other nodes: a rank that waits for memory of its node would otherwise not call MPI, which may hold back
  // the rest of a message that it counts as sent. If there are reports, or this node asks, sends the state of its ranks
  // to the other nodes, at most twice a second.
  void exchange(std::uint64_t round, bool asks);
  // The ranks of other nodes that have not come to the round, do not run, or are silent; "" if there are none. Silent
  // ranks may still come.
  Missing missing(std::uint64_t round) const;

 private:
  struct Report {
    std::uint64_t round = 0;
    std::uint32_t rank = 0;
    std::int32_t waits_for = -1;  // a node whose message is missing
    ProcessState state = ProcessState::kRuns;
    bool hangs = false;
    Position position;
  };
  struct Heard {
    Report report;
    Moment at;
  };

  void post(Moment now);
  int absent_node() const;
  std::set<int> awaited_nodes() const;

  const Topology& topology_;
  Network& network_;
  const NodeControl& control_;
  Moment posted_{}, looked_{}, received_{};
  std::vector<std::byte> incoming_;
  mutable std::mutex mutex_;    // guards heard_
  std::map<int, Heard> heard_;  // by rank: the newest report
};

}  // namespace syncline::comm
