// The memory that a rank's wire needs in a large job, beside the plans' buckets.
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <vector>

#include "comm/local/local_job.h"
#include "comm/shared/node_wire.h"
#include "tests/io/memory_limit.h"

namespace syncline::comm {
namespace {

std::size_t allocated() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

// The wires of one node's ranks; other nodes have none.
std::vector<std::unique_ptr<NodeWire>> wires_of_node(LocalJob& job, int node, const NodeWireOptions& options) {
  std::vector<std::unique_ptr<NodeWire>> wires;
  const Topology topology = job.topology(0);
  for (const int rank : topology.nodes[static_cast<std::size_t>(node)]) {
    NodeParts parts{job.topology(rank), nullptr, job.memory(rank), job.network(rank)};
    parts.control = parts.memory->allocate(NodeControl::bytes_a_rank(options.staging_bytes / 2));
    wires.push_back(std::make_unique<NodeWire>(std::move(parts), options));
  }
  return wires;
}

TEST(WireMemory, OfAThousandNodesIsAtMostSixteenMebibytesARank) {
  if (!io::kLimitMemory) GTEST_SKIP() << "a sanitizer replaces malloc";
  for (const int ranks_a_node : {1, 4})
    for (const WireFormat format : {WireFormat::kSame, WireFormat::kFloat16, WireFormat::kBfloat16}) {
      std::vector<int> node_of_rank;
      for (int n = 0; n < 1000; ++n)  // node 500 has one rank
        node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(n == 500 ? 1 : ranks_a_node), n);
      const auto job = std::make_shared<LocalJob>(node_of_rank);
      for (const int node : {0, 499, 500, 999}) {
        const std::size_t before = allocated();
        const auto wires = wires_of_node(*job, node, {.format = format});
        const std::size_t a_rank = (allocated() - before) / wires.size();
        EXPECT_GT(a_rank, std::size_t{4} << 20) << "node " << node;
        EXPECT_LE(a_rank, std::size_t{16} << 20) << "node " << node << " with " << wires.size() << " ranks";
        for (const auto& wire : wires) wire->close(true);
      }
    }
}

}  // namespace
}  // namespace syncline::comm
