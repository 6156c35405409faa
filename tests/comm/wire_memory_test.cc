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

// What the first rank of a node allocates.
std::size_t allocated_by(const std::vector<int>& node_of_rank, int node, WireFormat format) {
  const NodeWireOptions options{.format = format};
  const auto job = std::make_shared<LocalJob>(node_of_rank);
  const Topology any = job->topology(0);
  const int rank = any.nodes[static_cast<std::size_t>(node)].front();
  const std::size_t before = allocated();
  NodeParts parts{job->topology(rank), nullptr, job->memory(rank), job->network(rank)};
  const int others = parts.topology.local_size() - 1;
  const std::size_t control = NodeControl::bytes_a_rank(options.staging_bytes / 2);
  parts.control = parts.memory->allocate(control);  // of all ranks of the node
  NodeWire wire(std::move(parts), options);
  const std::size_t after = allocated();
  wire.close(true);
  return after - before - static_cast<std::size_t>(others) * control;
}

TEST(WireMemory, OfAThousandNodes) {
  if (!io::kLimitMemory) GTEST_SKIP() << "a sanitizer replaces malloc";
  // The lists of 64,000 ranks, and small sums of many blocks of ranks, take more than 16 MiB.
  for (const auto& [ranks_a_node, most] : {std::pair{1, 16}, {4, 16}, {45, 18}, {64, 18}}) {
    std::vector<int> node_of_rank;
    for (int n = 0; n < 1000; ++n)  // node 500 has one rank
      node_of_rank.insert(node_of_rank.end(), static_cast<std::size_t>(n == 500 ? 1 : ranks_a_node), n);
    for (const WireFormat format : {WireFormat::kSame, WireFormat::kFloat16})
      for (const int node : {499, 500, 999}) {
        const std::size_t bytes = allocated_by(node_of_rank, node, format);
        EXPECT_GT(bytes, std::size_t{4} << 20) << "node " << node;
        EXPECT_LE(bytes, static_cast<std::size_t>(most) << 20)
            << "node " << node << ", " << ranks_a_node << " ranks a node";
      }
  }
}

}  // namespace
}  // namespace syncline::comm
