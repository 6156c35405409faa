// The training loop: the calls of callbacks, the logs, and how a training ends and resumes.
#include "syncline/training/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "syncline/backend/config.h"
#include "syncline/session.h"
#include "tests/io/scratch.h"
#include "tests/runtime/training/small_fit.h"

namespace syncline::training {
namespace {

using io::message_of;
using Seen = std::vector<std::string>;

class FitTest : public testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
  Witness witness_;
};

Seen steps(int first, int last) {
  Seen seen;
  for (int i = first; i < last; ++i) {
    seen.push_back("step begin " + std::to_string(i));
    seen.push_back("step end " + std::to_string(i + 1));
  }
  return seen;
}

Seen joined(const std::vector<Seen>& parts) {
  Seen all;
  for (const Seen& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(BatchesTest, StepsOfAnyBatch) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const auto& [samples, batch, steps, last] : {std::array<std::int64_t, 4>{42, 8, 6, 2},
                                                    {40, 8, 5, 8},
                                                    {42, 42, 1, 42},
                                                    {42, kMost, 1, 42},
                                                    {kMost, kMost, 1, kMost}}) {
    const Batches batches{.samples = samples, .batch = batch, .read = {}};
    EXPECT_EQ(batches.steps(), steps) << samples << " by " << batch;
    EXPECT_EQ(batches.rows(batches.steps() - 1), last) << samples << " by " << batch;
  }
}

TEST_F(FitTest, TellsItsCallbacksInOrder) {
  SmallFit small(2, {&witness_});
  EXPECT_EQ(small.fit->run(), Ended::kFinished);
  EXPECT_EQ(witness_.seen, joined({{"train begin", "epoch begin 0"},
                                   steps(0, 6),
                                   {"epoch end 0", "epoch begin 1"},
                                   steps(6, 12),
                                   {"epoch end 1", "train end"}}));
  const io::TrainingState& counts = small.fit->counts();
  EXPECT_EQ(counts.epoch, 2);
  EXPECT_EQ(counts.step, 0);
  EXPECT_EQ(counts.global_step, 12);
  EXPECT_EQ(counts.seed, 3u);
  EXPECT_EQ(counts.random_step, session_.random_step());
}

// The last batch has two of 42 rows, so a mean over steps would differ.
TEST_F(FitTest, LogsAreMeansOverRows) {
  struct Sums : Callback {
    double loss = 0;
    std::int64_t rows = 0;
    void on_step_end(Fit& fit, const Logs& logs) override {
      loss += logs.find("loss").value() * static_cast<double>(fit.rows());
      rows += fit.rows();
      EXPECT_DOUBLE_EQ(fit.averages().find("loss").value(), loss / static_cast<double>(rows));
    }
  } sums;
  SmallFit small(1, {&sums, &witness_});
  small.fit->run();
  EXPECT_EQ(sums.rows, 42);
  ASSERT_EQ(witness_.epochs.size(), 1u);
  Seen names;
  for (const auto& [name, value] : witness_.epochs[0]) names.push_back(name);
  EXPECT_EQ(names, (Seen{"loss", "error", "val_loss", "val_error"}));
  EXPECT_DOUBLE_EQ(witness_.epochs[0].find("loss").value(), sums.loss / 42);
  EXPECT_DOUBLE_EQ(witness_.epochs[0].find("val_loss").value(), small.fit->options().evaluate().find("loss").value());
}

TEST_F(FitTest, WhatACallbackAddsTheNextOneSees) {
  struct Rate : Callback {
    void on_epoch_end(Fit&, std::int64_t, Logs& logs) override { logs.set("rate", 0.5); }
  } rate;
  SmallFit small(1, {&rate, &witness_});
  small.fit->run();
  EXPECT_EQ(witness_.epochs.at(0).find("rate"), 0.5);
}

TEST_F(FitTest, StopInAnEpochLeavesItOpen) {
  witness_.stop_at = "step end 3";
  SmallFit small(2, {&witness_});
  EXPECT_EQ(small.fit->run(), Ended::kFinished);
  EXPECT_EQ(witness_.seen, joined({{"train begin", "epoch begin 0"}, steps(0, 3), {"train end"}}));
}

TEST_F(FitTest, StopAfterTheLastStepEndsTheEpoch) {
  witness_.stop_at = "step end 6";
  SmallFit small(2, {&witness_});
  EXPECT_EQ(small.fit->run(), Ended::kFinished);
  EXPECT_EQ(witness_.seen, joined({{"train begin", "epoch begin 0"}, steps(0, 6), {"epoch end 0", "train end"}}));
}

TEST_F(FitTest, StopAtTheEndOfAnEpoch) {
  witness_.stop_at = "epoch end 0";
  SmallFit small(2, {&witness_});
  small.fit->run();
  EXPECT_EQ(small.fit->counts().epoch, 1);
  EXPECT_EQ(witness_.seen.back(), "train end");
}

TEST_F(FitTest, ErrorsReachEveryCallbackAndTheCaller) {
  Witness second;
  witness_.throw_at = "step end 4";
  SmallFit small(1, {&witness_, &second});
  EXPECT_EQ(message_of<std::runtime_error>([&] { small.fit->run(); }), "thrown at step end 4");
  EXPECT_EQ(witness_.seen.back(), "failure: thrown at step end 4");
  EXPECT_EQ(second.seen.back(), "failure: thrown at step end 4");
  EXPECT_EQ(small.fit->counts().global_step, 4);
}

// Wherever the training is paused, the rest has the logs and the variables of the unbroken training.
TEST_F(FitTest, APausedTrainingGoesOnAsTheUnbrokenOne) {
  SmallFit unbroken(3, {&witness_});
  unbroken.fit->run();
  for (const std::string where : {"step end 1", "step end 6", "step end 9", "epoch end 1", "epoch begin 1"}) {
    SCOPED_TRACE(where);
    Session session(3);
    const SessionScope scope(session);
    Witness first, second;
    first.pause_at = where;
    SmallFit small(3, {&first});
    EXPECT_EQ(small.fit->run(), Ended::kPaused);
    const FitState state = small.fit->state();
    session.set_random_step(12345);  // the state overrides it
    FitOptions options = small.fit->options();
    options.callbacks = {&second};
    Fit rest(options);
    rest.set_state(state);
    EXPECT_EQ(rest.run(), Ended::kFinished);
    EXPECT_EQ(small.digest(), unbroken.digest());
    first.epochs.insert(first.epochs.end(), second.epochs.begin(), second.epochs.end());
    ASSERT_EQ(first.epochs.size(), 3u);
    for (std::size_t e = 0; e < 3; ++e)
      for (const auto& [name, value] : witness_.epochs[e]) EXPECT_EQ(first.epochs[e].find(name), value) << name << e;
  }
}

// The state is that after the last step, so that a resumed training repeats the evaluation.
TEST_F(FitTest, AnEvaluationThatFailsHasDrawnNothing) {
  Function draw({}, {random_uniform({4})});
  SmallFit small(3, {});
  FitOptions options = small.fit->options();
  Session::RandomRuns before;
  options.evaluate = [&]() -> Logs {
    before = session_.random_runs();
    draw({});
    throw ValueError("no such file");
  };
  Fit fit(options);
  EXPECT_EQ(message_of<ValueError>([&] { fit.run(); }), "no such file");
  EXPECT_NE(session_.random_runs(), before);
  EXPECT_EQ(fit.state().random_runs, before);
}

TEST_F(FitTest, MaxStepsCountsFromTheBeginning) {
  SmallFit small(3, {&witness_});
  FitOptions options = small.fit->options();
  options.max_steps = 8;
  Fit fit(options);
  EXPECT_EQ(fit.run(), Ended::kFinished);
  EXPECT_EQ(fit.counts().global_step, 8);
  EXPECT_EQ(fit.counts().step, 2);
  fit.run();
  EXPECT_EQ(fit.counts().global_step, 8) << "nothing was left to do";
}

TEST_F(FitTest, APausedTrainingAtMaxStepsStillEndsItsEpoch) {
  witness_.pause_at = "step end 6";
  SmallFit small(3, {&witness_});
  FitOptions options = small.fit->options();
  options.max_steps = 6;
  Fit paused(options);
  EXPECT_EQ(paused.run(), Ended::kPaused);
  EXPECT_EQ(paused.counts().step, 6);
  witness_ = {};
  Fit resumed(options);
  resumed.set_state(paused.state());
  EXPECT_EQ(resumed.run(), Ended::kFinished);
  EXPECT_EQ(witness_.seen, (std::vector<std::string>{"train begin", "epoch begin 0", "epoch end 0", "train end"}));
  EXPECT_EQ(resumed.counts().epoch, 1);
}

TEST_F(FitTest, RefusesAStateOfOtherBatches) {
  SmallFit small(1, {});
  FitState other = small.fit->state();
  other.counts.batch = 7;
  EXPECT_CONTAINS(message_of<ValueError>([&] { small.fit->set_state(other); }), "batches of 7 on 42 samples");
  other = small.fit->state();
  other.sums = {1, 2, 3};
  EXPECT_CONTAINS(message_of<ValueError>([&] { small.fit->set_state(other); }), "it belongs to another training");
}

TEST_F(FitTest, RefusesOptionsThatMakeNoSense) {
  SmallFit small(1, {});
  FitOptions options = small.fit->options();
  options.names = {"loss"};
  EXPECT_CONTAINS(message_of<ValueError>([&] { Fit(options).run(); }), "2 outputs, but 1 names");
  options.callbacks = {nullptr};
  EXPECT_CONTAINS(message_of<ValueError>([&] { Fit(options).run(); }), "a callback is null");
  options.step = nullptr;
  EXPECT_CONTAINS(message_of<ValueError>([&] { Fit(options).run(); }), "no step function");
  options = small.fit->options();
  options.batches.batch = 0;
  EXPECT_CONTAINS(message_of<ValueError>([&] { Fit(options).run(); }), "42 samples in batches of 0");
}

}  // namespace
}  // namespace syncline::training
