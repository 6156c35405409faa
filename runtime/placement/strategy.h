// Strategy: runs a function's graph on several ranks: row shares, placement, buckets and transfers. Plans and the
// executor know only this interface; runtime/placement/data_parallel.cc implements it over a communicator.
//
// The session owns it, and the session's thread calls it. Collective calls are gather, broadcast, shared_memory,
// variable_memory, reclaim, start, and share under local feeds: all ranks make them in the same order, and they throw
// what the communicator throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/graph/placement.h"
#include "ops/graph/value_map.h"
#include "syncline/distributed/communicator.h"
#include "syncline/expr.h"

namespace syncline {

class Faults;

// Rank r has the rows [begin[r], begin[r + 1]) of the global batch. Empty without a strategy.
struct RowShares {
  std::vector<std::int64_t> begin;
  int rank = 0;
  comm::NodePlace node{};
  // The parts of all rows (DataParallelOptions::parts): part i has the rows [parts[i], parts[i + 1]). Empty: none.
  std::vector<std::int64_t> parts{};
  int first_part = 0, part_count = 0;  // this rank's
  // Under local feeds: a digest of all ranks' feed shapes, equal on all ranks. A plan is reused only for an equal
  // digest, so that all ranks reuse a plan or all make one.
  std::uint64_t digest = 0;
  // Several nodes share out the rows of variables; otherwise each node has all of them.
  bool variables_split = false;

  bool empty() const { return begin.empty(); }
  std::int64_t total() const { return empty() ? 0 : begin.back(); }
  int ranks() const { return static_cast<int>(begin.size()) - 1; }
  // Where rank r's part of a split dimension of `size` elements begins. kBatch: in proportion to its first row; the
  // dimension need not be the batch's. Not for kOnNode.
  std::int64_t at(int r, std::int64_t size, Placement::Rows rows) const {
    if (rows == Placement::kEvenly) return size * r / ranks();
    return total() == 0 ? 0 : begin[static_cast<std::size_t>(r)] * size / total();
  }
  std::int64_t own_begin(std::int64_t size, Placement::Rows rows) const {
    return rows == Placement::kOnNode ? size * node.index / node.ranks : at(rank, size, rows);
  }
  std::int64_t own_size(std::int64_t size, Placement::Rows rows) const {
    const std::int64_t end =
        rows == Placement::kOnNode ? size * (node.index + 1) / node.ranks : at(rank + 1, size, rows);
    return end - own_begin(size, rows);
  }
  // The placement of a shared variable's rows. Among all ranks it is that of gradients by rows, which then need no
  // transfer.
  Placement of_variables() const {
    return Placement::split(0, variables_split || node.ranks == ranks() ? Placement::kEvenly : Placement::kOnNode);
  }
  // Where the rows of this node begin and end, of a dimension that is divided evenly.
  std::int64_t node_begin(std::int64_t size) const { return at(rank - node.index, size, Placement::kEvenly); }
  std::int64_t node_end(std::int64_t size) const {
    return at(rank - node.index + node.ranks, size, Placement::kEvenly);
  }
  // Where this rank's parts begin among its rows, then the number of its rows; empty without parts.
  std::vector<std::int64_t> own_parts() const {
    std::vector<std::int64_t> borders;
    for (int i = 0; !parts.empty() && i <= part_count; ++i)
      borders.push_back(parts[static_cast<std::size_t>(first_part + i)] - begin[static_cast<std::size_t>(rank)]);
    return borders;
  }
  friend bool operator==(const RowShares&, const RowShares&) = default;
};

using PlacementMap = ValueMap<Placement>;  // absent: replicated

struct PlacedGraph {
  std::vector<Expr> roots;  // with collectives
  PlacementMap placement;
};

// A collective of a plan: what start() needs besides the buffers.
struct Transfer {
  // kReduceScatter: sums; kBarrier: without data
  enum Kind : std::uint8_t { kAllReduce, kReduceScatter, kAllGather, kBarrier } kind = kAllReduce;
  std::uint32_t bucket = 0;
  DType dtype = DType::kFloat32;
  std::int64_t count = 0;                      // kAllReduce: elements
  Placement::Kind from = Placement::kPartial;  // kAllReduce: how to combine the ranks' elements
  std::vector<std::int64_t> counts{};          // per rank; kAllGather: bytes, kReduceScatter: elements
  std::string why{};                           // for plan inspection
  std::uint64_t names = 0;                     // names of its values, for errors (Strategy::name)
  bool in_place = false;  // kAllGather, kReduceScatter: readers read the ranks' parts or terms where
                          // they lie in shared memory, and the transfer is a barrier
  bool on_nodes = false;  // kAllGather: into memory that the ranks of a node share
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // True if every rank feeds its own rows.
  virtual bool feeds_are_local() const = 0;
  // DataParallelOptions::parts; 0: none. With parts, partial variables are replicated.
  virtual int parts() const = 0;
  // Call between steps, with the same value on all ranks.
  virtual void set_feeds_local(bool local) = 0;

  // Decides which feeds are split, and returns the row shares. `feeds` has this rank's shapes and receives the global
  // ones. Sets `split[i]` if feed i is split along axis 0, and `local` if ranks feed only their own rows. If so, each
  // number in `most` becomes the maximum over all ranks.
  virtual RowShares share(std::span<Meta> feeds, std::span<std::int64_t> most, std::vector<bool>& split,
                          bool& local) = 0;

  // Gives every value a placement and inserts collectives. `leaves`: the placements of placeholders. `wanted`: the
  // placement of each root; empty: all replicated. A root wanted as a part of a variable gets the
  // shape rows_of (runtime/placement/variable_rows.h).
  virtual PlacedGraph place(std::span<const Expr> roots, const PlacementMap& leaves, const RowShares& shares,
                            std::span<const Placement> wanted = {}) = 0;

  // Assigns all-reduces to buckets. `ready`: dtype and bytes of each, in the order in which they become ready. Returns
  // each one's bucket. A pure function.
  virtual std::vector<int> bucket(std::span<const std::pair<DType, std::int64_t>> ready) const = 0;

  // The options that determine the order of sums and messages. Compared between ranks and printed in errors.
  virtual std::string describe() const = 0;
  // Ranks compare their variables after every so many steps; 0: never.
  virtual std::uint64_t check_steps() const = 0;

  // Blocking all-gather: byte_counts[r] bytes from rank r, in rank order. Error messages name `purpose`.
  virtual void gather(std::string_view purpose, const void* send, void* receive,
                      std::span<const std::int64_t> byte_counts) = 0;
  // Blocking, from rank 0.
  virtual void broadcast(std::string_view purpose, void* data, std::size_t bytes) = 0;

  // Registers a text and returns its number, for Transfer::names.
  virtual std::uint64_t name(const std::string& text) = 0;

  // Memory in which transfers need no copy; nullptr if ordinary memory is as fast. All ranks request equal sizes,
  // between steps. Owned by the communicator; valid until the next call.
  virtual std::byte* shared_memory(std::size_t bytes) = 0;

  // This process's mapping of another rank's shared memory; nullptr if some rank's memory cannot be mapped.
  virtual const std::byte* shared_memory_of(int rank) const = 0;

  // Adds the ranks' terms as a sum over the ranks does. Any thread.
  virtual void add_terms(DType dtype, std::span<const void* const> terms, void* sum, std::int64_t count) const = 0;

  // The smallest variable, in bytes, that the ranks of a node share (syncline/backend/variable.h). Equal on all ranks.
  virtual std::int64_t share_from() const = 0;
  // True if several nodes share out the rows of variables.
  virtual bool splits_variables() const = 0;
  // Memory for shared variables that all ranks of this node read and write. None, on all ranks, if a node has too
  // little. Collective, between steps.
  virtual comm::NodeBlock variable_memory(std::size_t bytes) = 0;

  // After a transfer in place, other ranks read this rank's shared memory. lease(): the first `bytes` are leased until
  // any later transfer completes. reclaim() runs such a transfer; call it before writing leased memory.
  virtual void lease(std::size_t bytes) = 0;
  virtual std::size_t leased() const = 0;
  virtual void reclaim() = 0;

  // Publishes this rank's current step, for the reports of ranks that wait for it. `what` is "" after the step. Costs a
  // few stores.
  virtual void publish(std::uint64_t plan, std::uint64_t step, std::string_view what) = 0;

  // Starts a transfer. `send`: this rank's part (sums: the same buffer as `receive`). Returns a nonzero ticket
  // for wait. The caller must not free or write the buffers until wait returns.
  virtual std::uint64_t start(const Transfer& transfer, std::uint64_t plan, std::uint64_t step, const void* send,
                              void* receive) = 0;
  virtual void wait(std::uint64_t ticket) = 0;

  // Applies these faults to later transfers. `faults` must outlive the strategy.
  virtual void inject(Faults& faults) = 0;
};

// True if partial variables are sums over the ranks; otherwise each rank holds the value.
inline bool divides_partial_variables(const Strategy* strategy) {
  return strategy != nullptr && strategy->parts() == 0;
}

}  // namespace syncline
