// Distributor: how one process's functions become several ranks' work. The plan and the executor know only this
// interface; runtime/placement/data_parallel.cc implements it over a communicator. Without one, everything runs in one
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ops/graph/placement.h"
#include "syncline/expr.h"

namespace syncline {

class Faults;

// Which rows of the global batch belong to which rank: rank r has rows [begin[r], begin[r + 1]). Empty: one process.
struct RowShares {
  std::vector<std::int64_t> begin;
  int rank = 0;
  // Of the shapes that every rank has handed over, if each brings its own rows; all ranks have the same. A plan is used
  // again where it is the same: so no rank uses one that another has to make.
  std::uint64_t digest = 0;

  bool empty() const { return begin.empty(); }
  std::int64_t total() const { return empty() ? 0 : begin.back(); }
  // Where rank r's part of a split dimension of `size` elements begins: its rows, so many times as there are elements
  // for a row of the batch; of a dimension that has nothing to do with the batch, its share.
  std::int64_t at(int r, std::int64_t size) const {
    return total() == 0 ? 0 : begin[static_cast<std::size_t>(r)] * size / total();
  }
  std::int64_t own_begin(std::int64_t size) const { return at(rank, size); }
  std::int64_t own_size(std::int64_t size) const { return at(rank + 1, size) - at(rank, size); }
  friend bool operator==(const RowShares&, const RowShares&) = default;
};

using PlacementMap = std::unordered_map<Expr, Placement, ExprHash>;  // absent: replicated

struct PlacedGraph {
  std::vector<Expr> roots;  // with the collectives in
  PlacementMap placement;
};

// A collective of a plan, with its memory.
struct Transfer {
  enum Kind : std::uint8_t { kAllReduce, kAllGather, kMeeting } kind = kAllReduce;  // kMeeting: without data
  std::uint32_t bucket = 0;
  DType dtype = DType::kFloat32;
  std::int64_t count = 0;                 // kAllReduce: elements
  std::vector<std::int64_t> byte_counts;  // kAllGather: of each rank
  std::string why;                        // for people who read the plan
  std::uint64_t names = 0;                // of the values in it, for errors: Distributor::name
  bool in_place = false;  // kAllGather: a rank's part lies where all ranks' memory can be seen, and is read there
};

class Distributor {
 public:
  virtual ~Distributor() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Every rank hands over its own rows.
  virtual bool feeds_are_local() const = 0;
  // Between steps, on all ranks alike.
  virtual void set_feeds_local(bool local) = 0;

  // Decides which feeds are split and how. Feeds' shapes are those that this rank was handed; the shapes become global
  // ones. `split[i]` says whether feed i is split along axis 0, and `local` whether only this rank's rows were handed
  // over; the numbers `most` are then made the largest of all ranks.
  virtual RowShares share(std::span<Meta> feeds, std::span<std::int64_t> most, std::vector<bool>& split,
                          bool& local) = 0;

  // Gives every value a placement and inserts the collectives. `leaves` are the placements of placeholders. Each root
  // comes out replicated unless `wanted` says otherwise.
  virtual PlacedGraph place(std::span<const Expr> roots, const PlacementMap& leaves, const RowShares& shares,
                            std::span<const Placement> wanted = {}) = 0;

  // How the all-reduces of a step are put into buckets: for elements (dtype, bytes) in the order in which they get
  // ready, the bucket of each. A pure function.
  virtual std::vector<int> bucket(std::span<const std::pair<DType, std::int64_t>> ready) const = 0;

  // What of its options decides the order of sums or of messages, for people and for comparing it between ranks.
  virtual std::string describe() const = 0;
  // After how many steps ranks compare their variables; 0: never.
  virtual std::uint64_t check_steps() const = 0;

  // Blocking: the ranks' bytes, so many of each, one after the other. `purpose` is for errors.
  virtual void gather(std::string_view purpose, const void* send, void* receive,
                      std::span<const std::int64_t> byte_counts) = 0;
  // Blocking, of rank 0's bytes.
  virtual void broadcast(std::string_view purpose, void* data, std::size_t bytes) = 0;

  // What stands for a text in a transfer's `names`.
  virtual std::uint64_t name(const std::string& text) = 0;

  // Memory in which all-reduces need no copy, or nullptr where any memory is as good. Every rank asks for as many
  // bytes, between steps; it lives until the next call.
  virtual std::byte* shared_memory(std::size_t bytes) = 0;

  // What another rank has of it, as this one sees it; nullptr if any rank's cannot be seen.
  virtual const std::byte* shared_memory_of(int rank) const = 0;

  // Gathers in place let the other ranks read this rank's memory after they are over. The first `bytes` of it are lent
  // from now on, until the ranks have met in a later transfer; or meet for that, before this rank writes there.
  virtual void lend(std::size_t bytes) = 0;
  virtual std::size_t lent() const = 0;
  virtual void take_back() = 0;

  // Where this rank is, for the reports of others that wait for it; `what` is "" when the step is done. Costs a few
  // stores.
  virtual void publish(std::uint64_t plan, std::uint64_t step, std::string_view what) = 0;

  // Starts a transfer; `send` is the rank's own part (for an all-reduce the buffer itself). Returns a ticket for wait,
  // which is not 0.
  virtual std::uint64_t start(const Transfer& transfer, std::uint64_t plan, std::uint64_t step, const void* send,
                              void* receive) = 0;
  virtual void wait(std::uint64_t ticket) = 0;

  // Transfers then go as these say, which outlive the distributor.
  virtual void inject(Faults& faults) = 0;
};

}  // namespace syncline
