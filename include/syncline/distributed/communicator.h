// Communicator: the interface to the network. It moves spans of bytes with a dtype and knows neither graphs nor
// variables.
//
// - Ownership: the caller owns all buffers and keeps them alive and unchanged until wait() has returned for the ticket.
// - Order: every rank must submit the same collectives in the same order; they run in submission order. Each carries a
//   Tag. If tags, kinds, dtypes or counts differ, every rank throws, and no data is reduced.
// - Threads: one thread at a time may call a communicator. The communicator's own thread transfers in the background; a
//   caller blocked in wait() helps.
// - Memory: after construction only shared_memory, node_memory and group allocate.
// - Ranks are numbered by node, nodes by their first rank, also if the launcher numbers them otherwise.
// - Results are bitwise equal on every rank. Sums follow one binary tree over the ranks (first_place): of five,
//   (0 + 1) + ((2 + 3) + 4). Which ranks share a node, the arrival order, the pieces and the MPI library do not matter.
// - Errors: arguments that are never valid throw ValueError or DTypeError at once. wait and the blocking calls throw
//   DisagreementError (ranks submitted different things), StallError (a rank has died, has left or did not arrive
//   within the limit) or CommError (the wire failed), naming the collective, its tag and the ranks. After an error
//   every later call throws the same error.
// - End: a rank that leaves because of an error calls abort_job; otherwise the other ranks wait for it until their
//   limit. A communicator destroyed with unfinished collectives, or while an exception unwinds the stack, drops them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/dtype.h"
#include "syncline/timeline.h"

#pragma GCC visibility push(default)
namespace syncline::comm {

// Sums over ranks follow a complete binary tree: its bottom has as many places as the next power of two of the number
// of ranks, and a rank has one of them or two. A left half has a power of two of ranks, so that the ranks of a node are
// often a block of the tree. The first place of a rank; of rank `ranks`, the end.
constexpr int first_place(int rank, int ranks) {
  int place = 0, places = static_cast<int>(std::bit_ceil(static_cast<unsigned>(ranks)));
  while (places % ranks != 0) {
    const int left = 4 * ranks >= 3 * places ? places / 2 : places / 4;
    places /= 2;
    if (rank < left) {
      ranks = left;
    } else {
      place += places;
      rank -= left;
      ranks -= left;
    }
  }
  return place + rank * (places / ranks);
}

// Adds the terms of all ranks of a job in the order of all_reduce, for a rank that reads them where they lie
// (shared_memory_of). Throws ValueError for no ranks and for more than kMostRanks, InternalError for booleans, 16-bit
// dtypes and another number of terms.
class RankSum {
 public:
  static constexpr int kMostRanks = 256;
  explicit RankSum(int ranks);
  // sum[i] = the sum of terms[rank][i] over the ranks. Any thread; needs 32 KiB of its stack.
  void operator()(DType dtype, std::span<const void* const> terms, void* sum, std::int64_t count) const;

 private:
  std::vector<int> order_;  // comm/rounds/sum_tree.h
};

// Identifies a collective. Compared between ranks at every collective.
struct Tag {
  std::uint64_t plan = 0;    // fingerprint of the plan (equal on all ranks for equal graphs)
  std::uint64_t step = 0;    // steps that ran before, over all functions
  std::uint32_t bucket = 0;  // index of the collective within the step
  std::uint64_t names = 0;   // what it is for: a digest of remember_names, or 0
  friend bool operator==(const Tag&, const Tag&) = default;
};

// Stores a text ("gradients of dense_1/kernel, dense_1/bias") until the process ends, so that errors can name the
// purpose of a collective. Returns its digest, equal on all ranks for equal texts. Safe to call from several threads.
std::uint64_t remember_names(std::string_view text);
// The text of a digest, or a placeholder if this process has not stored it.
std::string names_of(std::uint64_t digest);

// The plan in the tag of a program's last barrier. A rank that still runs meets this tag, and its error says that the
// other rank's program has ended.
inline constexpr std::uint64_t kEndOfProgram = ~std::uint64_t{0};

enum class Reduce : std::uint8_t { kSum, kMax, kMin };

// Format of float32 elements between nodes. Sums are still taken in float32.
enum class WireFormat : std::uint8_t { kSame, kFloat16, kBfloat16 };

// A rank's progress, shown in the reports of ranks that wait for it.
struct Position {
  std::uint64_t plan = 0;
  std::uint64_t step = 0;
  std::array<char, 48> what{};  // text, zero-terminated unless it fills the array; "": the step is done

  Position() = default;
  Position(std::uint64_t of_plan, std::uint64_t at_step, std::string_view text) : plan(of_plan), step(at_step) {
    text.copy(what.data(), what.size());
  }
};

// This rank among the ranks of its node, with which it shares memory.
struct NodePlace {
  int index = 0;
  int ranks = 1;  // on this node
  int most = 1;   // on the node that has the most; 0: ranks have no memory to share; equal on all ranks
  friend bool operator==(const NodePlace&, const NodePlace&) = default;
};

// Memory that the ranks of a node share, page-aligned. May outlive the communicator.
struct NodeBlock {
  std::byte* begin = nullptr;    // null: none
  std::shared_ptr<void> memory;  // mapped in this process while it lives
};

// Identifies a submitted collective; tickets count up from 1.
using Ticket = std::uint64_t;

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // data[i] = reduction over ranks of data[i], in place. float32, float64 and the integer dtypes, but neither bool nor
  // float16; any count, including 0.
  virtual Ticket all_reduce(const Tag& tag, void* data, std::int64_t count, DType dtype, Reduce reduce) = 0;

  // `data` holds one part per rank, in rank order: counts[r] elements (0 allowed) for rank r. This rank's part becomes
  // the reduction over ranks; the other parts become unspecified. The counts must be equal on all ranks and stay alive
  // until wait().
  virtual Ticket reduce_scatter(const Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                                Reduce reduce) = 0;

  // `receive` gets the ranks' bytes in rank order; rank r sends byte_counts[r] bytes (0 allowed) from its `send`. The
  // counts must be equal on all ranks and stay alive until wait(). `send` may be this rank's place inside `receive`.
  virtual Ticket all_gather(const Tag& tag, const void* send, void* receive,
                            std::span<const std::int64_t> byte_counts) = 0;

  // The same, into memory that the ranks of each node share: `data` is this rank's address of it (node_memory), and
  // this rank's bytes are in their place. Every byte enters a node once, and no rank copies it.
  virtual Ticket gather_on_nodes(const Tag& tag, void* data, std::span<const std::int64_t> byte_counts) = 0;

  // Copies the bytes of `root`'s data to all ranks.
  virtual Ticket broadcast(const Tag& tag, void* data, std::int64_t bytes, int root) = 0;

  // Blocks until the collective has finished on this rank.
  virtual void wait(Ticket ticket) = 0;
  // True if wait(ticket) would not block.
  virtual bool done(Ticket ticket) const = 0;

  // Page-aligned memory of `bytes` bytes, not zeroed, in which an all_reduce or all_gather of 64 KiB and more needs no
  // copy; nullptr if ordinary memory is as good. Valid until the next call or the communicator's end. Collective with
  // equal sizes on all ranks, while no other collective is under way.
  virtual std::byte* shared_memory(std::size_t bytes) = 0;

  // Another rank's shared_memory as mapped in this process; nullptr if any rank's memory cannot be mapped. Read it
  // after a collective that its owner submitted after writing; the owner may overwrite it after a collective that this
  // rank submitted after reading.
  virtual const std::byte* shared_memory_of(int) const { return nullptr; }
  // True if all ranks are on one node and move data through memory.
  virtual bool one_node() const { return false; }

  virtual NodePlace node_place() const { return {}; }
  // Zeroed memory of `bytes` bytes that all ranks of this node read and write; none, on all ranks, if some node has too
  // little. Collective with equal sizes on all ranks, while no other collective is under way.
  virtual NodeBlock node_memory(std::size_t) { return {}; }

  // A communicator for the given ranks (ascending, each once). Exactly these ranks call this, while no other collective
  // is under way. Rank i of the group is ranks[i] of this communicator. The group must not outlive this communicator.
  virtual std::unique_ptr<Communicator> group(std::span<const int> ranks) = 0;

  // Publishes this rank's progress: a few stores, from any thread, at any time.
  virtual void publish(const Position&) {}

  // True if this rank is the lowest living rank of rank 0's node: all lower ranks there have died, were stopped or have
  // left. This rank does the work left to a single rank, for example an emergency checkpoint. False on other nodes. Any
  // thread, at any time, also after an error.
  virtual bool lowest_living() const { return rank() == 0; }

  // For display: "4 ranks on 2 nodes, shared memory within a node, MPI between nodes".
  virtual std::string describe() const = 0;

  // What determines the bits of sums: "ranks 0-3 in pairs"; with a 16-bit wire format or NCCL, also which ranks share a
  // node. For display, and for comparing two runs.
  virtual std::string layout() const { return "ranks 0"; }
  // True if all sums add the ranks' values along one tree, without rounding on the way.
  virtual bool adds_along_tree() const { return true; }

  // Notes go from rank 0 to each other rank, outside the collectives. Neither side blocks, and unread notes are
  // harmless. Both calls are safe on any thread at any time. post_note does nothing on other ranks; take_note returns
  // the next note that has arrived, in posting order.
  virtual void post_note(std::uint64_t note) = 0;
  virtual std::optional<std::uint64_t> take_note() = 0;

  // Ends the processes of all ranks with this exit code, without unwinding; for a main that has printed the reason.
  // Flushes the standard streams. Safe to call at any time, also after an error.
  [[noreturn]] virtual void abort_job(int exit_code) {
    std::fflush(nullptr);
    timeline::flush();
    std::_Exit(exit_code);
  }

  // Returns when every rank has called it.
  void barrier(const Tag& tag = {}) {
    std::int32_t nothing = 0;
    wait(all_reduce(tag, &nothing, 1, DType::kInt32, Reduce::kMax));
  }
};

}  // namespace syncline::comm
#pragma GCC visibility pop
