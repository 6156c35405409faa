#include "syncline/training/signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "syncline/error.h"

namespace syncline::training {
namespace {

std::atomic<bool> installed = false;
std::atomic<bool> save_asked = false;
std::atomic<int> stopped_by = 0;              // the first signal that asked to stop
std::atomic<bool> stops = false;              // the training has ended its last step and saves
std::atomic<std::int64_t> terminated_at = 0;  // of the first SIGTERM: CLOCK_MONOTONIC, ns
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

std::atomic<std::int64_t> patience = 0;  // ns

// A second SIGTERM, `patience` after the first, ends a training whose step hangs.
void end_what_hangs() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  std::int64_t before = 0;
  if (terminated_at.compare_exchange_strong(before, now) || stops || now - before < patience) return;
  constexpr char kText[] =
      "syncline: ended in the middle of a step by a second SIGTERM; the newest checkpoint is intact\n";
  static_cast<void>(write(STDERR_FILENO, kText, sizeof kText - 1) == 0);
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);  // delivered when the handler returns
}

void handle(int signal) {
  if (signal == SIGCONT) {
    save_asked = true;
    return;
  }
  int none = 0;
  stopped_by.compare_exchange_strong(none, signal);
  if (signal == SIGTERM) end_what_hangs();
}

}  // namespace

Signals::Signals(std::chrono::nanoseconds patience_with_steps) {
  if (installed.exchange(true)) fail<ValueError>("Signals: this process already has a Signals object; use only one");
  save_asked = false;
  stopped_by = 0;
  stops = false;
  terminated_at = 0;
  patience = patience_with_steps.count();
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i)
    if (sigaction(kSignals[i], &action, &before_[i]) != 0)
      fail<ValueError>("Signals: cannot handle signal ", kSignals[i], ": ", std::strerror(errno));
}

Signals::~Signals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  installed = false;
}

Request Signals::pending() const {
  if (stopped_by != 0) return Request::kStop;
  return save_asked ? Request::kSave : Request::kNone;
}

void Signals::begins(Request request) {
  save_asked = false;
  if (request == Request::kStop) stops = true;
}

std::string Signals::name() const {
  const int signal = stopped_by != 0 ? stopped_by.load() : save_asked ? SIGCONT : 0;
  return signal == 0 ? "" : std::string("SIG") + sigabbrev_np(signal);
}

}  // namespace syncline::training
