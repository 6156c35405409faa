// Communicator: the one interface to the wire. Spans of bytes with a dtype go in; it knows no graph and no variable.
//
// Ownership: the caller owns all buffers and keeps them unchanged and alive until wait() returned for the ticket.
// Order: every rank must submit the same collectives in the same order; submission order is the wire's order. Each
// carries a Tag; ranks whose tags, kinds, dtypes or counts differ are all told so (CommError), nothing is silently
// added up. Threads: one thread at a time may call a communicator. Transfers go on behind the caller's back, on the
// communicator's own thread; a caller blocked in wait() lends a hand. Nothing here allocates once the communicator
// stands. Results are the same bits on every rank, summed in rank order's fixed tree whatever the arrival. Arguments
// that can never be right throw ValueError or DTypeError at once. Throws CommError (from wait and from the blocking
// helpers), naming the collective, its tag and what went wrong; so does a wait longer than the communicator's limit.
// After an error every later call throws the same error.
//
// The end: a rank that leaves because of an error calls abort_job, or the other ranks wait for it until their limit.
// A communicator that dies with collectives not waited for, or while an exception unwinds the stack, drops them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "base/timeline.h"

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

// What a file of configuration may say about a communicator; the other options (comm/worker.h) stay as they are.
struct Settings {
  std::optional<double> wait_limit;  // seconds
  std::optional<bool> background;    // whether transfers go on while the caller computes
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
