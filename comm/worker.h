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
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/account.h"
#include "comm/job.h"

namespace syncline::comm {

// Collectives up to this size are done by polling, larger ones by a transfer that blocks. Moving 64 KiB takes about as
// long as waking a thread and going back to sleep.
inline constexpr std::int64_t kSmallBytes = 64 << 10;

// What a worker drives. All calls but withdraw come one at a time, from any thread; all but transfer return at once.
// What they throw ends the worker.
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
  // For the error of a wait that took too long: who has not come, or "" if the wire cannot tell.
  virtual std::string name_missing() const = 0;
  // Who came last to the collective that has just finished, if the wire can tell.
  virtual std::optional<Arrival> last_arrival() const { return {}; }
  // From now on no other rank touches this rank's buffers, where the wire can see to that: a caller that gives up frees
  // them. The one call that may come at any time, from any thread.
  virtual void withdraw() noexcept {}
  // The last call. `clean`: no error, no job left over, no exception under way.
  virtual void close(bool clean) noexcept = 0;
};

struct WorkerOptions {
  std::chrono::duration<double> wait_limit{60};  // a longer wait() throws CommError
  // Whether large collectives go on while the caller computes. It needs a core to spare: if the computation already
  // uses every core, they cost it more than they hide, and are better left until wait().
  bool background = true;
};

class Worker {
 public:
  Worker(std::unique_ptr<Wire> wire, const WorkerOptions& options);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the thread, which keeps the worker alive until it ends.
  static void start(const std::shared_ptr<Worker>& worker);
  // Ends the thread and closes the wire. If the thread hangs in a transfer, both are left as they are. Never throws.
  void stop() noexcept;

  Ticket submit(const Job& job);
  void wait(Ticket ticket);
  bool done(Ticket ticket);
  void post_note(std::uint64_t note);
  std::optional<std::uint64_t> take_note();

  // Takes the wire away for good, to do something drastic with it: null if a transfer holds it for too long.
  Wire* seize() noexcept;
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
  void give_up(Clock::duration waited);
  Job& slot(Ticket ticket) { return queue_[ticket % queue_.size()]; }
  bool unfinished() const { return finished_ != submitted_; }

  const std::unique_ptr<Wire> wire_;
  const Clock::duration limit_;
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
  Ticket all_gather(const Tag& tag, const void* send, void* receive,
                    std::span<const std::int64_t> byte_counts) override;
  Ticket broadcast(const Tag& tag, void* data, std::int64_t bytes, int root) override;
  void wait(Ticket ticket) override { worker_->wait(ticket); }
  bool done(Ticket ticket) const override { return worker_->done(ticket); }
  void post_note(std::uint64_t note) override { worker_->post_note(note); }
  std::optional<std::uint64_t> take_note() override { return worker_->take_note(); }

 protected:
  Worker& worker() { return *worker_; }

 private:
  std::shared_ptr<Worker> worker_;
};

}  // namespace syncline::comm
