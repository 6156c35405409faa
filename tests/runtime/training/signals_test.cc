// The requests that signals make.
#include "syncline/training/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "syncline/error.h"

namespace syncline::training {
namespace {

TEST(Signals, ToStop) {
  for (const auto& [signal, name] : {std::pair{SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGTERM, "SIGTERM"}}) {
    Signals signals;
    EXPECT_EQ(signals.pending(), Request::kNone);
    EXPECT_EQ(signals.name(), "");
    std::raise(signal);
    EXPECT_EQ(signals.pending(), Request::kStop);
    EXPECT_EQ(signals.name(), name);
    signals.begins(Request::kStop);
    EXPECT_EQ(signals.pending(), Request::kStop);
  }
}

TEST(Signals, ToContinueAsksForACheckpoint) {
  Signals signals;
  std::raise(SIGCONT);
  EXPECT_EQ(signals.pending(), Request::kSave);
  EXPECT_EQ(signals.name(), "SIGCONT");
  signals.begins(Request::kSave);
  EXPECT_EQ(signals.pending(), Request::kNone);
  std::raise(SIGCONT);
  std::raise(SIGTERM);
  EXPECT_EQ(signals.pending(), Request::kStop);
  EXPECT_EQ(signals.name(), "SIGTERM") << "what ends the job is the reason";
}

TEST(Signals, AreGivenBack) {
  static int seen = 0;
  const auto before = std::signal(SIGUSR1, [](int) { ++seen; });
  {
    Signals signals;
    std::raise(SIGUSR1);
    EXPECT_EQ(seen, 0);
  }
  std::raise(SIGUSR1);
  EXPECT_EQ(seen, 1);
  std::signal(SIGUSR1, before);
}

TEST(Signals, AreOnlyOne) {
  const Signals signals;
  EXPECT_THROW(Signals(), ValueError);
}

// The exit status of a process that gets SIGTERM twice. In between it has read the request, and stops if `stops`.
int status_after_two(useconds_t pause, bool stops) {
  const pid_t child = fork();
  if (child == 0) {
    Signals signals(std::chrono::seconds(1));
    raise(SIGTERM);
    if (const Request request = signals.pending(); stops) signals.begins(request);
    usleep(pause);
    raise(SIGTERM);
    _exit(signals.pending() == Request::kStop ? 75 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Signals, ASecondOneEndsWhatHangs) {
  EXPECT_EQ(status_after_two(1'100'000, false), 128 + SIGTERM);
  EXPECT_EQ(status_after_two(1'100'000, true), 75);
  EXPECT_EQ(status_after_two(1000, false), 75);
}

}  // namespace
}  // namespace syncline::training
