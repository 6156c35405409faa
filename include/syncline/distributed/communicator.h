// Communicator: the one interface to the wire. Spans of bytes with a dtype go in; it knows no graph and no variable.
//
// Ownership: the caller owns all buffers and keeps them unchanged and alive until wait() returned for the ticket.
// Order: every rank must submit the same collectives in the same order; submission order is the wire's order. Each
// carries a Tag; ranks whose tags, kinds, dtypes or counts differ are all told so (CommError), nothing is silently
// added up. Threads: one thread at a time may call a communicator. Transfers go on behind the caller's back, on the
// communicator's own thread; a caller blocked in wait() lends a hand. Nothing here allocates once the communicator
// stands, but shared_memory and group. Results are the same bits on every rank: sums are taken in the order of the
// ranks within a node, then in the order of the nodes, whatever the arrival, the pieces and the MPI library. Arguments
// that can never be right throw ValueError or DTypeError at once. wait and the blocking calls throw DisagreementError
// (the ranks submitted different things), StallError (a rank has died, has left or did not come within the limit) or
// CommError (the wire failed), naming the collective, its tag and the ranks. After an error every later call throws the
// same error.
//
// The end: a rank that leaves because of an error calls abort_job, or the other ranks wait for it until their limit.
// A communicator that dies with collectives not waited for, or while an exception unwinds the stack, drops them.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "syncline/dtype.h"
#include "syncline/timeline.h"

namespace syncline::comm {

// What a message belongs to. Compared between ranks at every collective.
struct Tag {
  std::uint64_t plan = 0;    // fingerprint of the plan (equal on all ranks for equal graphs)
  std::uint64_t step = 0;    // how many steps ran before, over all functions
  std::uint32_t bucket = 0;  // which collective of the step
  std::uint64_t names = 0;   // what it is for: of remember_names, or 0
  friend bool operator==(const Tag&, const Tag&) = default;
};

// Keeps a text ("gradients of dense_1/kernel, dense_1/bias") for as long as the process lives, so that errors can say
// what a collective was for. Returns its digest, equal on all ranks for equal texts. Safe to call from several threads.
std::uint64_t remember_names(std::string_view text);
// The text of a digest, or something that stands for it if this process never saw it.
std::string names_of(std::uint64_t digest);

// The plan in the tag of a program's last barrier. A rank that goes on meets it, and is told that the program of the
// other one has ended.
inline constexpr std::uint64_t kEndOfProgram = ~std::uint64_t{0};

enum class Reduce : std::uint8_t { kSum, kMax, kMin };

// How elements of float32 travel between nodes. Sums are taken in float32 all the same.
enum class WireFormat : std::uint8_t { kSame, kFloat16, kBfloat16 };

// Where a rank is, for the reports of others that wait for it.
struct Position {
  std::uint64_t plan = 0;
  std::uint64_t step = 0;
  std::array<char, 48> what{};  // text, ended by a zero unless it fills the array; "": the step is done

  Position() = default;
  Position(std::uint64_t of_plan, std::uint64_t at_step, std::string_view text) : plan(of_plan), step(at_step) {
    text.copy(what.data(), what.size());
  }
};

// Names a submitted collective; tickets count up from 1.
using Ticket = std::uint64_t;

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // data[i] = reduction over ranks of data[i], in place. float32, float64 and the integer dtypes, not bool and
  // float16; any count, also 0.
  virtual Ticket all_reduce(const Tag& tag, void* data, std::int64_t count, DType dtype, Reduce reduce) = 0;

  // `data` holds a part for every rank, one after the other: counts[r] elements (which may be 0) for rank r. This
  // rank's part becomes the reduction over ranks; the others are of no use afterwards. The counts must be equal on all
  // ranks and stay alive until wait().
  virtual Ticket reduce_scatter(const Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                                Reduce reduce) = 0;

  // `receive` gets the ranks' bytes one after the other; rank r sends byte_counts[r] bytes (which may be 0) from its
  // `send`. The counts must be equal on all ranks and stay alive until wait(). `send` may lie at its own place inside
  // `receive`.
  virtual Ticket all_gather(const Tag& tag, const void* send, void* receive,
                            std::span<const std::int64_t> byte_counts) = 0;

  // Copies the bytes of `root`'s data to all ranks.
  virtual Ticket broadcast(const Tag& tag, void* data, std::int64_t bytes, int root) = 0;

  // Blocks until the collective has finished on this rank.
  virtual void wait(Ticket ticket) = 0;
  // True if wait(ticket) would not block.
  virtual bool done(Ticket ticket) const = 0;

  // Memory of `bytes` bytes, beginning at a page, in which an all_reduce or all_gather of 64 KiB and more needs no
  // copy; nullptr where there is no such memory and any other is as good. It lives until the next call or the
  // communicator's end. A collective of equal sizes on all ranks, with no other under way. Not zeroed.
  virtual std::byte* shared_memory(std::size_t bytes) = 0;

  // What another rank has of shared_memory, as this process sees it; nullptr if any rank's cannot be seen. It may be
  // read behind a collective that its owner has called since writing it, and the owner may write it again behind one
  // that this rank has called since reading it.
  virtual const std::byte* shared_memory_of(int) const { return nullptr; }
  // Whether all ranks are on one node and move data through memory.
  virtual bool one_node() const { return false; }

  // A communicator of its own for some of the ranks (ascending, each once), who all call this, and nobody else; with no
  // other collective under way. Rank i of it is ranks[i] of this one. It must not outlive this one.
  virtual std::unique_ptr<Communicator> group(std::span<const int> ranks) = 0;

  // Says where this rank is. A few stores; any thread, at any time.
  virtual void publish(const Position&) {}

  // Whether this rank is the lowest of those on rank 0's node that live: all below it there have died, were stopped or
  // have left. It does what one rank must do that is left over, an emergency checkpoint. False on other nodes. Any
  // thread, at any time, also after an error.
  virtual bool lowest_living() const { return rank() == 0; }

  // For people: "4 ranks on 2 nodes, shared memory within a node, MPI between nodes".
  virtual std::string describe() const = 0;

  // What decides the order of sums, beside the number of ranks: "ranks 0-1 | 2-3", by node. For people, and for
  // comparing two runs.
  virtual std::string layout() const { return "ranks 0"; }

  // Notes go from rank 0 to each other rank beside the collectives: neither side waits, and a note that nobody takes
  // does no harm. Both calls are safe on any thread at any time. post does nothing on other ranks; take_note gives the
  // next note that has come, in the order in which they were posted.
  virtual void post_note(std::uint64_t note) = 0;
  virtual std::optional<std::uint64_t> take_note() = 0;

  // Ends the processes of all ranks with this exit code, without unwinding; for a main that has printed why. Standard
  // streams are flushed. Safe to call at any time, also after an error.
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
