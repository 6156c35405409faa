// A job's checkpoints, its requests, and what remains when a rank dies. Ranks are threads.
#include "syncline/training/job.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "io/files/folder_lock.h"
#include "tests/io/failing_calls.h"
#include "tests/runtime/training/job_fixture.h"

namespace syncline::training {
namespace {

using io::message_of;

TEST_F(JobTest, SavesAfterEachEpochAndEverySoManySteps) {
  const Trained trained = train(1, {.save_every = 4});
  EXPECT_EQ(trained.ended, Ended::kFinished);
  // Saves after steps 4, 6, 8, 12, 16 and 18 and keeps the last three.
  for (const char* name : {"step-0000000012.h5", "step-0000000016.h5", "step-0000000018.h5"})
    EXPECT_TRUE(std::filesystem::exists(scratch_.path(std::string("run/") + name))) << name;
  EXPECT_EQ(latest().state, trained.state.counts);
  EXPECT_EQ(latest().model, "small");
  const nlohmann::json found = status();
  EXPECT_EQ(found["state"], "finished");
  EXPECT_EQ(found["exit_code"], 0);
  EXPECT_EQ(found["epoch"], 3);
  EXPECT_EQ(found["global_step"], 18);
  EXPECT_EQ(found["checkpoint"], "step-0000000018.h5");
  EXPECT_EQ(found["ranks"], 1);
}

TEST_F(JobTest, TheBestCheckpointIsThatOfTheMonitoredLog) {
  Witness witness;
  train(1, {.monitor = "val_loss", .witness = &witness});
  double best = INFINITY;
  for (const Logs& logs : witness.epochs) best = std::min(best, logs.find("val_loss").value());
  EXPECT_EQ(io::summarize_checkpoint(scratch_.path("run/best")).metric, best);
}

TEST_F(JobTest, AnAccuracyIsBetterWhenItIsHigher) {
  struct Accuracy : Callback {
    void on_epoch_end(Fit&, std::int64_t epoch, Logs& logs) override { logs.set("val_acc", epoch == 1 ? 0.9 : 0.1); }
  } accuracy;
  train(1, {.monitor = "val_acc", .witness = &accuracy});
  EXPECT_EQ(io::summarize_checkpoint(scratch_.path("run/best")).metric, 0.9);
}

TEST_F(JobTest, NamesThatCannotBeSavedEndItBeforeTheFirstStep) {
  SmallFit small(1, {});
  SavedModel model = model_of(small);
  model.layers[1].name = model.layers[0].name;
  Job job({.folder = scratch_.path("run"), .model = model});
  FitOptions options = small.fit->options();
  options.callbacks = {&job};
  Fit fit(options);
  EXPECT_CONTAINS(message_of([&] { fit.run(); }), "the name 'hidden' occurs twice; make it unique");
  EXPECT_EQ(fit.counts().global_step, 0);
}

TEST_F(JobTest, SaysThatItReplacesAnEarlierTraining) {
  const auto told = [&](const Part& part) {
    ::testing::internal::CaptureStderr();
    train(1, part, "run", part.resume ? 4 : 3);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(told({}), "");
  EXPECT_EQ(told({.resume = true}), "");
  EXPECT_CONTAINS(told({}), "its checkpoints replace those of an earlier training (the newest is step-0000000024.h5);");
  EXPECT_CONTAINS(told({.monitor = "val_loss"}),
                  "step-0000000018.h5), but 'best' counts them while they exist; resume");
}

TEST_F(JobTest, AMonitorThatIsNoLogIsNamed) {
  ::testing::internal::CaptureStderr();
  EXPECT_CONTAINS(message_of<ValueError>([&] { train(1, {.monitor = "acc"}); }),
                  "monitor is 'acc', but the logs are loss, error, val_loss, val_error");
  ::testing::internal::GetCapturedStderr();
}

// Whichever rank gets the request, all stop after the same step, and the resumed training has the unbroken one's bits.
TEST_F(JobTest, AskedToStopAndResumedOnAsManyRanks) {
  for (const int ranks : {1, 2, 3}) {
    const Trained unbroken = train(ranks, {}, "unbroken" + std::to_string(ranks));
    for (const int rank : {0, ranks - 1})
      for (const std::int64_t step : {0, 5, 8}) {
        SCOPED_TRACE(::testing::Message() << "rank " << rank << " of " << ranks << " at step " << step);
        const std::string folder = "run" + std::to_string(ranks) + std::to_string(rank) + std::to_string(step);
        const Trained stopped = train(ranks, {.request = Request::kStop, .rank = rank, .before_step = step}, folder);
        EXPECT_EQ(stopped.ended, Ended::kPaused);
        EXPECT_EQ(stopped.state.counts.global_step, step + 1);
        EXPECT_EQ(status(folder)["state"], "saved");
        EXPECT_EQ(status(folder)["exit_code"], 75);
        EXPECT_EQ(status(folder)["reason"], rank == 0 ? "a test" : "another rank was asked to stop");
        EXPECT_EQ(latest(folder).state, stopped.state.counts);
        Witness witness;
        const Trained resumed = train(ranks, {.resume = true, .witness = &witness}, folder);
        EXPECT_EQ(resumed.ended, Ended::kFinished);
        EXPECT_EQ(resumed.digest, unbroken.digest);
        EXPECT_EQ(resumed.state.counts, unbroken.state.counts);
        EXPECT_EQ(status(folder)["state"], "finished");
      }
  }
}

double norm(const Array& x) {
  double sum = 0;
  const Array values = x.cast(DType::kFloat64);
  for (const double v : values.values<double>()) sum += v * v;
  return std::sqrt(sum);
}

// The same global batches on another number of ranks: sums are taken in another order.
TEST_F(JobTest, ResumedOnAnotherNumberOfRanks) {
  const Trained unbroken = train(1, {}, "unbroken");
  for (const auto& [before, after] : {std::pair{1, 2}, {3, 2}, {2, 1}}) {
    SCOPED_TRACE(::testing::Message() << before << " to " << after);
    const std::string folder = "run" + std::to_string(before) + std::to_string(after);
    train(before, {.request = Request::kStop, .before_step = 8}, folder);
    const Trained resumed = train(after, {.resume = true}, folder);
    ASSERT_EQ(resumed.values.size(), unbroken.values.size());
    for (std::size_t i = 0; i < resumed.values.size(); ++i) {
      const Array wanted = unbroken.values[i].cast(DType::kFloat64);
      Array apart = resumed.values[i].cast(DType::kFloat64).copy();
      for (std::int64_t e = 0; e < apart.size(); ++e) apart.data<double>()[e] -= wanted.data<double>()[e];
      EXPECT_LE(norm(apart), 1e-5 * norm(wanted)) << "variable " << i;
    }
  }
}

TEST_F(JobTest, ACheckpointOnDemandEndsNothing) {
  const Trained unbroken = train(2, {}, "unbroken");
  const Trained trained = train(2, {.request = Request::kSave, .rank = 1, .before_step = 8});
  EXPECT_EQ(trained.ended, Ended::kFinished);
  EXPECT_EQ(trained.digest, unbroken.digest);
  EXPECT_TRUE(std::filesystem::exists(scratch_.path("run/step-0000000009.h5")));
}

// Makes a directory in the place of a save's temporary file.
void block_save(const io::Scratch& scratch, const std::string& name) {
  std::filesystem::create_directories(scratch.path("run/" + name + ".tmp"));
}

TEST_F(JobTest, AFailedSaveIsOneLineAndTrainingGoesOn) {
  const Trained unbroken = train(2, {}, "unbroken");
  block_save(scratch_, "step-0000000006.h5");
  ::testing::internal::CaptureStderr();
  const Trained trained = train(2, {});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(trained.digest, unbroken.digest);
  EXPECT_CONTAINS(said, "step-0000000006.h5': opening");
  EXPECT_CONTAINS(said, "; training goes on\n");
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(status()["checkpoint"], "step-0000000018.h5");
}

TEST_F(JobTest, TheLastSaveMustNotFail) {
  block_save(scratch_, "step-0000000018.h5");
  ::testing::internal::CaptureStderr();
  EXPECT_CONTAINS(message_of([&] { train(2, {}); }), "step-0000000018.h5': opening");
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(status()["state"], "failed");
  EXPECT_EQ(status()["exit_code"], 1);
  EXPECT_EQ(status()["checkpoint"], "step-0000000012.h5");
}

TEST_F(JobTest, AFolderThatCannotBeMadeEndsItOnEveryRank) {
  EXPECT_CONTAINS(message_of([&] { train(3, {}, "missing/run"); }), "missing/run");
}

TEST_F(JobTest, OneTrainingAtATimeInAFolder) {
  train(1, {});
  const io::FolderLock other(scratch_.path("run"));
  EXPECT_CONTAINS(message_of([&] { train(2, {.resume = true}); }), "another training saves into it");
}

// Every save of rank 1 fails, so no checkpoint is whole and rank 0's shards are removed.
TEST_F(JobTest, ShardsWithoutAnIndexDoNotPileUp) {
  for (int step = 2; step <= 18; ++step)
    std::filesystem::create_directories(scratch_.path("run/step-00000000" + std::string(step < 10 ? "0" : "") +
                                                      std::to_string(step) + ".shard-1-of-2-0.h5.tmp"));
  ::testing::internal::CaptureStderr();
  message_of([&] { train(2, {.save_every = 2, .shards = 2}); });
  ::testing::internal::GetCapturedStderr();
  int shards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_.path("run")))
    shards += entry.is_regular_file() && entry.path().string().find(".shard-") != std::string::npos ? 1 : 0;
  EXPECT_EQ(shards, 0);
}

TEST_F(JobTest, ARankThatDiesBeforeTheFirstCheckpointIsNoReasonToStop) {
  die_at(0, 2);
  EXPECT_EQ(status()["state"], "saved");
}

// A script that restarts the job uses the status's step to count how often the job began at the same place.
TEST_F(JobTest, WhereNothingCouldBeSavedTheStatusTellsWhereItBegins) {
  block_save(scratch_, "step-0000000003.h5");
  die_at(3, 2);
  EXPECT_EQ(status()["state"], "saved");
  EXPECT_TRUE(status()["checkpoint"].is_null());
  EXPECT_EQ(status()["global_step"], 0);
  EXPECT_EQ(status()["step"], 0);
}

TEST_F(JobTest, WhereOnlyAnOlderOneIsSavedTheStatusTellsItsStep) {
  block_save(scratch_, "step-0000000015.h5");
  die_at(15, 2);
  EXPECT_EQ(status()["state"], "saved");
  const auto step = status()["global_step"].get<std::int64_t>();  // the save of step 12 may be unfinished
  EXPECT_TRUE(step == 6 || step == 12) << step;
  EXPECT_EQ(status()["checkpoint"], step == 6 ? "step-0000000006.h5" : "step-0000000012.h5");
}

TEST_F(JobTest, TheLowestLivingRankSavesTheLastFinishedStep) {
  const Trained unbroken = train(3, {}, "unbroken");
  const std::string said = die_at(9, 3);
  EXPECT_CONTAINS(said, "rank 1 has saved the last finished step, 9, in ");
  EXPECT_EQ(latest().state.global_step, 9);
  EXPECT_EQ(status()["state"], "saved");
  EXPECT_TRUE(status()["exit_code"].is_null());
  EXPECT_EQ(status()["checkpoint"], "step-0000000009.h5");
  EXPECT_CONTAINS(status()["reason"].get<std::string>(), "rank 0");
  EXPECT_EQ(train(3, {.resume = true}).digest, unbroken.digest);
}

TEST_F(JobTest, InShards) {
  const Trained unbroken = train(3, {}, "unbroken");
  train(3, {.request = Request::kStop, .before_step = 8, .save_every = 2, .shards = 3});
  EXPECT_EQ(latest().state.global_step, 9);
  EXPECT_EQ(io::shard_files(scratch_.path("run/step-0000000009.h5")).size(), 3u);
  EXPECT_EQ(status()["checkpoint"], "step-0000000009.h5");
  EXPECT_EQ(train(3, {.resume = true, .shards = 2}).digest, unbroken.digest);
  EXPECT_EQ(io::shard_files(scratch_.path("run/step-0000000018.h5")).size(), 2u);
  EXPECT_TRUE(io::verify_checkpoint(scratch_.path("run/latest")).problems.empty());
  EXPECT_CONTAINS(message_of<ValueError>([&] { train(2, {.shards = 3}, "more"); }), "shards is 3; give 1 to 2");
}

TEST_F(JobTest, AShardThatCannotBeWrittenLeavesTheCheckpointBefore) {
  std::filesystem::create_directories(scratch_.path("run/step-0000000012.shard-1-of-2-0.h5.tmp"));
  ::testing::internal::CaptureStderr();
  const Trained trained = train(3, {.shards = 2});
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_CONTAINS(said, "shard-1-of-2-0.h5.tmp");
  EXPECT_CONTAINS(said,
                  "the checkpoint of step 12 is discarded: not every rank has written its shard; training goes on");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("run/step-0000000012.h5")));
  EXPECT_TRUE(std::filesystem::exists(scratch_.path("run/step-0000000006.h5")));
  EXPECT_EQ(latest().state, trained.state.counts);
}

// The disk is full once, in the last save. The job removes an older checkpoint and repeats the save.
TEST_F(JobTest, TheLastSaveInShardsIsMadeAgain) {
  struct FullDisk : Callback {
    void on_train_begin(Fit&) override { failing.emplace(2, ENOSPC, /*once=*/true, "step-0000000018.shard-1-of-2"); }
    std::optional<io::FailingCalls> failing;
  } full;
  ::testing::internal::CaptureStderr();
  train(2, {.shards = 2, .witness = &full});
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(),
                  "a disk is full, and the oldest checkpoint was removed to make room for the next one");
  EXPECT_EQ(latest().state.global_step, 18);
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("run/step-0000000006.h5")));
  EXPECT_TRUE(std::filesystem::exists(scratch_.path("run/step-0000000012.h5")));
}

TEST_F(JobTest, AnEmergencyEndsASaveInShards) {
  const Trained unbroken = train(3, {}, "unbroken");
  die_at(9, 3, {.save_every = 3, .shards = 3});
  EXPECT_EQ(latest().state.global_step, 9);
  EXPECT_TRUE(io::verify_checkpoint(scratch_.path("run/latest")).problems.empty());
  EXPECT_EQ(train(3, {.resume = true, .shards = 3}).digest, unbroken.digest);
}

TEST_F(JobTest, RanksThatDisagreeSaveNothing) {
  struct Liar : Callback {
    void on_step_end(Fit& fit, const Logs&) override {
      if (fit.counts().global_step == 9) throw DisagreementError("ranks hold different values");
    }
  } liar;
  EXPECT_THROW(train(1, {.witness = &liar}), DisagreementError);
  EXPECT_EQ(latest().state.global_step, 6);
  EXPECT_EQ(status()["state"], "failed");
  EXPECT_EQ(status()["exit_code"], 65);
}

TEST_F(JobTest, AnErrorOfTheProgramSavesButIsNoReasonToTryAgain) {
  Witness witness;
  witness.throw_at = "step end 9";
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(train(1, {.witness = &witness}), std::runtime_error);
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(latest().state.global_step, 9);
  EXPECT_EQ(status()["state"], "failed");
  EXPECT_EQ(status()["exit_code"], 1);
}

// The other ranks see only that this rank is gone, which alone would be a reason to try again.
TEST_F(JobTest, AnErrorOfOneRankIsNoReasonToTryAgain) {
  for (const int rank : {0, 1, 2}) {
    const std::string folder = "rank" + std::to_string(rank);
    Witness witness;
    witness.throw_at = "step end 9";
    ::testing::internal::CaptureStderr();
    EXPECT_ANY_THROW(train(3, {.witness = &witness, .witness_rank = rank}, folder));
    ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(latest(folder).state.global_step, 9);
    EXPECT_EQ(status(folder)["state"], "failed");
    EXPECT_EQ(status(folder)["exit_code"], 1);
    EXPECT_EQ(status(folder)["checkpoint"], "step-0000000009.h5");
    EXPECT_CONTAINS(status(folder)["reason"].get<std::string>(), "thrown at step end 9");
  }
}

// Rank 0 has the folder and waits for a rank that never begins; what an earlier training left there is not its status.
TEST_F(JobTest, ARankThatFailsBeforeItBegins) {
  train(1, {}, "run", 1);
  EXPECT_EQ(status()["state"], "finished");
  struct Refusing : Callback {
    void on_train_begin(Fit&) override { throw std::runtime_error("no data"); }
  } refusing;
  ::testing::internal::CaptureStderr();
  EXPECT_ANY_THROW(train(2, {.resume = true, .witness = &refusing, .witness_rank = 1}));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(status()["state"], "saved");
  EXPECT_EQ(status()["global_step"], 6);
}

// Rank 0 saves an epoch's end and dies; the survivor saves the same step.
TEST_F(JobTest, AnEmergencyKeepsTheMetric) {
  die_at(6, 2, {.monitor = "val_loss"});
  EXPECT_EQ(latest().state.global_step, 6);
  EXPECT_TRUE(latest().metric.has_value());
}

TEST_F(JobTest, ADamagedLatestIsPassedOver) {
  const Trained unbroken = train(2, {});
  std::filesystem::resize_file(scratch_.path("run/step-0000000018.h5"), 1000);
  ::testing::internal::CaptureStderr();
  const Trained resumed = train(2, {.resume = true});
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(), "going back to 'step-0000000012.h5'");
  EXPECT_EQ(resumed.digest, unbroken.digest);
}

TEST_F(JobTest, WithoutACheckpointItBeginsAtTheBeginning) {
  const Trained unbroken = train(2, {}, "unbroken");
  EXPECT_EQ(train(2, {.resume = true}).digest, unbroken.digest);
}

TEST_F(JobTest, ACheckpointOfAnotherModelIsRefusedOnEveryRank) {
  std::filesystem::create_directory(scratch_.path("run"));
  io::save_checkpoint(scratch_.path("run/step-0000000943.h5"), io::small_checkpoint());
  ::testing::internal::CaptureStderr();
  EXPECT_CONTAINS(message_of([&] { train(2, {.resume = true}); }), "layer 0 is 'dense_1' in the file, 'hidden' in");
  ::testing::internal::GetCapturedStderr();
}

// The checkpoint has the callbacks' state.
TEST_F(JobTest, CallbacksGoOnWhereTheyStood) {
  struct Counter : Callback {
    std::string name() const override { return "counter"; }
    std::string state() const override { return std::to_string(steps); }
    void set_state(const std::string& state) override { steps = std::stoi(state); }
    void on_step_end(Fit&, const Logs&) override { ++steps; }
    int steps = 0;
  } first, second;
  train(1, {.request = Request::kStop, .before_step = 8, .witness = &first});
  EXPECT_EQ(first.steps, 9);
  train(1, {.resume = true, .witness = &second});
  EXPECT_EQ(second.steps, 18);
}

TEST_F(JobTest, RefusesOptionsOutOfRange) {
  EXPECT_CONTAINS(message_of<ValueError>([] { Job({.folder = "", .model = {}}); }), "no folder");
  EXPECT_CONTAINS(message_of<ValueError>([] { Job({.folder = "a", .save_every = -1, .model = {}}); }), "negative");
}

}  // namespace
}  // namespace syncline::training
