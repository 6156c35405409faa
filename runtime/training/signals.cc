#include "runtime/training/signals.h"

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace syncline::training {
namespace {

std::atomic<bool> installed = false;
std::atomic<bool> save_asked = false;
std::atomic<int> stopped_by = 0;  // the first signal that asked for the end
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void handle(int signal) {
  if (signal == SIGCONT) save_asked = true;
  else if (int none = 0; !stopped_by.compare_exchange_strong(none, signal)) return;
}

}  // namespace

Signals::Signals() {
  if (installed.exchange(true)) fail<ValueError>("Signals: there is one already; a process has one");
  save_asked = false;
  stopped_by = 0;
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

void Signals::save_begins() { save_asked = false; }

std::string Signals::name() const {
  const int signal = stopped_by != 0 ? stopped_by.load() : save_asked ? SIGCONT : 0;
  return signal == 0 ? "" : std::string("SIG") + sigabbrev_np(signal);
}

}  // namespace syncline::training
