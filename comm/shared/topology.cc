#include <algorithm>
#include <map>

#include "base/error.h"
#include "comm/shared/node.h"

namespace syncline::comm {

int Topology::size() const {
  std::size_t ranks = 0;
  for (const auto& node_ranks : nodes) ranks += node_ranks.size();
  return static_cast<int>(ranks);
}

int Topology::lanes() const {
  const auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  return static_cast<int>(std::min_element(nodes.begin(), nodes.end(), smaller)->size());
}

namespace {

class PrivateWindow : public Window {
 public:
  explicit PrivateWindow(std::size_t bytes) : memory_(std::make_unique<Page[]>(bytes / sizeof(Page) + 1)) {
    parts_.push_back(memory_[0].bytes);
  }

 private:
  struct Page {
    alignas(4096) std::byte bytes[4096];
  };
  const std::unique_ptr<Page[]> memory_;
};

}  // namespace

std::unique_ptr<Window> make_private_window(std::size_t bytes) { return std::make_unique<PrivateWindow>(bytes); }

Topology make_topology(int rank, std::span<const int> node_of_rank) {
  SYNCLINE_CHECK(rank >= 0 && rank < static_cast<int>(node_of_rank.size()));
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
  return topology;
}

}  // namespace syncline::comm
