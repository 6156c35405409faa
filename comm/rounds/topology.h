// Topology: which ranks are on which node. Pure data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace syncline::comm {

// The whole job's numbers of a communicator's ranks. Texts name ranks by them, those of a group too.
struct JobNumbers {
  std::vector<int> numbers = {};  // of a group's ranks; empty: the communicator has all ranks
  int size = 0;                   // of the job

  int of(int rank) const { return numbers.empty() ? rank : numbers[static_cast<std::size_t>(rank)]; }
  // `ranks`: the group's, in this communicator.
  JobNumbers of_group(std::span<const int> ranks) const;
};

struct Topology {
  int rank = 0;                         // in the communicator
  int node = 0, local = 0;              // the rank's node, and its index there
  std::vector<std::vector<int>> nodes;  // ranks of each node; ranks are numbered by node
  int machines = 0;                     // fewer than nodes if ranks of one machine cannot share memory
  bool renumbered = false;              // the launcher's numbers are not by node
  JobNumbers job;

  int size() const;
  int shown(int rank) const { return job.of(rank); }  // in texts
  int node_count() const { return static_cast<int>(nodes.size()); }
  const std::vector<int>& own() const { return nodes[static_cast<std::size_t>(node)]; }
  int node_of(int rank) const;
  int local_size() const { return static_cast<int>(own().size()); }
  // "ranks 0-1 | 2-4" for two nodes. For a large job: the beginning and a digest.
  std::string describe() const;
  // Rail r is one rank of each node; these ranks exchange the r-th slice of the nodes' data. A node with fewer ranks
  // than rails has several rails on a rank. On a larger node, the first ranks have one rail each, the others none.
  int rails = 1;  // the node size that most ranks are on; of several such sizes the largest
  // The rails of local rank l of this node: first_rail(l) up to first_rail(l + 1).
  int first_rail(int l) const;
  int most_rails_of_a_rank() const;  // of the job
  // The rank of a node that has the rail.
  int rank_on_rail(int rail, int node) const;
};

// `node_of_rank`: the number of each rank's node (any numbers, equal on one node), by node.
Topology make_topology(int rank, std::span<const int> node_of_rank);
// The ranks by node, nodes by their first rank: the order in which a job numbers its ranks, so that those of a node
// are a run of the sums' tree. A launcher may number them otherwise (mpirun --map-by node).
std::vector<int> ranks_by_node(std::span<const int> node_of_rank);
// Where the bytes of each node's ranks begin in a gather's result; last: its size. `counts`: by rank.
void find_parts_of_nodes(const Topology& topology, std::span<const std::int64_t> counts,
                         std::vector<std::int64_t>& begin);

// The i-th of the other nodes, i = 1, 2, ...: each node begins its messages with the next one, so that no link gets all
// messages at once.
inline int other_node(int node, int i, int nodes) { return (node + i) % nodes; }

}  // namespace syncline::comm
