// Which signal asks for what.
#include "runtime/training/signals.h"

#include <gtest/gtest.h>

#include "base/error.h"

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
    signals.save_begins();
    EXPECT_EQ(signals.pending(), Request::kStop);
  }
}

TEST(Signals, ToContinueAsksForACheckpoint) {
  Signals signals;
  std::raise(SIGCONT);
  EXPECT_EQ(signals.pending(), Request::kSave);
  EXPECT_EQ(signals.name(), "SIGCONT");
  signals.save_begins();
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

}  // namespace
}  // namespace syncline::training
