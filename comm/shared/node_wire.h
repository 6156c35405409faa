// NodeWire: collectives over memory shared within a node and messages between nodes.
//
// Ranks meet in the node's control block (comm/shared/node_control.h). Between nodes, the first rank of each node meets
// the others (comm/shared/meeting.h), and the rest of its node waits for it. Then the ranks have agreed, and
// - a small collective is over: on one node, every rank reads all ranks' values from the control block; between nodes,
//   they have come with the agreement.
// - a large reduction (comm/shared/reduction.h): each rank reduces its slice of all ranks' buffers, in the shared
//   region or, chunk by chunk, in staging memory. Between nodes, the ranks of a rail exchange their slices.
// - a large gather (comm/shared/gather.h): each node collects the bytes of its ranks, and the ranks of a rail
//   exchange slices of them.
// - a large broadcast is such a gather on one node, and such a reduction between nodes, to which only the root adds.
// Sums follow one tree over the ranks (comm/rounds/sum_tree.h). MPI only moves bytes.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/shared/gather.h"
#include "comm/shared/meeting.h"
#include "comm/shared/node.h"
#include "comm/shared/node_control.h"
#include "comm/shared/reduction.h"
#include "comm/shared/reports.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

struct NodeWireOptions {
  WireFormat format = WireFormat::kSame;               // between nodes
  AlgorithmTable algorithms = {};                      // between nodes
  std::size_t staging_bytes = std::size_t{512} << 10;  // per rank
};

// What NodeWire needs. All ranks make it together.
struct NodeParts {
  Topology topology;
  std::unique_ptr<Window> control;
  std::unique_ptr<NodeMemory> memory;
  std::unique_ptr<Network> network;
};

class NodeWire : public Wire {
 public:
  NodeWire(NodeParts parts, const NodeWireOptions& options);

  int rank() const override { return topology_.rank; }
  int size() const override { return size_; }
  int shown(int rank) const override { return topology_.shown(rank); }
  int job_size() const override { return topology_.job.size; }
  void begin(const Collective& collective) override;
  Progress poll(const Collective& collective) override;
  void answer() override;
  void post_note(std::uint64_t note) override { network_->post_note(note); }
  std::optional<std::uint64_t> take_note() override { return network_->take_note(); }
  std::byte* shared_memory() const override { return region_ == nullptr ? nullptr : region_->part(topology_.local); }
  const std::byte* shared_memory_of(int rank) const override {
    return region_ == nullptr || !one_node() ? nullptr : region_->part(rank);
  }
  bool one_node() const override { return topology_.node_count() == 1; }
  NodePlace node_place() const override;
  NodeBlock take_node_memory() override;
  void publish(const Position& position) noexcept override { control_.publish(position); }
  std::string describe() const override;
  std::string layout() const override;
  bool adds_along_tree() const override { return format_ == WireFormat::kSame; }
  std::string nodes() const override { return topology_.describe(); }
  std::optional<Arrival> last_arrival() const override { return last_arrival_; }
  Missing missing() const override;
  std::uint64_t moved() const noexcept override;
  bool lowest_living() const override { return topology_.node == 0 && control_.lowest_living(); }
  void ask_around() noexcept override { asked_ = true; }
  void cancel() noexcept override;
  bool close(bool clean) noexcept override;

 private:
  bool leads() const { return topology_.local == 0; }
  std::uint64_t offset_of(const Collective& collective) const;
  bool agrees(const Collective& collective);
  bool arrange(const Collective& collective);
  Steps steps(const Collective& collective);
  void end_stall();
  void note_last_arrival();
  void make_region(const Collective& collective);
  void make_node_memory(const Collective& collective);

  const Topology topology_;
  const WireFormat format_;
  const AlgorithmTable algorithms_;
  const int size_;
  const SumTree tree_;
  const std::unique_ptr<NodeMemory> memory_;
  const std::unique_ptr<Network> network_;
  NodeControl control_;
  std::unique_ptr<Window> region_;
  std::size_t region_bytes_ = 0;
  std::unique_ptr<Window> node_memory_;  // until the caller takes it
  Meeting meeting_;
  Reduction reduction_;
  Gather gather_;
  Reports reports_;

  std::atomic<std::uint64_t> round_ = 0;  // collectives begun
  bool node_here_ = false;                // all ranks of the node have come to the round
  bool direct_ = false;                   // no node stages its data
  std::uint64_t chunks_ = 0;              // chunks that every rank has staged and worked on
  std::vector<std::byte*> parts_;
  std::optional<Steps> transfer_;  // under way
  std::optional<Arrival> last_arrival_;
  std::uint64_t looks_ = 0;
  bool disagreed_ = false;
  std::atomic<bool> cancelled_ = false, asked_ = false;
};

}  // namespace syncline::comm
