// Callbacks that decide: every rank decides the same, and a resumed training decides as the unbroken one.
// keras_decisions_test.py compares the decisions with those of Keras's callbacks.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/training/callbacks/saved_state.h"
#include "syncline/session.h"
#include "syncline/training/callbacks/early_stopping.h"
#include "syncline/training/callbacks/history.h"
#include "syncline/training/callbacks/learning_rate.h"
#include "syncline/training/callbacks/terminate_on_nan.h"
#include "syncline/training/job.h"
#include "syncline/training/resume.h"
#include "tests/io/scratch.h"
#include "tests/runtime/ranks.h"
#include "tests/runtime/training/callbacks/scripted_fit.h"
#include "tests/runtime/training/small_fit.h"

namespace syncline::training {
namespace {

using io::message_of;

class DecidingTest : public ::testing::Test {
 protected:
  Session session_{3};
  SessionScope scope_{session_};
};

double value_of(const Variable& v) { return get_value(v).item(); }

TEST_F(DecidingTest, StopsAndRestoresTheBestWeights) {
  ScriptedFit fit({5, 3, 4, 2, 2, 3, 1});
  EarlyStopping stopping({.monitor = "loss", .patience = 2, .restore = {fit.weight}});
  const FitState end = fit.run({&stopping});
  EXPECT_EQ(end.counts.epoch, 6);
  EXPECT_EQ(stopping.stopped_epoch(), 5);
  EXPECT_EQ(value_of(fit.weight), 4) << "the weight after the epoch of loss 2";
}

TEST_F(DecidingTest, WithoutABetterEpochNothingIsRestored) {
  ScriptedFit fit({std::nan(""), std::nan(""), 1});
  EarlyStopping stopping({.monitor = "loss", .patience = 2, .restore = {fit.weight}});
  fit.run({&stopping});
  EXPECT_EQ(stopping.stopped_epoch(), 1);
  EXPECT_EQ(value_of(fit.weight), 2);
}

TEST_F(DecidingTest, OneCallbackServesTwoTrainings) {
  EarlyStopping stopping({.monitor = "loss"});
  for (int i = 0; i < 2; ++i) {
    ScriptedFit fit({2, 1, 3, 0});
    EXPECT_EQ(fit.run({&stopping}).counts.epoch, 3);
  }
}

TEST_F(DecidingTest, AnEndedTrainingStaysEnded) {
  ScriptedFit fit({1, 2, 0, 0});
  EarlyStopping before({.monitor = "loss"}), after({.monitor = "loss"});
  const FitState state = fit.run({&before});
  after.set_state(before.state());
  EXPECT_EQ(fit.run({&after}, &state).counts.epoch, 2);
}

TEST_F(DecidingTest, AResumeWithoutTheBestWeightsIsRefused) {
  ScriptedFit fit({1, 2, 3});
  EarlyStopping before({.monitor = "loss", .patience = 9, .restore = {fit.weight}});
  const FitState state = fit.run({&before}, nullptr, 1);
  EarlyStopping after({.monitor = "loss", .patience = 9, .restore = {fit.weight}});
  after.set_state(before.state());
  EXPECT_EQ(message_of<ValueError>([&] { fit.run({&after}, &state); }),
            "EarlyStopping: the checkpoint lacks the values after epoch 1, which are to be restored; add kept() to the "
            "checkpoint's variables");
}

TEST_F(DecidingTest, AMissingLogIsNamed) {
  ScriptedFit fit({1});
  EarlyStopping stopping({.monitor = "val_loss"});
  EXPECT_EQ(message_of<ValueError>([&] { fit.run({&stopping}); }),
            "EarlyStopping: monitor is 'val_loss', but the logs are loss");
  ReduceLROnPlateau reduce(fit.learning_rate);
  EXPECT_EQ(message_of<ValueError>([&] { fit.run({&reduce}); }),
            "ReduceLROnPlateau: monitor is 'val_loss', but the logs are loss, lr");
}

TEST_F(DecidingTest, SchedulesAreAskedOnceAnEpoch) {
  ScriptedFit fit({1, 1, 1, 1});
  const auto halve = [](std::int64_t epoch, double rate) { return epoch == 0 ? rate : rate / 2; };
  LearningRateScheduler first(fit.learning_rate, halve), second(fit.learning_rate, halve);
  History history;
  fit.run({&first, &history});
  EXPECT_EQ(history.values().at("lr"), (std::vector<double>{1, 0.5, 0.25, 0.125}));
  EXPECT_EQ(history.epochs(), (std::vector<std::int64_t>{0, 1, 2, 3}));

  // Resume within an epoch whose rate is already set.
  SmallFit small(3, {});
  const Variable rate = small.optimizer.learning_rate;
  set_value(rate, 1);
  LearningRateScheduler before(rate, halve), after(rate, halve);
  Witness witness;
  witness.pause_at = "step end 8";
  FitOptions options = small.fit->options();
  options.callbacks = {&before, &witness};
  Fit broken(options);
  EXPECT_EQ(broken.run(), Ended::kPaused);
  const std::string state = before.state();
  set_value(rate, 77);
  after.set_state(state);
  options.callbacks = {&after, &history};
  Fit rest(options);
  rest.set_state(broken.state());
  rest.run();
  EXPECT_EQ(history.values().at("lr"), (std::vector<double>{0.5, 0.25}));
}

TEST_F(DecidingTest, OneSchedulerServesTwoTrainings) {
  ScriptedFit fit({1});
  LearningRateScheduler callback(fit.learning_rate, [](std::int64_t, double rate) { return rate / 2; });
  fit.run({&callback});
  fit.run({&callback});
  EXPECT_EQ(value_of(fit.learning_rate), 0.25);
}

TEST_F(DecidingTest, RefusesWhatIsNoRate) {
  ScriptedFit fit({1});
  LearningRateScheduler callback(fit.learning_rate, [](std::int64_t, double) { return std::nan(""); });
  EXPECT_EQ(message_of<ValueError>([&] { fit.run({&callback}); }),
            "LearningRateScheduler: the schedule gives nan for epoch 0; it must give a finite number");
  EXPECT_EQ(message_of<ValueError>([&] { ReduceLROnPlateau(fit.learning_rate, {.factor = 1}); }),
            "ReduceLROnPlateau: factor is 1; give a factor below 1");
}

TEST_F(DecidingTest, RefusesAStateOfAnotherKind) {
  ScriptedFit fit({1});
  EarlyStopping stopping;
  ReduceLROnPlateau reduce(fit.learning_rate);
  LearningRateScheduler scheduler(fit.learning_rate, [](std::int64_t, double rate) { return rate; });
  for (Callback* callback : std::initializer_list<Callback*>{&stopping, &reduce, &scheduler})
    for (const char* text : {"", "{", "{}", "7", R"({"best": 1, "epoch": "a"})", R"({"best": "x"})"}) {
      const std::string message = message_of<ValueError>([&] { callback->set_state(text); });
      EXPECT_ONE_LINE(message);
    }
}

TEST_F(DecidingTest, StatesKeepEveryBit) {
  for (const double best : {0.1 + 0.2, -1e-310, std::numeric_limits<double>::infinity(), 1e300}) {
    ScriptedFit fit({best});
    EarlyStopping before({.monitor = "loss", .mode = Mode::kMax}), after({.monitor = "loss", .mode = Mode::kMax});
    fit.run({&before});
    after.set_state(before.state());
    EXPECT_EQ(after.state(), before.state());
    EXPECT_EQ(number_in(nlohmann::json(text_of(best))), best);
  }
}

TEST_F(DecidingTest, EndsAtALossThatIsNoNumber) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    ScriptedFit fit({1, 2, bad, 3});
    TerminateOnNaN callback(nullptr);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(fit.run({&callback}).counts.global_step, 3);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "syncline: the loss of step 1 of epoch 3 is " +
                                                            std::string(std::isnan(bad) ? "nan" : "inf") +
                                                            ": the training ends\n");
  }
}

TEST_F(DecidingTest, ALossOfAnotherNameIsWatchedOrMissed) {
  ScriptedFit fit({1, std::nan(""), 3});
  TerminateOnNaN callback(nullptr, "cost");
  EXPECT_CONTAINS(message_of<ValueError>([&] { fit.run({&callback}); }),
                  "TerminateOnNaN: monitor is 'cost', but the logs are loss");
}

// Two schedulers, as of two optimizers, have one name.
TEST_F(DecidingTest, CallbacksOfOneNameKeepTheirStates) {
  SmallFit small(1, {});
  const Variable rate = small.optimizer.learning_rate, other = variable(0.0);
  const auto keep = [](std::int64_t, double so_far) { return so_far; };
  LearningRateScheduler first(rate, keep), second(other, keep);
  FitOptions options = small.fit->options();
  options.callbacks = {&first, &second};
  Fit fit(options);
  first.on_epoch_begin(fit, 5);
  second.on_epoch_begin(fit, 7);
  const std::string states[] = {first.state(), second.state()};
  const SavedModel model{"small", {{"all", {small.kernel}}}, {}};
  const io::Checkpoint checkpoint = snapshot(model, fit, nullptr, io::Shard{});
  second.set_state(states[0]);
  restore("a", checkpoint, {get_value(small.kernel)}, model, fit);
  EXPECT_NE(states[0], states[1]);
  EXPECT_EQ(first.state(), states[0]);
  EXPECT_EQ(second.state(), states[1]);
}

// A rank's result of training the network with dropout under the deciding callbacks.
struct Decided {
  std::vector<std::int64_t> epochs;
  std::map<std::string, std::vector<double>> logs;
  std::uint64_t digest = 0;
  friend bool operator==(const Decided&, const Decided&) = default;
};

class DecidingRanksTest : public ::testing::Test {
 protected:
  // Pauses after step `pause` of the training; 0: never.
  Decided train(comm::Communicator& communicator, const std::string& folder, bool resume, std::int64_t pause) {
    const auto found = resume ? find_checkpoint(folder, &communicator) : nullptr;
    SmallFit small(9, {});
    const Variable rate = small.optimizer.learning_rate;
    EarlyStopping stopping(
        {.monitor = "val_loss", .min_delta = 0.05, .patience = 2, .restore = {small.kernel, small.bias, small.top}});
    ReduceLROnPlateau reduce(rate, {.monitor = "loss", .factor = 0.5, .patience = 1, .min_delta = 0.5});
    LearningRateScheduler scheduler(rate, [](std::int64_t, double so_far) { return so_far * 0.9; });
    History history;
    Witness witness;
    if (pause > 0) witness.pause_at = "step end " + std::to_string(pause);
    SavedModel model{"small", {{"all", {small.kernel, small.bias, small.top}}}, small.optimizer.weights};
    model.optimizer.insert(model.optimizer.end(), stopping.kept().begin(), stopping.kept().end());
    Job job({.folder = folder, .model = model, .communicator = &communicator});
    FitOptions options = small.fit->options();
    options.callbacks = {&scheduler, &reduce, &stopping, &history, &witness, &job};
    Fit fit(options);
    if (found) found->resume(model, fit);
    fit.run();
    return {history.epochs(), history.values(), small.digest()};
  }

  Decided train_on(int ranks, const std::string& folder, bool resume = false, std::int64_t pause = 0) {
    std::vector<Decided> all(static_cast<std::size_t>(ranks));
    syncline::testing::on_ranks(
        ranks,
        [&](comm::Communicator& communicator) {
          all[static_cast<std::size_t>(communicator.rank())] =
              train(communicator, scratch_.path(folder), resume, pause);
        },
        {}, 3);
    for (const Decided& one : all) EXPECT_EQ(one, all[0]) << "the bits of all logs, and of all variables";
    return all[0];
  }

  io::Scratch scratch_;
};

TEST_F(DecidingRanksTest, AllRanksDecideAlike) {
  const Decided alone = train_on(1, "1");
  EXPECT_LT(alone.epochs.size(), 9u) << "nobody stopped it";
  EXPECT_LT(alone.logs.at("lr").back(), 0.001 * 0.5);
  for (const int ranks : {2, 3}) {
    const Decided decided = train_on(ranks, std::to_string(ranks));
    EXPECT_EQ(decided.epochs, alone.epochs);
    EXPECT_EQ(decided.logs.at("lr"), alone.logs.at("lr"));
  }
}

TEST_F(DecidingRanksTest, AResumedTrainingDecidesAsTheUnbrokenOne) {
  const Decided unbroken = train_on(2, "unbroken");
  for (const std::int64_t pause : {1, 6, 9, 16}) {
    SCOPED_TRACE(pause);
    const std::string folder = "paused" + std::to_string(pause);
    const Decided first = train_on(2, folder, false, pause);
    Decided both = train_on(2, folder, true);
    EXPECT_EQ(both.digest, unbroken.digest);
    both.epochs.insert(both.epochs.begin(), first.epochs.begin(), first.epochs.end());
    EXPECT_EQ(both.epochs, unbroken.epochs);
    for (auto& [name, values] : both.logs) {
      if (first.logs.contains(name))
        values.insert(values.begin(), first.logs.at(name).begin(), first.logs.at(name).end());
      EXPECT_EQ(values, unbroken.logs.at(name)) << name;
    }
  }
}

}  // namespace
}  // namespace syncline::training
