// Worker: a queue of collectives and the thread that drives a Wire through them in order.
//
// Who drives: the holder of the wire's lock, so a wire sees one thread at a time. A call of poll() does not wait for
// other ranks, and the lock is free between two calls. In the background the driver is the worker's thread. While other
// ranks are late it sleeps between polls, because it may share its core with the computation. A caller in wait() drives
// the wire itself, and the thread keeps off: a collective then needs no thread switch. A few small collectives do not
// wake the thread: the next wait() runs them, or done() or a large collective wakes the thread.
//
// Ownership: a worker owns its wire. Threads: one thread at a time calls submit, wait, done; see communicator.h. The
// queue is allocated once; submit waits for room when it is full. Errors: the worker keeps the first one, of the wire
// or of the time limit, and throws it from every later call.
#pragma once

#include <atomic>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/worker/collective.h"
#include "comm/worker/wait_stats.h"
#include "syncline/distributed/settings.h"

namespace syncline::comm {

// Collectives up to this size travel with the agreement of the ranks, and need no thread of their own: moving 64 KiB
// takes about as long as waking a thread and letting it sleep again.
inline constexpr std::int64_t kSmallBytes = 64 << 10;
inline bool is_small(const Collective& collective) {
  return collective.bytes <= kSmallBytes && !allocates(collective) && collective.kind != Kind::kGatherOnNodes;
}

struct Missing {
  std::string text;         // "rank 2 (...) has not called it"; "" if the wire cannot tell
  bool is_reporter = true;  // false if another rank prints the same
  bool may_come = false;    // the missing ranks run, as far as is known

  // Adds further ranks, if `more` names some.
  void append(const Missing& more) {
    if (more.text.empty()) return;
    may_come = (text.empty() || may_come) && more.may_come;
    text += (text.empty() ? "" : "; ") + more.text;
  }
};

// What a worker drives. Unless noted otherwise, calls come one at a time, from any thread. close may block; poll may
// block while it allocates memory and, for a few seconds, before it throws. An exception from a call ends the
// worker.
class Wire {
 public:
  enum class Progress {
    kWaiting,  // other ranks have not come
    kStill,    // all ranks have come and agree; no data have moved since the last poll
    kMoving,   // it has done enough for one step: poll again at once
    kDone,
  };

  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The number of a rank in the whole job, and the job's size: texts name the ranks of a group by them.
  virtual int shown(int rank) const { return rank; }
  virtual int job_size() const { return size(); }
  std::string name() const { return join_text("rank ", shown(rank()), " of ", job_size()); }
  // Tells the other ranks about the next collective. `collective` stays the same object until it is finished.
  virtual void begin(const Collective& collective) = 0;
  // Goes on with the begun collective without waiting for other ranks, for about a millisecond. Throws CommError if the
  // ranks disagree, or after cancel(). The caller may free the buffers of an unfinished collective only after poll has
  // thrown.
  virtual Progress poll(const Collective& collective) = 0;
  // Replaces poll while a wire around this one moves the data of the last collective: answers other ranks.
  virtual void answer() {}
  // See communicator.h. A posted note reaches the other ranks before a clean close() returns. Any thread may call
  // these two, one at a time, also while another thread polls.
  virtual void post_note(std::uint64_t note) = 0;
  virtual std::optional<std::uint64_t> take_note() = 0;
  // The memory of the last shared_memory collective; nullptr if the wire has none.
  virtual std::byte* shared_memory() const { return nullptr; }
  // See communicator.h.
  virtual const std::byte* shared_memory_of(int) const { return nullptr; }
  virtual bool one_node() const { return false; }
  virtual NodePlace node_place() const { return {}; }
  // The memory of the last node_memory collective, for the caller to keep; none if there was too little.
  virtual NodeBlock take_node_memory() { return {}; }
  // The last rank to arrive at the last finished collective, and when; empty if the wire does not know.
  virtual std::optional<Arrival> last_arrival() const { return {}; }
  virtual std::string describe() const = 0;
  // See communicator.h.
  virtual std::string layout() const { return describe(); }
  virtual bool adds_along_tree() const { return true; }
  // "ranks 0-1 | 2-3", by node.
  virtual std::string nodes() const { return describe(); }
  // The last call. `clean`: no error, no unfinished collective, no exception under way. Returns false if the system
  // below may still access the wire's memory (a receive that cannot be cancelled): the caller must then leak the wire.
  virtual bool close(bool clean) noexcept = 0;

  // Any thread may call the functions below at any time.
  // Tells where this rank is, for the reports of others.
  virtual void publish(const Position&) noexcept {}
  // The ranks that have not come to the collective under way.
  virtual Missing missing() const = 0;
  // See communicator.h.
  virtual bool lowest_living() const { return rank() == 0; }
  // A count that grows as data move.
  virtual std::uint64_t moved() const noexcept { return 0; }
  // The collective has waited for long: the driving thread should ask the ranks that this process cannot see.
  virtual void ask_around() noexcept {}
  // The caller gives up: poll throws.
  virtual void cancel() noexcept {}
};

class Worker {
 public:
  Worker(std::unique_ptr<Wire> wire, const WorkerOptions& options);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the thread. The thread keeps the worker alive until it ends.
  static void start(const std::shared_ptr<Worker>& worker);
  // Ends the thread and closes the wire. A transfer under way that does not end within a grace time is cancelled; if a
  // call of the wire hangs, thread and wire leak. Never throws.
  void stop() noexcept;

  Ticket submit(const Collective& collective);
  void wait(Ticket ticket);
  bool done(Ticket ticket);
  void post_note(std::uint64_t note);
  std::optional<std::uint64_t> take_note();

  // These two block. Null if the wire has none.
  std::byte* shared_memory(std::size_t bytes);
  NodeBlock node_memory(std::size_t bytes);
  void publish(const Position& position) noexcept { wire_->publish(position); }

  const Wire& wire() const { return *wire_; }
  const WaitStats& stats() const { return stats_; }
  // No error and no collective under way.
  bool clean() const { return !failed_ && !unfinished(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kIdle, kFinished, kWaiting, kStill, kMoving, kBusy };

  void run();
  State work();
  void rest(std::unique_lock<std::mutex>& lock);
  State drive();
  State try_drive();
  bool wants_thread() const;
  void wake();
  void store_error(std::exception_ptr error);
  void throw_if_failed();
  // The time of a wait() since it last made progress.
  struct Standstill {
    Clock::time_point begin = Clock::now();
    std::uint64_t moved = ~std::uint64_t{0};  // what the wire had moved at `begin`; this value: not yet asked
    Ticket finished = 0;                      // at `begin`
    Clock::duration last_look{0};             // when it last looked for missing ranks
    Clock::duration could_come{0};            // when it last found, at a program's end, that they may come
  };
  void watch(Standstill& still);
  std::string describe_wait(Clock::duration waited, const Missing& missing) const;
  void give_up(Clock::duration waited, const Missing& missing);
  void take_buffers_back() noexcept;
  Collective& slot(Ticket ticket) { return queue_[ticket % queue_.size()]; }
  const Collective& slot(Ticket ticket) const { return queue_[ticket % queue_.size()]; }
  bool unfinished() const { return finished_ != submitted_; }

  std::unique_ptr<Wire> wire_;
  const Clock::duration stall_limit_, limit_;
  const bool background_;
  std::vector<Collective> queue_;      // a ring: the collective of ticket t is slot(t)
  std::atomic<Ticket> submitted_ = 0;  // last ticket given
  std::atomic<Ticket> finished_ = 0;   // last ticket done
  std::int64_t lazy_bytes_ = 0;        // used by the caller: bytes submitted without waking the thread

  std::timed_mutex wire_mutex_;  // its holder drives the wire
  bool begun_ = false;           // guarded by wire_mutex_: the wire knows the first unfinished collective
  WaitStats stats_;
  std::atomic<bool> urgent_ = false;  // a caller is in wait() and drives

  std::mutex notes_mutex_;            // held during the wire's calls about notes
  std::mutex mutex_;                  // guards the members below; lock order: wire_mutex_, mutex_
  std::condition_variable wake_;      // for the thread
  std::condition_variable at_end_;    // the thread has ended
  std::atomic<bool> wanted_ = false;  // there is work for the thread; changes under the lock
  std::fenv_t modes_;                 // the caller's floating-point modes: sums are equal on every thread
  bool stop_ = false;
  bool ended_ = false;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;
  Clock::time_point waiting_since_{};  // used by the thread: when it first found the current collective waiting
  std::thread thread_;
};

// A communicator over any wire.
class WorkerCommunicator : public Communicator {
 public:
  WorkerCommunicator(std::unique_ptr<Wire> wire, const WorkerOptions& options);
  ~WorkerCommunicator() override;

  int rank() const override { return worker_->wire().rank(); }
  int size() const override { return worker_->wire().size(); }
  Ticket all_reduce(const Tag& tag, void* data, std::int64_t count, DType dtype, Reduce reduce) override;
  Ticket reduce_scatter(const Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                        Reduce reduce) override;
  Ticket all_gather(const Tag& tag, const void* send, void* receive,
                    std::span<const std::int64_t> byte_counts) override;
  Ticket gather_on_nodes(const Tag& tag, void* data, std::span<const std::int64_t> byte_counts) override;
  Ticket broadcast(const Tag& tag, void* data, std::int64_t bytes, int root) override;
  void wait(Ticket ticket) override { worker_->wait(ticket); }
  bool done(Ticket ticket) const override { return worker_->done(ticket); }
  // Throws ValueError: only the code that made the wire can make another.
  std::unique_ptr<Communicator> group(std::span<const int> ranks) override;
  std::byte* shared_memory(std::size_t bytes) override { return worker_->shared_memory(bytes); }
  const std::byte* shared_memory_of(int rank) const override { return worker_->wire().shared_memory_of(rank); }
  bool one_node() const override { return worker_->wire().one_node(); }
  NodePlace node_place() const override { return worker_->wire().node_place(); }
  NodeBlock node_memory(std::size_t bytes) override;
  void publish(const Position& position) override { worker_->publish(position); }
  bool lowest_living() const override { return worker_->wire().lowest_living(); }
  std::string describe() const override { return worker_->wire().describe(); }
  std::string layout() const override { return worker_->wire().layout(); }
  bool adds_along_tree() const override { return worker_->wire().adds_along_tree(); }
  void post_note(std::uint64_t note) override { worker_->post_note(note); }
  std::optional<std::uint64_t> take_note() override { return worker_->take_note(); }

 private:
  std::shared_ptr<Worker> worker_;
};

}  // namespace syncline::comm
