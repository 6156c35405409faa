#include "io/checkpoint/async_saver.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>

#include "syncline/checkpoint/folder.h"
#include "tests/io/failing_calls.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

Checkpoint filled(float value, std::int64_t elements = 1000) {
  Checkpoint checkpoint;
  Array array = Array::uninitialized(DType::kFloat32, {elements});
  std::fill_n(array.data<float>(), array.size(), value);
  checkpoint.layers = {{"layer", {{"kernel:0", array}}}};
  checkpoint.optimizer = {{"m:0", array.copy()}};
  checkpoint.state.global_step = static_cast<std::int64_t>(value);
  checkpoint.metric = value;
  checkpoint.model = "filled";
  return checkpoint;
}

// Blocks a writer until the test sets `opened`.
struct Gate {
  std::promise<void> opened;
  std::shared_future<void> open = opened.get_future().share();
  std::atomic<int> started{0};
};

TEST(AsyncSaver, WritesWhatWasThereAtTheCall) {
  const Scratch scratch;
  Gate gate;
  AsyncSaver saver([&](const Checkpoint& checkpoint) {
    gate.open.wait();
    save_checkpoint(scratch.path("a.h5"), checkpoint);
  });
  Checkpoint checkpoint = filled(1);
  saver.save(checkpoint);
  // The writer has not started. Training continues and changes the arrays.
  checkpoint.layers[0].weights[0].value.data<float>()[999] = 2;
  checkpoint.optimizer[0].value.data<float>()[0] = 2;
  checkpoint.state.global_step = 2;
  gate.opened.set_value();
  saver.wait();
  const Checkpoint found = load_checkpoint(scratch.path("a.h5"));
  expect_equal(found, filled(1));
  EXPECT_EQ(found.metric, 1.0);
}

// A shard's checkpoint: no memory for the values of other shards, which no machine here could hold.
TEST(AsyncSaver, AbsentValuesTakeNoMemory) {
  const Scratch scratch;
  Checkpoint checkpoint = filled(1);
  const std::int64_t huge = std::int64_t{1} << 45;
  checkpoint.layers.push_back({"far", {{"kernel:0", absent_array(DType::kFloat32, {huge})}}});
  const Shard shard{0, 2};
  const std::vector<bool> own = weights_in(shard, checkpoint);
  EXPECT_EQ(own, (std::vector<bool>{true, false, false}));
  checkpoint.optimizer[0].value = absent_array(DType::kFloat32, {1000});
  AsyncSaver saver([&](const Checkpoint& saved) { save_shard(scratch.path("a.h5"), saved, shard); });
  saver.prepare(checkpoint);
  saver.save(checkpoint);
  saver.wait();
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"a.shard-0-of-2-0.h5"});
}

TEST(AsyncSaver, OneAtATime) {
  Gate gate;
  AsyncSaver saver([&](const Checkpoint&) {
    ++gate.started;
    gate.open.wait();
  });
  saver.save(filled(1));
  std::future<void> second = std::async(std::launch::async, [&] { saver.save(filled(2)); });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_LE(gate.started, 1);
  gate.opened.set_value();
  second.get();
  saver.wait();
  EXPECT_EQ(gate.started, 2);
}

TEST(AsyncSaver, MemoryIsUsedAgainUntilShapesChange) {
  std::vector<const std::byte*> places;
  std::vector<float> values;
  AsyncSaver saver([&](const Checkpoint& checkpoint) {
    const Array& array = checkpoint.layers.at(0).weights.at(0).value;
    places.push_back(array.raw());
    values.push_back(array.data<float>()[array.size() - 1]);
  });
  for (const std::int64_t elements : {100000, 100000, 200000})
    saver.save(filled(static_cast<float>(elements), elements));
  Checkpoint other;
  other.layers = {{"other", {{"w", Array::scalar(5.0f)}}}};
  saver.save(other);
  saver.wait();
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(places[0], places[1]);
  EXPECT_EQ(values[3], 5);
}

TEST(AsyncSaver, MemoryMadeReadyIsTheSaves) {
  const std::byte* place = nullptr;
  AsyncSaver saver([&](const Checkpoint& checkpoint) {
    place = checkpoint.layers.at(0).weights.at(0).value.raw();
    EXPECT_EQ(checkpoint.optimizer.at(0).value.data<float>()[99999], 7);
  });
  saver.prepare(filled(7, 100000));
  saver.save(filled(7, 100000));
  saver.wait();
  const std::byte* first = place;
  saver.prepare(filled(1, 10));  // the memory is large enough already
  saver.save(filled(7, 100000));
  saver.wait();
  EXPECT_EQ(place, first);
}

TEST(AsyncSaver, ErrorsComeBackWithTheNextCall) {
  std::atomic<int> saved{0};
  AsyncSaver saver([&](const Checkpoint& checkpoint) {
    if (checkpoint.state.global_step == 1) fail<IoError>("the disk is gone");
    ++saved;
  });
  saver.save(filled(1));
  EXPECT_EQ(message_of([&] { saver.save(filled(2)); }), "the disk is gone");
  saver.wait();  // the second save succeeds nevertheless
  EXPECT_EQ(saved, 1);
  saver.save(filled(1));
  EXPECT_EQ(message_of([&] { saver.wait(); }), "the disk is gone");
  saver.wait();  // an error is thrown once
}

TEST(AsyncSaver, TheEndWaits) {
  const Scratch scratch;
  {
    AsyncSaver saver([&](const Checkpoint& checkpoint) { save_checkpoint(scratch.path("a.h5"), checkpoint); });
    saver.save(filled(3, 1 << 20));
  }
  EXPECT_EQ(load_checkpoint(scratch.path("a.h5")).state.global_step, 3);
}

TEST(AsyncSaver, SignalsAreForOtherThreads) {
  sigset_t blocked;
  sigemptyset(&blocked);
  AsyncSaver saver([&](const Checkpoint&) { pthread_sigmask(SIG_SETMASK, nullptr, &blocked); });
  saver.save(filled(1));
  saver.wait();
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCONT}) EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
}

// Training with a disk whose calls fail in some steps: each error is one line, and the folder loads a whole checkpoint.
TEST(AsyncSaver, TrainingGoesOnWhenTheDiskFails) {
  const Scratch scratch;
  const CheckpointFolder folder(scratch.path("run"), {.keep_last = 2});
  AsyncSaver saver([&](const Checkpoint& checkpoint) { folder.save(checkpoint); });
  saver.save(filled(1));
  saver.wait();
  int lines = 0;
  std::int64_t last = 1;
  for (int step = 2; step < 40; ++step) {
    {
      const FailingCalls failing(step % 9, step % 2 == 0 ? ENOSPC : EIO, step % 3 != 0);
      try {
        saver.save(filled(static_cast<float>(step)));
        saver.wait();
      } catch (const IoError& error) {
        ++lines;
        EXPECT_ONE_LINE(error.what());
      }
    }
    const std::optional<FolderLoad> loaded = folder.load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->warning, "");
    EXPECT_GE(loaded->checkpoint.state.global_step, last);
    last = loaded->checkpoint.state.global_step;
    expect_equal(loaded->checkpoint, filled(static_cast<float>(last)));
  }
  EXPECT_GT(lines, 10);
  saver.save(filled(40));
  saver.wait();
  EXPECT_EQ(folder.load()->checkpoint.state.global_step, 40);
}

// Runs in its own process, because it lowers the hard limit, which cannot be raised again.
[[noreturn]] void save_beyond_the_limit(const CheckpointFolder& folder) {
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = 100000;
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(9);
  AsyncSaver saver([&](const Checkpoint& checkpoint) { folder.save(checkpoint); });
  saver.save(filled(2, 1 << 18));
  try {
    saver.wait();
  } catch (const IoError& error) {
    std::cerr << error.what() << std::endl;
    saver.save(filled(3));
    saver.wait();
    std::_Exit(3);
  }
  std::_Exit(0);
}

TEST(AsyncSaver, ALimitOnFileSizesIsAnErrorToo) {
  const Scratch scratch;
  const CheckpointFolder folder(scratch.path("run"));
  folder.save(filled(1));
  EXPECT_EXIT(save_beyond_the_limit(folder), testing::ExitedWithCode(3),
              "cannot save '.*step-0000000002.h5': writing byte 100000: File too large");
  EXPECT_EQ(folder.load()->checkpoint.state.global_step, 3);
  EXPECT_EQ(folder.load()->warning, "");
}

}  // namespace
}  // namespace syncline::io
