#include "comm/shared/steps.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace syncline::comm {
namespace {

struct Counted {
  explicit Counted(int& living) : living_(living) { ++living_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --living_; }
  int& living_;
};

struct Signals {
  bool first = false, second = false;
  int living = 0, passed = 0;
};

Steps inner(Signals& signals, bool fails_at_once, bool fails_later) {
  const Counted one(signals.living);
  if (fails_at_once) throw std::runtime_error("at once");
  co_await until([&] { return signals.first; });
  ++signals.passed;
  if (fails_later) throw std::runtime_error("later");
  co_await until([&] { return signals.second; });
  ++signals.passed;
}

Steps outer(Signals& signals, bool fails_at_once = false, bool fails_later = false) {
  const Counted one(signals.living);
  co_await inner(signals, fails_at_once, fails_later);
  ++signals.passed;
}

TEST(Steps, GoOnWhenWhatTheyWaitForHolds) {
  Signals signals;
  {
    Steps steps = outer(signals);
    EXPECT_EQ(signals.living, 0);  // nothing runs before the first call
    EXPECT_FALSE(steps.advance());
    EXPECT_FALSE(steps.advance());
    EXPECT_EQ(signals.passed, 0);
    signals.first = true;
    EXPECT_FALSE(steps.advance());
    EXPECT_EQ(signals.passed, 1);
    signals.second = true;
    while (!steps.advance()) continue;
    EXPECT_EQ(signals.passed, 3);
  }
  EXPECT_EQ(signals.living, 0);
}

TEST(Steps, MayBeDestroyedAtAWait) {
  Signals signals;
  {
    Steps steps = outer(signals);
    EXPECT_FALSE(steps.advance());
    EXPECT_EQ(signals.living, 2);
  }
  EXPECT_EQ(signals.living, 0);
}

TEST(Steps, PassOnExceptions) {
  for (const bool later : {false, true}) {
    Signals signals;
    {
      Steps steps = outer(signals, !later, later);
      if (later) {
        EXPECT_FALSE(steps.advance());
      }
      signals.first = true;
      EXPECT_THROW(steps.advance(), std::runtime_error);
    }
    EXPECT_EQ(signals.living, 0);
  }
}

}  // namespace
}  // namespace syncline::comm
