// Signals: what the process is asked to do from outside, by schedulers, launchers and people.
//
// SIGUSR1, SIGUSR2 and SIGTERM ask for the end of the training, with a checkpoint. Another SIGTERM, a minute or more
// after the first and before the step was over, ends the process: it hangs. Schedulers and mpirun send theirs within
// seconds of each other. SIGCONT asks for a checkpoint only: mpirun sends it a second before SIGTERM, when somebody has
// died or the job is being stopped, but a shell's `fg` sends it too, after which everything goes on. What each launcher
// sends and when is in docs/jobs.md.
//
// One object a process, made first of all, so that no signal finds the process without; it takes the four signals from
// whoever had them, and gives them back at its end. That must come before comm::end_job: a rank that another one ends
// because of an error is to go. Its functions are safe to call from any thread.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>

namespace syncline::training {

enum class Request : std::int32_t {  // the greater one wins, also among ranks
  kNone = 0,
  kSave = 1,  // and go on
  kStop = 2,  // save and leave
};

// Who asks. For the thread that trains.
class Requests {
 public:
  virtual ~Requests() = default;
  // What has been asked for and is not done yet.
  virtual Request pending() const = 0;
  // A save that was asked for is on its way. To stop is asked for once and for all.
  virtual void save_begins() = 0;
  // Who asks for it, "SIGTERM"; "" if nobody does.
  virtual std::string name() const = 0;
};

class Signals : public Requests {
 public:
  // Throws ValueError if there is another one. `patience_with_steps`: how long after the first SIGTERM a step may last.
  explicit Signals(std::chrono::nanoseconds patience_with_steps = std::chrono::minutes(1));
  ~Signals() override;
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  Request pending() const override;
  void save_begins() override;
  std::string name() const override;

 private:
  static constexpr std::array kSignals{SIGUSR1, SIGUSR2, SIGTERM, SIGCONT};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace syncline::training
