// Saves with a fault at each of their disk calls in turn. Afterwards the old or the new checkpoint can be loaded, and
// the next save succeeds.
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "io/files/atomic_file.h"
#include "syncline/checkpoint/folder.h"
#include "tests/io/failing_calls.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

constexpr int kMostCalls = 1000;

// Small arrays and one that is written in several blocks. The metric is the step, so the first one stays the best.
Checkpoint at_step(std::int64_t step) {
  Checkpoint checkpoint = small_checkpoint();
  Array large(DType::kFloat32, {200000});
  std::fill_n(large.data<float>(), large.size(), static_cast<float>(step));
  checkpoint.layers.push_back({"large", {{"large/kernel:0", large}}});
  checkpoint.state.global_step = step;
  checkpoint.metric = static_cast<double>(step);
  return checkpoint;
}

class Faults : public testing::Test {
 protected:
  // Saves one more step; true if nothing was thrown.
  bool save() {
    try {
      folder_.save(at_step(++step_));
      return true;
    } catch (const IoError& error) {
      EXPECT_ONE_LINE(error.what());
      EXPECT_CONTAINS(error.what(), scratch_.directory());
      return false;
    }
  }

  // Checks that `latest` is whole, and that it is either unchanged or the last save.
  void check() {
    const std::optional<FolderLoad> loaded = folder_.load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->warning, "");
    const std::int64_t found = loaded->checkpoint.state.global_step;
    EXPECT_TRUE(found == latest_ || found == step_) << found << ", was " << latest_ << ", saved " << step_;
    expect_equal(loaded->checkpoint, at_step(found));
    latest_ = found;
  }

  // Checks that a save without faults removes what one with faults left, and that the best one still exists.
  void check_next_save() {
    EXPECT_TRUE(save());
    check();
    EXPECT_EQ(latest_, step_);
    EXPECT_EQ(load_checkpoint(directory_ + "/best").state.global_step, 1);
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    ASSERT_EQ(names.size(), 4u) << testing::PrintToString(names);
    EXPECT_EQ(names[0], "best");
    EXPECT_EQ(names[1], "latest");
  }

  bool file_is_there(std::int64_t step) const {
    const std::string digits = std::to_string(step);
    return std::filesystem::exists(directory_ + "/step-" + std::string(10 - digits.size(), '0') + digits + ".h5");
  }

  void SetUp() override {
    ASSERT_TRUE(save());
    check_next_save();
  }

  const Scratch scratch_;
  const std::string directory_ = scratch_.path("run");
  const CheckpointFolder folder_{directory_, {.keep_last = 1}};
  std::int64_t step_ = 0, latest_ = 1;
};

TEST_F(Faults, AFileSystemWithoutLocks) {
  const WithoutLocks without;
  EXPECT_EQ(::flock(0, LOCK_EX | LOCK_NB), -1);
  const std::filesystem::path old = directory_ + "/step-0000000098.h5.tmp",
                              young = directory_ + "/step-0000000099.h5.tmp";
  write_file(old, "left by a process that was killed yesterday");
  write_file(young, "another process may be writing this");
  std::filesystem::last_write_time(old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24));
  ASSERT_TRUE(save());
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::remove(young));
  check_next_save();
}

// The disk is full at one call: the save removes checkpoints other than the newest and the best.
TEST_F(Faults, AFullDiskTakesTheOldest) {
  const CheckpointFolder folder(directory_, {.keep_last = 9});
  int made_room = 0, at = 0;
  for (; at < kMostCalls; ++at) {
    SCOPED_TRACE(testing::Message() << "call " << at);
    for (int i = 0; i < 2; ++i) folder.save(at_step(++step_));
    const std::int64_t oldest = step_ - 2, newest = step_;
    int calls = 0;
    bool saved = true;
    {
      const FailingCalls failing(at, ENOSPC, /*once=*/true);
      try {
        folder.save(at_step(++step_));
      } catch (const IoError&) {
        saved = false;
      }
      calls = failing.calls();
    }
    latest_ = newest;
    check();
    EXPECT_TRUE(file_is_there(newest));
    EXPECT_TRUE(file_is_there(1)) << "the best one";
    if (saved && !file_is_there(oldest)) ++made_room;
    if (!saved) folder_.save(at_step(step_));
    check_next_save();
    if (HasFatalFailure() || calls <= at) break;
  }
  EXPECT_GT(made_room, 3);
  EXPECT_LT(at, kMostCalls);
}

// The newest checkpoint is damaged, so an older one may be the last whole one. The save fails and removes none.
TEST_F(Faults, AFullDiskDoesNotTakeTheLastThatIsWhole) {
  const CheckpointFolder folder(directory_, {.keep_last = 99});
  bool full = false;
  for (int at = 0; at < 30 && !full; ++at) {
    folder.save(at_step(++step_));
    std::filesystem::resize_file(directory_ + "/latest", 5000);
    const FailingCalls failing(at, ENOSPC, /*once=*/true);
    try {
      folder.save(at_step(++step_));
    } catch (const DiskFullError&) {
      full = true;
    } catch (const IoError&) {
      // The call that failed was not a write.
    }
  }
  EXPECT_TRUE(full);
}

// A save that fails anyway must not remove a checkpoint.
TEST_F(Faults, AFullDiskTakesNeitherTheNewestNorTheBest) {
  const FailingCalls failing(3, ENOSPC, /*once=*/false);
  EXPECT_FALSE(save());
  EXPECT_TRUE(file_is_there(1));
  EXPECT_TRUE(file_is_there(2));
}

TEST_F(Faults, ANewFolderIsOnTheDiskBeforeWhatIsInIt) {
  const FailingCalls failing(1, EIO, /*once=*/true);
  EXPECT_CONTAINS(message_of([&] { make_directory_durably(scratch_.path("new/")); }),
                  "fsync of directory '" + scratch_.directory() + "'");
}

class FailingCall : public Faults, public testing::WithParamInterface<std::pair<int, bool>> {};

TEST_P(FailingCall, LeavesTheOldOrTheNew) {
  const auto [error, once] = GetParam();
  int failures = 0, at = 0;
  for (; at < kMostCalls; ++at) {
    SCOPED_TRACE(testing::Message() << "call " << at);
    int calls = 0;
    {
      const FailingCalls failing(at, error, once);
      failures += save() ? 0 : 1;
      calls = failing.calls();
    }
    check();
    check_next_save();
    if (HasFatalFailure() || calls <= at) break;
  }
  EXPECT_GE(at, 30);  // a save makes at least 30 calls, and each one had its fault
  EXPECT_LT(at, kMostCalls);
  if (error == FailingCalls::kShortWrite) EXPECT_EQ(failures, 0);
  else EXPECT_GE(failures, 12);  // a save survives the others: it reads files again or skips advice
}

INSTANTIATE_TEST_SUITE_P(, FailingCall,
                         testing::Values(std::pair(ENOSPC, true), std::pair(EIO, false),
                                         std::pair(FailingCalls::kShortWrite, false)));

TEST_F(Faults, AKillAtEveryCallLeavesTheOldOrTheNew) {
  int killed = 0;
  for (; killed < kMostCalls; ++killed) {
    SCOPED_TRACE(testing::Message() << "call " << killed);
    ++step_;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const FailingCalls failing(killed, FailingCalls::kKill);
      folder_.save(at_step(step_));
      std::_Exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    check();
    check_next_save();
    if (HasFatalFailure() || WIFEXITED(status)) break;
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  EXPECT_GE(killed, 30);
  EXPECT_LT(killed, kMostCalls);
}

// Sets the soft limit, which this process may raise again.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() { EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(Faults, ALimitOfFileSizesAnywhereLeavesTheOld) {
  const auto whole = static_cast<rlim_t>(std::filesystem::file_size(directory_ + "/latest"));
  for (rlim_t limit = 0; limit < whole; limit += limit < 20000 ? 997 : 49999) {
    SCOPED_TRACE(testing::Message() << "limit " << limit);
    {
      const FileSizeLimit limited(limit);
      EXPECT_FALSE(save());
    }
    const std::int64_t before = latest_;
    check();
    EXPECT_EQ(latest_, before);
    check_next_save();
    if (HasFatalFailure()) return;
  }
  const FileSizeLimit limited(whole);
  EXPECT_TRUE(save());
}

}  // namespace
}  // namespace syncline::io
