// Worker: a queue of collectives and the thread that drives a Wire through them, one after the other.
//
// Who drives: whoever holds the wire's lock, so a wire sees one thread at a time. In the background that is the
// worker's thread; while other ranks are late it sleeps between two looks, because it may share its core with the
// computation. A caller blocked in wait() drives by itself, without sleeping, and the thread keeps off: a small
// collective then costs no change of threads. Long blocking transfers are always left to the thread, so that a caller
// can give up after its limit. A few small collectives do not even wake the thread; the next wait() or done() does
// them, or the next large one.
//
// Ownership: a worker owns its wire. Threads: one thread at a time calls submit, wait, done; see communicator.h. The
// queue is allocated once; submit waits for room when it is full. Errors: the first one, of the wire or of the time
// limit, is kept and thrown from every later call.
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

#include "comm/worker/account.h"
#include "comm/worker/job.h"
#include "syncline/distributed/settings.h"

namespace syncline::comm {

// Collectives up to this size are done by polling, larger ones by a transfer that blocks. Moving 64 KiB takes about as
// long as waking a thread and going back to sleep.
inline constexpr std::int64_t kSmallBytes = 64 << 10;

struct Missing {
  std::string text;       // "rank 2 (...) has not called it"; "" if the wire cannot tell
  bool speaks = true;     // false if another rank says the same
  bool may_come = false;  // nothing is known against those ranks: they run, as far as can be seen
};

// What a worker drives. Calls come one at a time, from any thread, where nothing else is said; all but transfer return
// at once. What they throw ends the worker.
class Wire {
 public:
  enum class Meeting {
    kWaiting,  // other ranks have not come, or a small transfer is on its way
    kReady,    // all ranks have come and agree: transfer() may be called
    kDone,     // finished, transfer() is not needed
  };

  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Tells the other ranks about the next job. The job is the same object until it is finished.
  virtual void begin(const Job& job) = 0;
  // Looks how far the begun job is. Throws CommError if the ranks disagree.
  virtual Meeting poll(const Job& job) = 0;
  // Moves the data of a job that is ready; may block.
  virtual void transfer(const Job& job) = 0;
  // See communicator.h; a note that was posted reaches the other ranks before a clean close() returns.
  virtual void post_note(std::uint64_t note) = 0;
  virtual std::optional<std::uint64_t> take_note() = 0;
  // Of the last shared_memory job; nullptr if the wire has no such memory.
  virtual std::byte* shared_memory() const { return nullptr; }
  // See communicator.h.
  virtual const std::byte* shared_memory_of(int) const { return nullptr; }
  virtual bool one_node() const { return false; }
  // Who came last to the last job that is finished, and when; nothing if the wire cannot tell.
  virtual std::optional<Arrival> last_arrival() const { return {}; }
  virtual std::string describe() const = 0;
  // See communicator.h.
  virtual std::string layout() const { return describe(); }
  // The last call. `clean`: no error, no job left over, no exception under way. False if the system below may still
  // touch memory of the wire (a receive that cannot be called off): it must then be left as it is, not destroyed.
  virtual bool close(bool clean) noexcept = 0;

  // What follows may be called from any thread at any time.
  // Where this rank is, for the reports of others.
  virtual void publish(const Position&) noexcept {}
  // Who has not come to the job under way.
  virtual Missing missing() const = 0;
  // See communicator.h.
  virtual bool lowest_living() const { return rank() == 0; }
  // The job has waited for long: whoever drives shall ask the ranks that cannot be seen from here.
  virtual void ask_around() noexcept {}
  // The caller gives up: poll and transfer throw, one that is under way as soon as it can. Once it has, nobody touches
  // the caller's buffers any more.
  virtual void cancel() noexcept {}
};

class Worker {
 public:
  Worker(std::unique_ptr<Wire> wire, const WorkerOptions& options);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the thread, which keeps the worker alive until it ends.
  static void start(const std::shared_ptr<Worker>& worker);
  // Ends the thread and closes the wire. A transfer that does not end within a grace time is cancelled; if it hangs all
  // the same, both are left as they are. Never throws.
  void stop() noexcept;

  Ticket submit(const Job& job);
  void wait(Ticket ticket);
  bool done(Ticket ticket);
  void post_note(std::uint64_t note);
  std::optional<std::uint64_t> take_note();

  // Blocks; nullptr if the wire has none.
  std::byte* shared_memory(std::size_t bytes);
  void publish(const Position& position) noexcept { wire_->publish(position); }

  const Wire& wire() const { return *wire_; }
  const Account& account() const { return account_; }
  // No error, and no collective under way.
  bool clean() const { return !failed_ && !unfinished(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kIdle, kFinished, kWaiting, kReady, kBusy };

  void run();
  void rest(std::unique_lock<std::mutex>& lock);
  State drive(bool may_block);
  State try_drive();
  void block(std::uint64_t seen, Clock::time_point until, bool hand_over);
  bool wants_thread() const;
  void wake();
  void store_error(std::exception_ptr error);
  void throw_if_failed();
  // Of a wait() so far: when it last looked who is missing, and when it last found, at a program's end, that they could
  // still come.
  struct Looks {
    Clock::duration last{0}, could_come{0};
  };
  void watch(Clock::duration waited, Looks& looks);
  std::string describe_wait(Clock::duration waited, const Missing& missing) const;
  void give_up(Clock::duration waited, const Missing& missing);
  void let_thread_go_off() noexcept;
  Job& slot(Ticket ticket) { return queue_[ticket % queue_.size()]; }
  const Job& slot(Ticket ticket) const { return queue_[ticket % queue_.size()]; }
  bool unfinished() const { return finished_ != submitted_; }

  std::unique_ptr<Wire> wire_;
  const Clock::duration stall_limit_, limit_;
  const bool background_;
  std::vector<Job> queue_;             // a ring: the job of ticket t is slot(t)
  std::atomic<Ticket> submitted_ = 0;  // last ticket given
  std::atomic<Ticket> finished_ = 0;   // last ticket done
  std::int64_t lazy_bytes_ = 0;        // the caller's: bytes submitted without waking the thread

  std::mutex wire_mutex_;  // its holder drives the wire
  bool begun_ = false;     // guarded by wire_mutex_: the wire knows the first unfinished job
  Account account_;
  std::atomic<bool> transferring_ = false;
  std::atomic<bool> urgent_ = false;          // a caller is in wait() and drives
  std::atomic<bool> caller_blocked_ = false;  // and sleeps on progress_

  std::mutex mutex_;  // guards what follows; may be taken while wire_mutex_ is held, not the other way round
  std::condition_variable wake_;      // for the thread
  std::condition_variable progress_;  // for the caller
  bool wanted_ = false;               // there is work for the thread
  std::fenv_t modes_;                 // the caller's floating-point modes: sums do not depend on who takes them
  bool handed_over_ = false;          // a caller wants the thread to do a transfer
  bool stop_ = false;
  bool ended_ = false;
  std::exception_ptr error_;
  std::atomic<bool> failed_ = false;
  Clock::time_point waiting_since_{};  // the thread's: when it first found the present job waiting
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
  Ticket broadcast(const Tag& tag, void* data, std::int64_t bytes, int root) override;
  void wait(Ticket ticket) override { worker_->wait(ticket); }
  bool done(Ticket ticket) const override { return worker_->done(ticket); }
  // Throws ValueError: only who has made the wire knows how to make another.
  std::unique_ptr<Communicator> group(std::span<const int> ranks) override;
  std::byte* shared_memory(std::size_t bytes) override { return worker_->shared_memory(bytes); }
  const std::byte* shared_memory_of(int rank) const override { return worker_->wire().shared_memory_of(rank); }
  bool one_node() const override { return worker_->wire().one_node(); }
  void publish(const Position& position) override { worker_->publish(position); }
  bool lowest_living() const override { return worker_->wire().lowest_living(); }
  std::string describe() const override { return worker_->wire().describe(); }
  std::string layout() const override { return worker_->wire().layout(); }
  void post_note(std::uint64_t note) override { worker_->post_note(note); }
  std::optional<std::uint64_t> take_note() override { return worker_->take_note(); }

 private:
  std::shared_ptr<Worker> worker_;
};

}  // namespace syncline::comm
