// Checkpoints of accumulated gradients: none directly after an update, and ranks without memory for a save.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "ops/kernels/product/blas_memory.h"
#include "tests/io/memory_limit.h"
#include "tests/runtime/training/job_fixture.h"

namespace syncline::training {
namespace {

using io::message_of;

class Accumulated : public JobTest {
 protected:
  bool has_parts(const std::string& folder) const {
    const io::Checkpoint checkpoint = io::load_checkpoint(scratch_.path(folder + "/latest"));
    return std::any_of(checkpoint.optimizer.begin(), checkpoint.optimizer.end(),
                       [](const io::Weight& w) { return w.name.starts_with("parts/"); });
  }
};

// One update takes 4 steps.
TEST_F(Accumulated, BehindAnUpdateNoRankHoldsAPart) {
  const Trained unbroken = train(2, {.accumulated = 4}, "unbroken");
  for (const std::int64_t step : {7, 8, 9}) {
    SCOPED_TRACE(step);
    const std::string folder = std::to_string(step);
    train(2, {.request = Request::kStop, .before_step = step - 1, .accumulated = 4}, folder);
    EXPECT_EQ(latest(folder).state.global_step, step);
    EXPECT_EQ(has_parts(folder), step != 8);
    EXPECT_EQ(train(2, {.resume = true, .accumulated = 4}, folder).digest, unbroken.digest);
  }
}

// Every rank has the whole sum, so a training continues on any number of ranks, also between two updates and within an
// epoch, with the bits of one rank.
TEST_F(Accumulated, WithPartsOfTheBatchAnyNumberOfRanksContinues) {
  const Trained unbroken = train(1, {.accumulated = 4, .parts = 8}, "unbroken");
  ::testing::internal::CaptureStderr();
  train(2, {.request = Request::kStop, .before_step = 6, .accumulated = 4, .parts = 8});
  EXPECT_EQ(latest().state.global_step, 7);
  EXPECT_FALSE(has_parts("run"));
  train(3, {.request = Request::kStop, .before_step = 2, .resume = true, .shards = 2, .accumulated = 4, .parts = 8});
  EXPECT_EQ(latest().state.global_step, 10);
  EXPECT_EQ(train(4, {.resume = true, .accumulated = 4, .node_of_rank = {0, 0, 0, 1}, .parts = 8}).digest,
            unbroken.digest);
  EXPECT_EQ(::testing::internal::GetCapturedStderr().find("bitwise"), std::string::npos);
}

// Earlier versions saved only the sum over the ranks.
TEST_F(Accumulated, WithoutTheRanksPartsALineSaysThatBitsMayDiffer) {
  train(2, {.request = Request::kStop, .before_step = 6, .accumulated = 4});
  const std::string path = scratch_.path("run/step-0000000007.h5");
  io::Checkpoint checkpoint = io::load_checkpoint(path);
  EXPECT_GT(std::erase_if(checkpoint.optimizer, [](const auto& weight) { return weight.name.starts_with("parts/"); }),
            0u);
  io::save_checkpoint(path, checkpoint);
  ::testing::internal::CaptureStderr();
  train(2, {.resume = true, .accumulated = 4});
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(), "the checkpoint has accumulated gradients as one sum");
}

TEST_F(Accumulated, BehindAnUpdateWhoeverLivesSaves) {
  const Trained unbroken = train(3, {.accumulated = 4}, "unbroken");
  die_at(8, 3, {.accumulated = 4});
  EXPECT_EQ(status()["checkpoint"], "step-0000000008.h5");
  EXPECT_EQ(train(3, {.resume = true, .accumulated = 4}).digest, unbroken.digest);
}

constexpr std::int64_t kElements = std::int64_t{10} << 20;  // 40 MiB: malloc returns it to the system when freed
constexpr std::size_t kRoom = std::size_t{64} << 20;        // for one rank's part, not for two

// Limits the process's address space from step `from` to step `to`.
class Limit : public Callback {
 public:
  Limit(std::int64_t from, std::int64_t to) : from_(from), to_(to) {}
  void on_step_begin(Fit& fit) override {
    if (fit.counts().global_step == to_) limit_.lift();
    if (fit.counts().global_step == from_) limit_.set(kRoom);
  }

 private:
  const std::int64_t from_, to_;
  const io::MemoryLimit limit_;
};

class NoMemory : public JobTest {
 protected:
  void SetUp() override {
    if (!io::kLimitMemory) GTEST_SKIP() << "a sanitizer needs the address space";
    // OpenBLAS allocates a buffer when ranks first multiply at the same time, and retries without end if it gets none.
    kernels::take_blas_buffers(4);
  }
  // Trains with a large partial variable. The primary rank, which writes, needs the parts of both ranks.
  std::uint64_t train_with_large(Callback& limit) {
    std::uint64_t digest = 0;
    syncline::testing::on_ranks(
        2,
        [&](comm::Communicator& communicator) {
          SmallFit small(3, {});
          SavedModel model = model_of(small);
          model.optimizer.push_back(variable(Array(DType::kFloat32, {kElements}), {.name = "large", .partial = true}));
          Job job({.folder = scratch_.path("run"), .model = model, .communicator = &communicator});
          FitOptions options = small.fit->options();
          if (communicator.rank() == 0) options.callbacks.push_back(&limit);
          options.callbacks.push_back(&job);
          Fit(options).run();
          if (communicator.rank() == 0) digest = small.digest();
        },
        {}, 3);
    return digest;
  }
};

TEST_F(NoMemory, ASaveIsLeftOutByAllRanks) {
  const Trained unbroken = train(2, {}, "unbroken");
  Limit limit(3, 8);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(train_with_large(limit), unbroken.digest);
  EXPECT_CONTAINS(::testing::internal::GetCapturedStderr(),
                  "no memory for a copy of the variables to save; training goes on\n");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("run/step-0000000006.h5")));
  EXPECT_TRUE(std::filesystem::exists(scratch_.path("run/step-0000000012.h5")));
  EXPECT_EQ(latest().state.global_step, 18);
}

TEST_F(NoMemory, TheLastSaveMustNotBeLeftOut) {
  Limit limit(15, 99);
  ::testing::internal::CaptureStderr();
  EXPECT_CONTAINS(message_of([&] { train_with_large(limit); }), "no memory for a copy of the variables to save");
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(latest().state.global_step, 12);
  EXPECT_EQ(status()["state"], "failed");
}

}  // namespace
}  // namespace syncline::training
