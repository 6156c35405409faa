#include "comm/rounds/topology.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/digest.h"
#include "syncline/error.h"

namespace syncline::comm {

JobNumbers JobNumbers::of_group(std::span<const int> ranks) const {
  JobNumbers group{.size = size};
  for (const int rank : ranks) group.numbers.push_back(of(rank));
  return group;
}

int Topology::size() const {
  std::size_t ranks = 0;
  for (const auto& node_ranks : nodes) ranks += node_ranks.size();
  return static_cast<int>(ranks);
}

int Topology::node_of(int rank) const {
  const auto after = std::ranges::upper_bound(nodes, rank, {}, [](const std::vector<int>& ranks) { return ranks[0]; });
  return static_cast<int>(after - nodes.begin()) - 1;
}

int Topology::first_rail(int l) const {
  const int hosts = std::min(local_size(), rails);
  return l < hosts ? (l * rails + hosts - 1) / hosts : rails;
}

int Topology::most_rails_of_a_rank() const {
  const auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  const int hosts = std::min(static_cast<int>(std::ranges::min_element(nodes, smaller)->size()), rails);
  return (rails + hosts - 1) / hosts;
}

int Topology::rank_on_rail(int rail, int node) const {
  const std::vector<int>& ranks = nodes[static_cast<std::size_t>(node)];
  const int hosts = std::min(static_cast<int>(ranks.size()), rails);
  return ranks[static_cast<std::size_t>(rail * hosts / rails)];
}

std::string Topology::describe() const {
  std::string text = "ranks";
  for (const std::vector<int>& ranks : nodes) {
    text += join_text(&ranks == nodes.data() ? " " : " | ", ranks.front());
    if (ranks.size() > 1) text += join_text('-', ranks.back());
  }
  constexpr std::size_t kMost = 300;
  if (text.size() <= kMost) return text;
  return join_text(text.substr(0, kMost), "..., in all ", digest_bytes(text.data(), text.size()));
}

std::vector<int> ranks_by_node(std::span<const int> node_of_rank) {
  std::map<int, std::vector<int>> nodes;  // by the first rank
  std::map<int, int> first;               // rank of a node
  for (int r = 0; r < static_cast<int>(node_of_rank.size()); ++r)
    nodes[first.emplace(node_of_rank[static_cast<std::size_t>(r)], r).first->second].push_back(r);
  std::vector<int> ranks;
  for (const auto& [_, of_node] : nodes) ranks.insert(ranks.end(), of_node.begin(), of_node.end());
  return ranks;
}

void find_parts_of_nodes(const Topology& topology, std::span<const std::int64_t> counts,
                         std::vector<std::int64_t>& begin) {
  begin.assign(1, 0);
  for (const std::vector<int>& ranks : topology.nodes) {
    const auto first = counts.begin() + ranks.front();
    begin.push_back(std::accumulate(first, first + std::ssize(ranks), begin.back()));
  }
}

namespace {

int rails_of(const std::vector<std::vector<int>>& nodes) {
  std::map<std::size_t, std::size_t> ranks_on;  // by size of node: the ranks on such nodes
  for (const std::vector<int>& ranks : nodes) ranks_on[ranks.size()] += ranks.size();
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  return static_cast<int>(std::max_element(ranks_on.rbegin(), ranks_on.rend(), fewer)->first);  // ties: the larger node
}

}  // namespace

Topology make_topology(int rank, std::span<const int> node_of_rank) {
  SYNCLINE_CHECK(rank >= 0 && rank < static_cast<int>(node_of_rank.size()));
  SYNCLINE_CHECK(std::ranges::is_sorted(ranks_by_node(node_of_rank)));
  Topology topology;
  topology.rank = rank;
  std::map<int, int> index;
  for (int r = 0; r < static_cast<int>(node_of_rank.size()); ++r) {
    const auto [it, fresh] = index.emplace(node_of_rank[static_cast<std::size_t>(r)], topology.node_count());
    if (fresh) topology.nodes.emplace_back();
    auto& ranks = topology.nodes[static_cast<std::size_t>(it->second)];
    if (r == rank) {
      topology.node = it->second;
      topology.local = static_cast<int>(ranks.size());
    }
    ranks.push_back(r);
  }
  topology.machines = topology.node_count();
  topology.rails = rails_of(topology.nodes);
  topology.job.size = topology.size();
  return topology;
}

}  // namespace syncline::comm
