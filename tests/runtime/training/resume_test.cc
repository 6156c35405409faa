// What a resumed training restores: accumulated gradients between two updates, and sums of logs that are not finite;
// and its warning of a change that ends the equality of bits. Also the words of the ranks after a failed step.
#include "syncline/training/resume.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "comm/local/local_communicator.h"
#include "io/files/folder_lock.h"
#include "syncline/backend/config.h"
#include "syncline/backend/math.h"
#include "syncline/backend/reduce.h"
#include "tests/comm/forwarding.h"
#include "tests/runtime/support.h"
#include "tests/runtime/training/job_fixture.h"

namespace syncline::training {
namespace {

using ResumeTest = JobTest;

TEST_F(ResumeTest, BetweenTwoUpdatesOnAsManyRanks) {
  for (const int ranks : {2, 3})
    for (const int shards : {1, ranks}) {
      SCOPED_TRACE(join_text(ranks, " ranks, ", shards, " shards"));
      const std::string name = std::to_string(ranks) + "-" + std::to_string(shards);
      const Trained unbroken = train(ranks, {.accumulated = 4}, "unbroken-" + name);
      // Stops after steps 7 and 10 of 18; one update takes 4 steps.
      train(ranks, {.request = Request::kStop, .before_step = 6, .shards = shards, .accumulated = 4}, name);
      EXPECT_EQ(latest(name).state.global_step, 7);
      train(ranks, {.request = Request::kStop, .before_step = 2, .resume = true, .shards = shards, .accumulated = 4},
            name);
      EXPECT_EQ(latest(name).state.global_step, 10);
      EXPECT_EQ(train(ranks, {.resume = true, .shards = shards, .accumulated = 4}, name).digest, unbroken.digest);
    }
}

TEST_F(ResumeTest, BetweenTwoUpdatesOnAnotherNumberOfRanks) {
  const Trained unbroken = train(3, {.accumulated = 4}, "unbroken");
  for (const int ranks : {1, 2}) {
    const std::string name = std::to_string(ranks);
    train(3, {.request = Request::kStop, .before_step = 6, .accumulated = 4}, name);
    ::testing::internal::CaptureStderr();
    const Trained resumed = train(ranks, {.resume = true, .accumulated = 4}, name);
    EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(), "was saved with ranks 0-2 and continues with ranks 0");
    for (std::size_t i = 0; i < unbroken.values.size(); ++i)
      syncline::testing::expect_near(resumed.values[i], unbroken.values[i], 1e-4);
  }
}

TEST_F(ResumeTest, RanksMayLieOtherwise) {
  const Trained unbroken = train(4, {}, "unbroken");
  for (const std::vector<int>& nodes : {std::vector<int>{0, 0, 1, 1}, {0, 0, 0, 1}, {0, 1, 0, 1}, {0, 1, 2, 3}}) {
    const std::string name = join_text(nodes[1], nodes[2], nodes[3]);
    train(4, {.request = Request::kStop, .before_step = 6}, name);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(train(4, {.resume = true, .node_of_rank = nodes}, name).digest, unbroken.digest) << name;
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
}

// Returns rank 0's warnings when a training resumes with other options and the ranks on these nodes.
class Options : public JobTest {
 protected:
  std::string said(const DataParallelOptions& options, const std::string& data_format, const std::vector<int>& nodes) {
    train(2, {.request = Request::kStop, .before_step = 6});
    ::testing::internal::CaptureStderr();
    syncline::testing::on_ranks(
        2,
        [&](comm::Communicator& communicator) {
          set_image_data_format(data_format);
          train_rank(communicator, {.resume = true}, scratch_.path("run"), 3);
        },
        options, 3, nodes);
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(Options, ThatChangeNoBitsAreNotSaid) {
  EXPECT_EQ(said({.share_from = 16, .check_steps = 7}, "channels_first", {0, 0}), "");
}

TEST_F(Options, ThatDifferAreAllSaid) {
  EXPECT_CONTAINS(said({.by_rows_from = 12345, .check_steps = 7}, "channels_last", {0, 1}),
                  "': the training was saved with gradients by rows from 1048576 bytes and continues with gradients by "
                  "rows from 12345 bytes: the result may not be bitwise identical");
}

TEST_F(Options, PartsThatDifferAreSaid) {
  EXPECT_CONTAINS(said({.check_steps = 7, .parts = 8}, "channels_last", {0, 0}),
                  "was saved with no parts of a batch and continues with 8 parts of a batch: the result may not be");
}

TEST_F(ResumeTest, AVariableMayBeCalledLikeAPart) {
  syncline::testing::on_one_process([] {
    SmallFit small(3, {});
    SavedModel model = model_of(small);
    model.optimizer.push_back(variable(1.0, {.name = "parts/mine"}));
    io::Checkpoint checkpoint = snapshot(model, *small.fit, nullptr, io::Shard{});
    EXPECT_TRUE(take_parts(checkpoint, model).empty());
    EXPECT_EQ(checkpoint.optimizer.size(), model.optimizer.size());
  });
}

// The callback makes its function at its first use, which is after the resume.
TEST_F(ResumeTest, WhatACallbackDrawsGoesOn) {
  struct Drawer : Callback {
    void on_step_end(Fit&, const Logs&) override {
      if (!draw) draw.emplace(std::vector<Expr>{}, std::vector<Expr>{random_uniform({1})});
      drawn.push_back((*draw)({})[0].item());
    }
    std::optional<Function> draw;
    std::vector<double> drawn;
  } unbroken, first, second;
  const Trained whole = train(1, {.witness = &unbroken}, "unbroken");
  train(1, {.request = Request::kStop, .before_step = 8, .witness = &first});
  EXPECT_EQ(train(1, {.resume = true, .witness = &second}).digest, whole.digest);
  first.drawn.insert(first.drawn.end(), second.drawn.begin(), second.drawn.end());
  EXPECT_EQ(first.drawn, unbroken.drawn);
}

TEST_F(ResumeTest, SumsThatAreNoNumbersAreKept) {
  syncline::testing::on_one_process([] {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const double sum : {kInfinity, -kInfinity, std::nan(""), 1.0 / 3}) {
      SmallFit saved(3, {}), resumed(3, {});
      FitState state = saved.fit->state();
      state.counts.step = 2;
      state.sums = {sum, 0.5};
      saved.fit->set_state(state);
      const io::Checkpoint checkpoint = snapshot(model_of(saved), *saved.fit, nullptr, io::Shard{});
      std::vector<Array> values;
      for (const Variable& v : variables_of(model_of(saved))) values.push_back(get_value(v));
      restore("a file", checkpoint, values, model_of(resumed), *resumed.fit);
      const std::vector<double> got = resumed.fit->state().sums;
      ASSERT_EQ(got.size(), 2u);
      if (std::isnan(sum)) EXPECT_TRUE(std::isnan(got[0]));
      else EXPECT_EQ(got[0], sum);
      EXPECT_EQ(got[1], 0.5);
    }
  });
}

// Checks that no all-reduce starts on memory that an unfinished one uses. Counts gathers.
class Watched : public comm::Forwarding {
 public:
  using comm::Forwarding::Forwarding;
  comm::Ticket all_reduce(const comm::Tag& tag, void* data, std::int64_t count, DType dtype,
                          comm::Reduce reduce) override {
    EXPECT_FALSE(under_way_.contains(data)) << "rank " << rank();
    const comm::Ticket ticket = Forwarding::all_reduce(tag, data, count, dtype, reduce);
    under_way_[data] = ticket;
    return ticket;
  }
  comm::Ticket all_gather(const comm::Tag& tag, const void* send, void* receive,
                          std::span<const std::int64_t> byte_counts) override {
    ++gathers;
    return Forwarding::all_gather(tag, send, receive, byte_counts);
  }
  void wait(comm::Ticket ticket) override {
    Forwarding::wait(ticket);
    std::erase_if(under_way_, [&](const auto& one) { return one.second == ticket; });
  }
  std::int64_t gathers = 0;

 private:
  std::map<void*, comm::Ticket> under_way_;
};

// One gather compares all inputs between the ranks.
TEST_F(ResumeTest, InputsAreComparedTogether) {
  const auto gathers = [](std::size_t inputs) {
    std::int64_t count = 0;
    comm::spawn_ranks(2, [&](comm::Communicator& communicator) {
      Watched watched(communicator);
      Session session(5);
      const SessionScope scope(session);
      session.distribute(make_data_parallel(watched));
      std::vector<Expr> x;
      Expr total;
      for (std::size_t i = 0; i < inputs; ++i) {
        x.push_back(placeholder({.shape = {kUnknown, 2}, .dtype = DType::kFloat32}));
        total = total ? total + sum(x.back()) : sum(x.back());
      }
      Function step(x, {total});
      const auto read = [&](std::int64_t, std::int64_t) {
        return std::vector<Array>(inputs, Array(DType::kFloat32, {4, 2}));
      };
      Fit fit({.step = &step, .batches = {.samples = 4, .batch = 4, .read = read}});
      fit.run();
      if (communicator.rank() == 0) count = watched.gathers;
    });
    return count;
  };
  EXPECT_EQ(gathers(5), gathers(1));
}

TEST_F(ResumeTest, AStepThatFailedAndIsTriedAgain) {
  const Trained unbroken = train(2, {}, "unbroken");
  syncline::testing::on_ranks(
      2,
      [&](comm::Communicator& communicator) {
        Watched watched(communicator);
        SmallFit small(3, {});
        Job job({.folder = scratch_.path("run"), .model = model_of(small), .communicator = &watched});
        FitOptions options = small.fit->options();
        options.callbacks = {&job};
        bool failed = false;
        options.batches.read = [&, read = options.batches.read](std::int64_t epoch, std::int64_t step) {
          if (step == 3 && !std::exchange(failed, true)) throw ValueError("no such row");
          return read(epoch, step);
        };
        Fit fit(options);
        EXPECT_EQ(io::message_of<ValueError>([&] { fit.run(); }), "no such row");
        EXPECT_EQ(fit.run(), Ended::kFinished);
        EXPECT_EQ(small.digest(), unbroken.digest);
        // An error before a training has its folder leaves the status of another one there alone.
        std::optional<io::FolderLock> other;
        if (communicator.rank() == 0) other.emplace(scratch_.path("run"));
        EXPECT_THROW(fit.run(), IoError);
        communicator.barrier();
        EXPECT_EQ(status()["state"], "finished");
      },
      {}, 3);
}

}  // namespace
}  // namespace syncline::training
