#include "syncline/checkpoint/shards.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "io/arrays/array_file.h"
#include "syncline/checkpoint/folder.h"
#include "tests/io/failing_calls.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

Checkpoint at_step(std::int64_t step) {
  Checkpoint checkpoint = small_checkpoint();
  for (int i = 0; i < 4; ++i) {
    Array value(DType::kFloat32, {100, 7});
    std::fill_n(value.data<float>(), value.size(), static_cast<float>(step + i));
    checkpoint.layers.push_back({join_text("block_", i), {{join_text("block_", i, "/inner/kernel:0"), value}}});
  }
  checkpoint.state.global_step = step;
  return checkpoint;
}

std::string shard_name(int number, int count, int generation = 0) {
  return join_text("a.shard-", number, "-of-", count, "-", generation, ".h5");
}

class Shards : public testing::Test {
 protected:
  void save(const Checkpoint& checkpoint, int count) const {
    for (int i = 0; i < count; ++i) save_shard(path_, checkpoint, {i, count});
    save_index(path_, checkpoint, count);
  }
  std::string refusal() const {
    std::string message = message_of([&] { load_checkpoint(path_); });
    EXPECT_ONE_LINE(message);
    return message;
  }
  Outcome run_h5py(const std::string& code) const {
    const std::string script = scratch_.path("script.py");
    write_file(script, "import h5py\n" + code + "\n");
    Outcome outcome = run_shell("cd / && " + python() + " " + script);
    std::filesystem::remove(script);
    return outcome;
  }

  const Scratch scratch_;
  const std::string path_ = scratch_.path("a.h5");
};

TEST_F(Shards, AreReadAsOneCheckpoint) {
  for (const int count : {1, 2, 3, 20}) {
    SCOPED_TRACE(count);
    save(at_step(count), count);
    expect_equal(load_checkpoint(path_), at_step(count));
    EXPECT_EQ(scratch_.files().size(), static_cast<std::size_t>(count) + 1);  // the previous save's shards are removed
    EXPECT_EQ(summarize_checkpoint(path_).state.global_step, count);
    const VerifyReport report = verify_checkpoint(path_);
    EXPECT_TRUE(report.problems.empty()) << testing::PrintToString(report.problems);
    EXPECT_TRUE(report.has_digests);
    const auto file = open_array_file(path_);
    const auto entry = std::find_if(file->entries().begin(), file->entries().end(),
                                    [](const ArrayEntry& e) { return e.name == "block_3/inner/kernel:0"; });
    ASSERT_NE(entry, file->entries().end());
    EXPECT_EQ(file->read(static_cast<std::size_t>(entry - file->entries().begin())).data<float>()[0], count + 3);
  }
}

TEST_F(Shards, EachHoldsAboutItsShare) {
  save(at_step(1), 2);
  const auto first = std::filesystem::file_size(scratch_.path(shard_name(0, 2)));
  const auto second = std::filesystem::file_size(scratch_.path(shard_name(1, 2)));
  EXPECT_LT(first, 2 * second);
  EXPECT_LT(second, 2 * first);
}

TEST_F(Shards, OtherProgramsReadTheIndex) {
  save(at_step(1), 2);
  const Outcome list = run_shell("h5ls -r -E " + path_);
  EXPECT_CONTAINS(list.output, "/model_weights/block_3/block_3/inner/kernel:0");
  if (!has_h5py()) GTEST_SKIP() << python() << " has no h5py";
  const Outcome value =
      run_h5py("print(h5py.File('" + path_ + "', 'r')['model_weights/block_3/block_3/inner/kernel:0'][0, 0])");
  EXPECT_EQ(value.output, "4.0\n");
}

TEST_F(Shards, AreFoundThroughALink) {
  save(at_step(1), 2);
  ASSERT_EQ(::symlink("a.h5", scratch_.path("latest").c_str()), 0);
  expect_equal(load_checkpoint(scratch_.path("latest")), at_step(1));
}

TEST_F(Shards, TheOldOneStandsUntilTheIndexIsThere) {
  save(at_step(1), 2);
  save_shard(path_, at_step(2), {0, 2});
  expect_equal(load_checkpoint(path_), at_step(1));
  EXPECT_CONTAINS(message_of([&] { save_index(path_, at_step(2), 2); }), "shard-1-of-2-1.h5': cannot open");
  save_shard(path_, at_step(3), {1, 2});
  EXPECT_CONTAINS(message_of([&] { save_index(path_, at_step(2), 2); }), "belongs to another step");
  expect_equal(load_checkpoint(path_), at_step(1));
  save_shard(path_, at_step(2), {1, 2});
  save_index(path_, at_step(2), 2);
  expect_equal(load_checkpoint(path_), at_step(2));
  EXPECT_EQ(scratch_.files(), (std::vector<std::string>{"a.h5", shard_name(0, 2, 1), shard_name(1, 2, 1)}));
}

TEST_F(Shards, AFlippedBitIsFound) {
  save(at_step(1), 2);
  const std::string shard = scratch_.path(shard_name(1, 2));
  std::string bytes = read_file(shard);
  const float last = 4;  // the value of the last block's elements
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&last), 4));
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  write_file(shard, bytes);
  EXPECT_CONTAINS(refusal(), shard + "', /model_weights/block_3/block_3/inner/kernel:0: is damaged");
  for (const std::string& file : {path_, shard}) EXPECT_EQ(verify_checkpoint(file).problems.size(), 1u) << file;
}

TEST_F(Shards, OneThatIsMissingOrAnotherSaves) {
  save(at_step(1), 2);
  const std::string shard = scratch_.path(shard_name(0, 2)), aside = scratch_.path("aside");
  std::filesystem::rename(shard, aside);
  EXPECT_CONTAINS(refusal(), "shard-0-of-2-0.h5': cannot open: No such file");
  ASSERT_EQ(::symlink("aside", shard.c_str()), 0);
  EXPECT_CONTAINS(refusal(), "a symbolic link, which is refused");
  ASSERT_EQ(::unlink(shard.c_str()), 0);
  std::filesystem::remove(path_);
  save(at_step(2), 2);
  std::filesystem::rename(aside, shard);
  EXPECT_CONTAINS(refusal(), "the datasets are not those that were written");
}

TEST_F(Shards, AShardIsNoCheckpoint) {
  save(at_step(1), 2);
  EXPECT_CONTAINS(message_of([&] { load_checkpoint(scratch_.path(shard_name(0, 2))); }),
                  "is one shard of a checkpoint; use the file without");
}

TEST_F(Shards, AShardIsVerifiedAlone) {
  save(at_step(1), 2);
  std::int64_t arrays = 0;
  for (int i = 0; i < 2; ++i) {
    const VerifyReport report = verify_checkpoint(scratch_.path(shard_name(i, 2)));
    EXPECT_TRUE(report.problems.empty() && report.readable && report.has_digests && report.is_shard);
    EXPECT_GT(report.arrays, 0);
    arrays += report.arrays;
  }
  const VerifyReport whole = verify_checkpoint(path_);
  EXPECT_EQ(arrays, whole.arrays);
  EXPECT_FALSE(whole.is_shard);
}

TEST_F(Shards, LinksElsewhereAreRefused) {
  if (!has_h5py()) GTEST_SKIP() << python() << " has no h5py";
  const std::string object = "model_weights/block_3/block_3/inner/kernel:0";
  const auto relink = [&](const std::string& file, const std::string& target) {
    save(at_step(1), 2);
    const Outcome outcome = run_h5py("f = h5py.File('" + path_ + "', 'r+'); name = '" + object +
                                     "'; del f[name]; f[name] = h5py.ExternalLink('" + file + "', '" + target + "')");
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return refusal();
  };
  EXPECT_CONTAINS(relink("/etc/passwd", "/" + object), "is a link to '/etc/passwd', which is refused");
  EXPECT_CONTAINS(relink("../a.h5", "/" + object), "is a link to '../a.h5', which is refused");
  std::filesystem::remove(path_);
  EXPECT_CONTAINS(relink(shard_name(1, 2), "/model_weights/block_2/block_2/inner/kernel:0"), "has another name");
}

TEST_F(Shards, NumbersAreChecked) {
  EXPECT_CONTAINS(message_of<ValueError>([&] { save_shard(path_, at_step(1), {2, 2}); }), "there is no shard 2 of 2");
  EXPECT_CONTAINS(message_of<ValueError>([&] { save_index(path_, at_step(1), 0); }), "there is no shard 0 of 0");
}

TEST_F(Shards, AFolderKeepsThemWithTheirIndex) {
  const CheckpointFolder folder(scratch_.path("run"), {.keep_last = 2});
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(scratch_.path("run")), {}); };
  const auto save_all = [&](std::int64_t step) {
    for (int i = 0; i < 3; ++i) folder.save_shard(at_step(step), {i, 3});
    return folder.save_index(at_step(step), 3);
  };
  folder.save_shard(at_step(1), {0, 3});  // a save without an index
  for (const std::int64_t step : {2, 3, 4, 4}) save_all(step);
  EXPECT_EQ(files(), 2 * 4 + 1);
  EXPECT_FALSE(folder.is_saving());
  for (const char* name : {"step-0000000009.h5.tmp", "step-0000000009.shard-0-of-3-0.h5.tmp"}) {
    write_file(scratch_.path(join_text("run/", name)), "");
    EXPECT_TRUE(folder.is_saving());
    std::filesystem::remove(scratch_.path(join_text("run/", name)));
  }
  folder.save_shard(at_step(3), {0, 3});  // the same at a step that has an index
  save_all(4);
  EXPECT_EQ(files(), 2 * 4 + 1);
  expect_equal(folder.load()->checkpoint, at_step(4));
  folder.save(at_step(4));
  EXPECT_EQ(files(), 4 + 1 + 1);
  expect_equal(folder.load()->checkpoint, at_step(4));
}

// One process makes the calls of both ranks. The calls after a failed one follow, as a failed rank also reaches the
// barrier.
TEST_F(Shards, AFaultAtEveryCallLeavesTheOldOrTheNew) {
  const CheckpointFolder folder(scratch_.path("run"), {.keep_last = 1});
  std::int64_t step = 0, latest = 0;
  const auto save_all = [&] {
    bool done = true;
    const auto attempt = [&](auto action) {
      try {
        action();
      } catch (const IoError& error) {
        EXPECT_ONE_LINE(error.what());
        done = false;
      }
    };
    ++step;
    for (int i = 0; i < 2; ++i) attempt([&] { folder.save_shard(at_step(step), {i, 2}); });
    attempt([&] { folder.save_index(at_step(step), 2); });
    return done;
  };
  const auto check = [&] {
    const std::optional<FolderLoad> loaded = folder.load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->warning, "");
    const std::int64_t found = loaded->checkpoint.state.global_step;
    EXPECT_TRUE(found == latest || found == step) << found << ", was " << latest << ", saved " << step;
    expect_equal(loaded->checkpoint, at_step(found));
    latest = found;
  };
  ASSERT_TRUE(save_all());
  latest = step;
  int at = 0;
  for (; at < 1000; ++at) {
    SCOPED_TRACE(testing::Message() << "call " << at);
    int calls = 0;
    {
      const FailingCalls failing(at, at % 2 == 0 ? ENOSPC : EIO, /*once=*/at % 3 != 0);
      save_all();
      calls = failing.calls();
    }
    check();
    EXPECT_TRUE(save_all());
    check();
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch_.path("run")), {}), 4);  // no leftover files
    if (HasFatalFailure() || calls <= at) break;
  }
  EXPECT_GE(at, 40);
  EXPECT_LT(at, 1000);
}

}  // namespace
}  // namespace syncline::io
