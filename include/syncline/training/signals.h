// Signals: requests from schedulers, launchers and people, as POSIX signals.
//
// SIGUSR1, SIGUSR2 and SIGTERM ask the training to save a checkpoint and stop. A second SIGTERM ends the process if the
// same step still runs a minute or more after the first: the step hangs. The delay is needed because schedulers and
// mpirun both send SIGTERM, within seconds of each other. SIGCONT asks for a checkpoint only. mpirun sends SIGCONT a
// second before SIGTERM if a rank has died or the job is being stopped, but a shell's `fg` sends it too, after which
// the training continues. docs/jobs.md lists what each launcher sends and when.
//
// Make one object per process, before anything else, so that it handles every signal. It replaces the handlers of the
// four signals and restores them when destroyed. Destroy it before comm::end_job: a rank that another one ends because
// of an error must end. Its functions are safe to call from any thread.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>

#pragma GCC visibility push(default)
namespace syncline::training {

enum class Request : std::int32_t {  // the greater one wins, also between ranks
  kNone = 0,
  kSave = 1,  // save and continue
  kStop = 2,  // save and stop
};

// A source of requests, used by the training thread.
class Requests {
 public:
  virtual ~Requests() = default;
  // The request that is not yet fulfilled.
  virtual Request pending() const = 0;
  // The ranks have agreed on this request, which any of them may have had, and fulfil it now. Clears kSave; kStop
  // remains.
  virtual void begins(Request request) = 0;
  // The origin of the request, "SIGTERM"; "" without a request.
  virtual std::string name() const = 0;
};

class Signals : public Requests {
 public:
  // Throws ValueError if another Signals object exists. `patience_with_steps`: how long a step may last after the first
  // SIGTERM.
  explicit Signals(std::chrono::nanoseconds patience_with_steps = std::chrono::minutes(1));
  ~Signals() override;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  Request pending() const override;
  void begins(Request request) override;
  std::string name() const override;

 private:
  static constexpr std::array kSignals{SIGUSR1, SIGUSR2, SIGTERM, SIGCONT};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace syncline::training
#pragma GCC visibility pop
