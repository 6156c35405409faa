// A worker whose other ranks fail: after the error no thread touches the caller's buffers.
#include "comm/worker/worker.h"
#include "comm/worker/backoff.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/local/local_communicator.h"

namespace syncline::comm {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kLarge = 100000;

struct Seen {
  std::atomic<bool> transferring = false, let_go = false, cancelled = false, destroyed = false;
};

// A transfer lasts until it is cancelled, and 100 ms longer: poll throws then.
class SlowWire : public Wire {
 public:
  SlowWire(Seen& seen, bool closes) : seen_(seen), closes_(closes) {}
  ~SlowWire() override { seen_.destroyed = true; }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void begin(const Collective&) override {}
  Progress poll(const Collective&) override {
    seen_.transferring = true;
    if (!seen_.cancelled) return Progress::kStill;
    std::this_thread::sleep_for(100ms);
    seen_.let_go = true;
    fail<CommError>("given up");
  }
  void post_note(std::uint64_t) override {}
  std::optional<std::uint64_t> take_note() override { return {}; }
  std::string describe() const override { return "a slow wire"; }
  bool close(bool) noexcept override { return closes_; }
  Missing missing() const override { return {}; }
  void cancel() noexcept override { seen_.cancelled = true; }

 protected:
  Seen& seen() const { return seen_; }

 private:
  Seen& seen_;
  const bool closes_;
};

TEST(Worker, WhoGivesUpGetsItsBuffersBack) {
  Seen seen;
  WorkerCommunicator c(std::make_unique<SlowWire>(seen, true), {.wait_limit = 200ms});
  std::vector<float> data(kLarge);
  EXPECT_THROW(c.wait(c.all_reduce({}, data.data(), kLarge, DType::kFloat32, Reduce::kSum)), StallError);
  EXPECT_TRUE(seen.let_go);
}

// A transfer takes a second, and moves all the time.
class MovingWire : public SlowWire {
 public:
  explicit MovingWire(Seen& seen) : SlowWire(seen, true) {}
  Progress poll(const Collective&) override {
    seen().transferring = true;
    std::this_thread::sleep_for(20ms);
    return ++moved_ < 50 ? Progress::kStill : Progress::kDone;
  }
  std::uint64_t moved() const noexcept override { return moved_; }

 private:
  std::atomic<std::uint64_t> moved_ = 0;
};

TEST(Worker, LimitsCountTheTimeWithoutProgress) {
  Seen seen;
  WorkerCommunicator c(std::make_unique<MovingWire>(seen), {.stall_limit = 200ms, .wait_limit = 400ms});
  std::vector<float> data(kLarge);
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(c.wait(c.all_reduce({}, data.data(), kLarge, DType::kFloat32, Reduce::kSum)));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Each collective is done 200 ms after its begin.
class LateWire : public SlowWire {
 public:
  explicit LateWire(Seen& seen) : SlowWire(seen, true) {}
  void begin(const Collective&) override { begun_ = std::chrono::steady_clock::now(); }
  Progress poll(const Collective&) override {
    return std::chrono::steady_clock::now() - begun_ > 200ms ? Progress::kDone : Progress::kWaiting;
  }

 private:
  std::chrono::steady_clock::time_point begun_;
};

TEST(Worker, AnEarlierCollectiveThatEndsIsProgress) {
  Seen seen;
  WorkerCommunicator c(std::make_unique<LateWire>(seen), {.stall_limit = 400ms, .wait_limit = 500ms});
  float value = 0;
  Ticket last = 0;
  for (int i = 0; i < 5; ++i) last = c.all_reduce({}, &value, 1, DType::kFloat32, Reduce::kSum);
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(c.wait(last));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Worker, NotesPassDuringATransfer) {
  Seen seen;
  WorkerCommunicator c(std::make_unique<MovingWire>(seen), {});
  std::vector<float> data(kLarge);
  const Ticket ticket = c.all_reduce({}, data.data(), kLarge, DType::kFloat32, Reduce::kSum);
  while (!seen.transferring) std::this_thread::sleep_for(1ms);
  const auto begin = std::chrono::steady_clock::now();
  c.post_note(1);
  EXPECT_EQ(c.take_note(), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 300ms);
  c.wait(ticket);
}

TEST(Worker, EndCancelsATransferThatGoesOn) {
  Seen seen;
  std::vector<float> data(kLarge);
  {
    WorkerCommunicator c(std::make_unique<SlowWire>(seen, true), {});
    c.all_reduce({}, data.data(), kLarge, DType::kFloat32, Reduce::kSum);
    while (!seen.transferring) std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(seen.let_go);
  EXPECT_TRUE(seen.destroyed);
}

TEST(Worker, WireThatIsStillInUseIsNotDestroyed) {
  Seen seen;
  auto* wire = new SlowWire(seen, false);
  { WorkerCommunicator c(std::unique_ptr<Wire>(wire), {}); }
  EXPECT_FALSE(seen.destroyed);
  delete wire;
}

// Both ranks have come when this one leaves; the other one has not transferred yet.
TEST(Worker, EndDuringATransferIsToldToTheOthers) {
  auto wires = make_local_wires(2);
  std::vector<float> own(kLarge), others(kLarge);
  const Collective collective = make_all_reduce({}, others.data(), kLarge, DType::kFloat32, Reduce::kSum);
  {
    WorkerCommunicator c(std::move(wires[0]), {});
    c.all_reduce({}, own.data(), kLarge, DType::kFloat32, Reduce::kSum);
    wires[1]->begin(collective);
    while (wires[1]->missing().text != "all ranks that answer have called it") std::this_thread::sleep_for(1ms);
  }
  const auto finish = [&] {
    while (wires[1]->poll(collective) != Wire::Progress::kDone) std::this_thread::yield();
  };
  EXPECT_THROW(finish(), StallError);
  wires[1]->close(false);
}

// The other rank runs at the first look (missing()) and not at the later ones. The collective is done after more than
// `slow_looks` looks.
class EndingWire : public SlowWire {
 public:
  EndingWire(Seen& seen, int slow_looks) : SlowWire(seen, true), slow_looks_(slow_looks) {}
  Progress poll(const Collective&) override { return looks_ > slow_looks_ ? Progress::kDone : Progress::kWaiting; }
  Missing missing() const override { return {.text = "rank 1", .may_come = ++looks_ == 1}; }

 private:
  const int slow_looks_;
  mutable std::atomic<int> looks_ = 0;
};

// At the end of a program the limit restarts while the other rank runs, so that rank may come late.
TEST(Worker, AtTheEndTheLimitCountsFromWhenTheOthersWereLastSeenRunning) {
  Seen seen;
  const WorkerOptions options{.stall_limit = 400ms, .wait_limit = 800ms};  // looks at 0.4, 0.8, 1.2 s
  WorkerCommunicator in_time(std::make_unique<EndingWire>(seen, 1), options);
  EXPECT_NO_THROW(in_time.barrier({.plan = kEndOfProgram}));
  WorkerCommunicator stalls(std::make_unique<EndingWire>(seen, 1000), options);
  EXPECT_THROW(stalls.barrier({.plan = kEndOfProgram}), StallError);
  WorkerCommunicator elsewhere(std::make_unique<EndingWire>(seen, 1), options);
  EXPECT_THROW(elsewhere.barrier({}), StallError);
}

TEST(Backoff, YieldsAtOnceWhereRanksShareProcessors) {
  Backoff::set_crowded(true);
  EXPECT_FALSE(Backoff().hot());
  Backoff::set_crowded(false);
  EXPECT_TRUE(Backoff().hot());
}

}  // namespace
}  // namespace syncline::comm
