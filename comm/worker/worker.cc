#include "comm/worker/worker.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <utility>

#include "base/block_signals.h"
#include "comm/worker/backoff.h"
#include "comm/worker/trace.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kQueueLength = 1024;
constexpr Ticket kLazyJobs = 64;

// The thread's pause between two polls grows while the other ranks are late.
constexpr auto kShortestPause = 20us;
constexpr auto kLongestPause = 200us;

// How long a caller sleeps while the thread is inside a call of the wire. By the system clock, because the thread
// sanitizer does not support timed waits for a mutex by the steady clock.
constexpr auto kLongestCall = 100ms;

// How long before a report a caller asks the other ranks.
constexpr auto kAnswerTime = 1s;

// How long stop() waits for a transfer under way. A caller that gives up waits as long for a running call of the wire.
constexpr auto kGrace = 2s;

void prepare_thread() {
  pthread_setname_np(pthread_self(), "syncline-comm");
  prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // short pauses stay short; the default adds 50 us to each
}

}  // namespace

Worker::Worker(std::unique_ptr<Wire> wire, const WorkerOptions& options)
    : wire_(std::move(wire)),
      stall_limit_(std::chrono::duration_cast<Clock::duration>(options.stall_limit)),
      limit_(std::chrono::duration_cast<Clock::duration>(options.wait_limit)),
      background_(options.background.value_or(true)),
      queue_(kQueueLength) {
  std::fegetenv(&modes_);
}

void Worker::start(const std::shared_ptr<Worker>& worker) {
  const BlockSignals block;
  worker->thread_ = std::thread([worker] { worker->run(); });
}

void Worker::stop() noexcept {
  {
    std::unique_lock lock(mutex_);
    stop_ = true;
    wake_.notify_one();
    const auto ended = [&] { return ended_; };
    if (!at_end_.wait_until(lock, Clock::now() + kGrace, ended)) {
      lock.unlock();
      wire_->cancel();  // other ranks do not do their part, and the caller will free its buffers
      lock.lock();
      at_end_.wait_until(lock, Clock::now() + kGrace, ended);
    }
    if (!ended_) {
      thread_.detach();
      return;
    }
  }
  thread_.join();
  if (!wire_->close(clean() && std::uncaught_exceptions() == 0)) static_cast<void>(wire_.release());
}

Ticket Worker::submit(const Collective& collective) {
  throw_if_failed();
  const Ticket ticket = submitted_ + 1;
  if (ticket > queue_.size()) wait(ticket - queue_.size());
  if (!unfinished()) lazy_bytes_ = 0;
  lazy_bytes_ += collective.bytes;
  slot(ticket) = collective;
  if (collective.kind == Kind::kBroadcast)
    slot(ticket).header.root = static_cast<std::uint32_t>(wire_->shown(collective.root));
  submitted_ = ticket;
  if (wants_thread()) wake();
  return ticket;
}

bool Worker::done(Ticket ticket) {
  throw_if_failed();
  if (finished_ >= ticket) return true;
  wake();
  return false;
}

void Worker::wait(Ticket ticket) {
  throw_if_failed();
  if (finished_ >= ticket) return;
  if (ticket > submitted_) fail("wait: ticket ", ticket, " was never issued, the last one is ", submitted_.load());

  struct Urgency {
    Worker& worker;
    explicit Urgency(Worker& w) : worker(w) { worker.urgent_ = true; }
    ~Urgency() {
      worker.urgent_ = false;
      if (worker.unfinished() && (worker.wanted_ || worker.wants_thread())) worker.wake();
    }
  } urgency(*this);

  const WaitStats::Wait waiting(stats_, slot(ticket));
  Standstill still{.finished = finished_};
  for (Backoff backoff;;) {
    const Ticket seen = finished_;
    if (seen >= ticket) return;
    throw_if_failed();
    const State state = try_drive();
    if (state == State::kMoving || finished_ != seen) {
      backoff = Backoff();
      continue;
    }
    if (state != State::kBusy) backoff.next();
    if ((state == State::kBusy || !backoff.hot()) && !failed_) watch(still);
  }
}

// Prints, once per stall limit without progress, which ranks have not come. Asks the other nodes shortly before.
void Worker::watch(Standstill& still) {
  const std::uint64_t moved = wire_->moved();
  if (const Ticket finished = finished_; moved != still.moved || finished != still.finished)
    still = {.moved = moved, .finished = finished};
  const Clock::duration waited = Clock::now() - still.begin;
  const Clock::duration later = still.last_look + stall_limit_;
  const Clock::duration next = still.last_look < limit_ ? std::min(later, limit_) : later;
  if (waited >= next - std::min<Clock::duration>(kAnswerTime, (next - still.last_look) / 2)) wire_->ask_around();
  if (waited < next) return;
  still.last_look = waited;
  const Missing missing = wire_->missing();
  // A rank whose program has ended does not stall: the others may run on for as long as they like.
  const bool at_end = slot(finished_ + 1).header.plan == kEndOfProgram;
  if (at_end && missing.may_come) still.could_come = waited;
  if (waited - still.could_come >= limit_) give_up(waited, missing);
  if (missing.is_reporter) std::fprintf(stderr, "syncline: %s\n", describe_wait(waited, missing).c_str());
}

std::string Worker::describe_wait(Clock::duration waited, const Missing& missing) const {
  return join_text(wire_->name(), " has waited ", std::fixed, std::setprecision(1),
                   std::chrono::duration<double>(waited).count(), " s for ", describe(slot(finished_ + 1).header), ": ",
                   missing.text.empty() ? "at least one other rank has not called it" : missing.text);
}

std::byte* Worker::shared_memory(std::size_t bytes) {
  wait(submit(make_memory(Kind::kSharedMemory, bytes)));
  return wire_->shared_memory();
}

NodeBlock Worker::node_memory(std::size_t bytes) {
  wait(submit(make_memory(Kind::kNodeMemory, bytes)));
  return wire_->take_node_memory();
}

void Worker::post_note(std::uint64_t note) {
  const std::lock_guard hold(notes_mutex_);
  wire_->post_note(note);
}

std::optional<std::uint64_t> Worker::take_note() {
  const std::lock_guard hold(notes_mutex_);
  return wire_->take_note();
}

Worker::State Worker::try_drive() {
  std::unique_lock hold(wire_mutex_, std::try_to_lock);
  if (!hold && !hold.try_lock_until(std::chrono::system_clock::now() + kLongestCall)) return State::kBusy;
  return drive();
}

// Drives the first unfinished collective as far as it can. The caller holds wire_mutex_.
Worker::State Worker::drive() {
  if (failed_ || !unfinished()) return State::kIdle;
  try {
    const Collective& collective = slot(finished_ + 1);
    if (!begun_) {
      wire_->begin(collective);
      stats_.arrive();
    }
    begun_ = true;
    const Wire::Progress progress = wire_->poll(collective);
    if (progress == Wire::Progress::kWaiting) return State::kWaiting;
    if (progress != Wire::Progress::kDone) {
      stats_.agree();
      return progress == Wire::Progress::kMoving ? State::kMoving : State::kStill;
    }
    begun_ = false;
    stats_.finish(collective, wire_->last_arrival());
    ++finished_;
  } catch (...) {
    store_error(std::current_exception());
  }
  return State::kFinished;
}

void Worker::run() {
  prepare_thread();
  std::unique_lock lock(mutex_);
  for (bool transfers = false;;) {
    wake_.wait(lock, [&] { return stop_ || wanted_; });
    if (stop_ && !transfers) break;
    const std::fenv_t modes = modes_;
    lock.unlock();
    std::fesetenv(&modes);
    const State state = work();
    transfers = state == State::kMoving || state == State::kStill;
    lock.lock();
    if (state == State::kIdle) wanted_ = unfinished() && !failed_;
    if (state == State::kWaiting || urgent_) rest(lock);
    else waiting_since_ = {};
  }
  ended_ = true;
  at_end_.notify_one();
}

// Drives until a collective is finished, other ranks are late, or a caller drives.
Worker::State Worker::work() {
  State state = State::kStill;
  for (Backoff backoff; !urgent_;) {
    {
      const std::lock_guard hold(wire_mutex_);
      state = drive();
    }
    if (state != State::kMoving && state != State::kStill) return state;
    if (state == State::kMoving) backoff = Backoff();
    else backoff.next();
  }
  return state;
}

// Called while other ranks are late: leaves the core to the computation for a while, or the wire to a caller in wait().
void Worker::rest(std::unique_lock<std::mutex>& lock) {
  if (urgent_) {
    wake_.wait(lock, [&] { return stop_ || !urgent_; });
    return;
  }
  const Clock::time_point now = Clock::now();
  if (waiting_since_ == Clock::time_point{}) waiting_since_ = now;
  const Clock::duration pause = std::clamp<Clock::duration>((now - waiting_since_) / 4, kShortestPause, kLongestPause);
  wake_.wait_until(lock, now + pause, [&] { return stop_; });
}

bool Worker::wants_thread() const {
  return background_ && (lazy_bytes_ > kSmallBytes || submitted_ - finished_ > kLazyJobs);
}

void Worker::wake() {
  const std::lock_guard lock(mutex_);
  std::fegetenv(&modes_);
  wanted_ = true;
  wake_.notify_one();
}

void Worker::store_error(std::exception_ptr error) {
  wire_->cancel();
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  failed_ = true;
}

void Worker::throw_if_failed() {
  if (!failed_) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(error_);
}

void Worker::give_up(Clock::duration waited, const Missing& missing) {
  const std::string text = join_text(describe_wait(waited, missing), ". wait_limit (SYNCLINE_WAIT_LIMIT) is reached");
  store_error(std::make_exception_ptr(StallError(text)));
  take_buffers_back();
  throw_if_failed();
}

// The wire, which is cancelled, no longer accesses the caller's buffers, unless a call on the thread hangs.
void Worker::take_buffers_back() noexcept {
  for (const auto until = Clock::now() + kGrace; Clock::now() < until; std::this_thread::sleep_for(kLongestPause)) {
    const std::unique_lock hold(wire_mutex_, std::try_to_lock);
    if (!hold) continue;
    if (begun_) try {
        wire_->poll(slot(finished_ + 1));
      } catch (const std::exception&) {  // the wire has given up too
      }
    return;
  }
}

WorkerCommunicator::WorkerCommunicator(std::unique_ptr<Wire> wire, const WorkerOptions& options)
    : worker_(std::make_shared<Worker>(std::move(wire), options)) {
  Worker::start(worker_);
}

WorkerCommunicator::~WorkerCommunicator() {
  end_trace(*this, &worker_->stats(), worker_->clean() && std::uncaught_exceptions() == 0);
  worker_->stop();
}

Ticket WorkerCommunicator::all_reduce(const Tag& tag, void* data, std::int64_t count, DType dtype, Reduce reduce) {
  return worker_->submit(make_all_reduce(tag, data, count, dtype, reduce));
}

Ticket WorkerCommunicator::reduce_scatter(const Tag& tag, void* data, std::span<const std::int64_t> counts, DType dtype,
                                          Reduce reduce) {
  return worker_->submit(make_reduce_scatter(tag, data, counts, dtype, reduce, size()));
}

NodeBlock WorkerCommunicator::node_memory(std::size_t bytes) {
  static const Tag tag{.names = remember_names("whether all nodes have memory to share")};
  NodeBlock block = worker_->node_memory(bytes);
  std::int32_t enough = block.begin == nullptr ? 0 : 1;
  wait(all_reduce(tag, &enough, 1, DType::kInt32, Reduce::kMin));
  return enough == 0 ? NodeBlock{} : block;
}

std::unique_ptr<Communicator> WorkerCommunicator::group(std::span<const int>) {
  fail("group: ", describe(), " cannot be split");
}

Ticket WorkerCommunicator::all_gather(const Tag& tag, const void* send, void* receive,
                                      std::span<const std::int64_t> byte_counts) {
  return worker_->submit(make_all_gather(tag, send, receive, byte_counts, rank(), size()));
}

Ticket WorkerCommunicator::gather_on_nodes(const Tag& tag, void* data, std::span<const std::int64_t> byte_counts) {
  return worker_->submit(make_gather_on_nodes(tag, data, byte_counts, size()));
}

Ticket WorkerCommunicator::broadcast(const Tag& tag, void* data, std::int64_t bytes, int root) {
  return worker_->submit(make_broadcast(tag, data, bytes, root, size()));
}

}  // namespace syncline::comm
