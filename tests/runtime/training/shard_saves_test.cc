// Sharded saves: a rank holds its shard only; and failures: a full disk, an error after the index, ranks that see
// different folders.
#include "runtime/training/shard_saves.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "io/files/atomic_file.h"
#include "tests/io/failing_calls.h"
#include "tests/runtime/training/job_fixture.h"

namespace syncline::training {
namespace {

io::Checkpoint at_step(std::int64_t step) {
  io::Checkpoint checkpoint = io::small_checkpoint();
  checkpoint.state.global_step = step;
  return checkpoint;
}

std::vector<io::Weight> weights_of(const io::Checkpoint& checkpoint) {
  std::vector<io::Weight> all;
  for (const io::Layer& layer : checkpoint.layers) all.insert(all.end(), layer.weights.begin(), layer.weights.end());
  all.insert(all.end(), checkpoint.optimizer.begin(), checkpoint.optimizer.end());
  return all;
}

void expect_shard(const std::optional<io::Shard>& shard, const io::Checkpoint& found, const io::Checkpoint& whole) {
  const std::vector<io::Weight> all = weights_of(whole), some = weights_of(found);
  ASSERT_EQ(some.size(), all.size());
  std::vector<bool> own(all.size());
  if (shard) own = io::weights_in(*shard, whole);
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    EXPECT_EQ(some[i].name, all[i].name);
    ASSERT_EQ(some[i].value.shape(), all[i].value.shape());
    ASSERT_EQ(some[i].value.raw() != nullptr, own[i]);
    if (!own[i]) continue;
    EXPECT_EQ(std::memcmp(some[i].value.raw(), all[i].value.raw(), all[i].value.bytes()), 0);
  }
}

// With slots that are split between nodes, and with accumulated gradients, which are sums over ranks.
TEST(ShardSaves, ARankHoldsItsShardOnly) {
  for (const std::int64_t accumulated : {1, 4}) {
    const io::Scratch scratch;
    const std::string path = scratch.path("a.h5");
    const auto body = [&](comm::Communicator& communicator) {
      SmallFit small(1, {}, accumulated);
      small.fit->run();
      const SavedModel model = model_of(small);
      EXPECT_TRUE(is_divided(model));
      const io::Checkpoint whole = snapshot(model, *small.fit, &communicator, io::Shard{});
      std::optional<io::Shard> shard;
      if (communicator.rank() < 2) shard = {communicator.rank(), 2};
      const io::Checkpoint own = snapshot(model, *small.fit, &communicator, shard);
      expect_shard(shard, own, whole);
      if (shard) io::save_shard(path, own, *shard);
      communicator.barrier({.plan = 1});
      if (communicator.rank() != 0) return;
      io::save_index(path, own, 2);
      io::expect_equal(io::load_checkpoint(path), whole);
    };
    const DataParallelOptions splits{.share_from = 16, .optimizer_state = OptimizerState::kSplit};
    syncline::testing::on_ranks(3, body, splits, 5, {0, 1, 1});
  }
}

TEST(ShardSaves, OnlyRankZeroMakesRoom) {
  const io::Scratch scratch;
  const io::CheckpointFolder folder(scratch.path("run"), {.keep_last = 9});
  const auto is_there = [&](int step) {
    return std::filesystem::exists(scratch.path("run/step-000000000" + std::to_string(step) + ".h5"));
  };
  for (const std::int64_t step : {1, 2, 3}) folder.save(at_step(step));
  ShardSaves zero(folder, 0, 2), one(folder, 1, 2);
  zero.begin();
  one.begin();
  bool full = false;
  for (int at = 0; at < 100 && !full; ++at) {
    const io::FailingCalls failing(at, ENOSPC, /*once=*/true);
    try {
      one.write(at_step(4));
    } catch (const io::DiskFullError&) {
      full = true;
    } catch (const IoError&) {
      // The failing call is not a write.
    }
  }
  ASSERT_TRUE(full);
  EXPECT_EQ(one.state(), ShardSaves::kNoRoom);
  EXPECT_TRUE(is_there(1));
  for (ShardSaves* rank : {&zero, &one}) rank->set_state_of_all(ShardSaves::kNoRoom);
  EXPECT_CONTAINS(io::message_of([&] { zero.write(at_step(4)); }),
                  "the oldest checkpoint was removed to make room for the next");
  EXPECT_FALSE(is_there(1));
  EXPECT_TRUE(is_there(2) && is_there(3));
  EXPECT_TRUE(zero.lacked_room() && one.lacked_room());

  zero.begin();
  one.begin();
  one.write(at_step(5));
  for (ShardSaves* rank : {&zero, &one}) rank->set_state_of_all(ShardSaves::kWritten);
  zero.write(at_step(5));
  EXPECT_TRUE(is_there(5) && is_there(2));
  EXPECT_FALSE(zero.lacked_room() || one.lacked_room());
}

// An error after the index, here of the link `latest`, leaves a whole checkpoint.
TEST(ShardSaves, AnIndexThatStandsKeepsItsShards) {
  const io::Scratch scratch;
  const io::CheckpointFolder folder(scratch.path("run"), {});
  std::filesystem::create_directories(scratch.path("run/latest/full"));
  ShardSaves zero(folder, 0, 2), one(folder, 1, 2);
  zero.begin();
  one.begin();
  one.write(at_step(1));
  for (ShardSaves* rank : {&zero, &one}) rank->set_state_of_all(ShardSaves::kWritten);
  EXPECT_CONTAINS(io::message_of([&] { zero.write(at_step(1)); }), "latest");
  EXPECT_FALSE(zero.lost_index());
  io::expect_equal(io::load_checkpoint(scratch.path("run/step-0000000001.h5")), at_step(1));
}

// Each machine has its own folder: no index can be written, and no shard may remain.
TEST(ShardSaves, ARankThatSeesAnotherFolder) {
  const io::Scratch scratch;
  const io::CheckpointFolder shared(scratch.path("shared"), {}), own(scratch.path("own"), {});
  ShardSaves zero(shared, 0, 2), one(own, 1, 2);
  const auto files = [&](const char* folder) {
    int count = 0;
    for (const auto& file : std::filesystem::directory_iterator(scratch.path(folder))) count += file.is_regular_file();
    return count;
  };
  for (const std::int64_t step : {1, 2, 3}) {
    zero.begin();
    one.begin();
    one.write(at_step(step));
    EXPECT_EQ(files("own"), 1);
    for (ShardSaves* rank : {&zero, &one}) rank->set_state_of_all(ShardSaves::kWritten);
    EXPECT_CONTAINS(io::message_of([&] { zero.write(at_step(step)); }), "cannot open");
    EXPECT_TRUE(zero.lost_index());
    for (ShardSaves* rank : {&zero, &one}) rank->discard();
    EXPECT_EQ(files("own"), 0);
    EXPECT_EQ(files("shared"), 0);
  }
}

}  // namespace
}  // namespace syncline::training
