// A loader holds only its window of a data set in memory.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "io/arrays/npy.h"
#include "syncline/checkpoint/checkpoint.h"
#include "syncline/data/loader.h"
#include "syncline/data/open_source.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // the sanitizer's memory would be measured, too
#else
constexpr bool kSanitized = false;
#endif

constexpr std::int64_t kRowFloats = 1024, kRows = 60000;  // 246 MB
constexpr std::size_t kWindow = 24'000'000;

// The peak resident memory of this process since the last reset, in bytes.
std::int64_t peak() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "VmHWM:") continue;
  std::int64_t kilobytes = 0;
  status >> kilobytes;
  return kilobytes * 1024;
}

std::int64_t growth_here(const std::function<void()>& action) {
  std::ofstream("/proc/self/clear_refs") << 5;  // resets the peak, which is inherited from the parent
  const std::int64_t before = peak();
  action();
  return peak() - before;
}

// growth_here in a child process, so that an action does not reuse memory that an earlier one freed. -1 if it fails.
std::int64_t growth_of(const std::function<void()>& action) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t child = ::fork();
  std::int64_t bytes = -1;
  if (child == 0) {
    ::alarm(60);
    try {
      bytes = growth_here(action);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(::write(ends[1], &bytes, sizeof bytes) == sizeof bytes ? 0 : 1);
  }
  ::close(ends[1]);
  if (::read(ends[0], &bytes, sizeof bytes) != sizeof bytes) bytes = -1;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return bytes;
}

class LoaderMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
    std::ofstream file(path_, std::ios::binary);
    file << npy_header(DType::kFloat32, {kRows, kRowFloats});
    std::vector<float> row(kRowFloats);
    for (std::int64_t i = 0; i < kRows; ++i) {
      row[0] = static_cast<float>(i);
      file.write(reinterpret_cast<const char*>(row.data()), kRowFloats * sizeof(float));
    }
    ASSERT_TRUE(file.flush());
  }

  std::int64_t growth(Shuffle shuffle) {
    return growth_of([&] {
      Loader loader(open_source(path_),
                    {.batch = 64, .shuffle = shuffle, .blocks = {.block = 32, .window = 80}, .memory = kWindow});
      double sum = 0;
      for (std::int64_t step = 0; step < loader.steps(); ++step) {
        const Batch batch = loader.batch(0, step);
        for (std::int64_t i = 0; i < batch[0].shape()[0]; ++i) sum += batch[0].data<float>()[i * kRowFloats];
      }
      if (sum != 0.5 * kRows * (kRows - 1)) fail<IoError>("the rows add up to ", sum);
    });
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("large.npy");
};

TEST_F(LoaderMemory, StaysWithinItsWindow) {
  constexpr std::int64_t kBesides = 6'000'000;  // a thread, the order of the rows, pages of 2 MiB
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kRows, Shuffle::kBlocks}) {
    const std::int64_t bytes = growth(shuffle);
    EXPECT_GT(bytes, 0);
    EXPECT_LT(bytes, static_cast<std::int64_t>(kWindow) + kBesides) << "shuffle " << static_cast<int>(shuffle);
  }
}

// The loader's thread reads while this thread saves, although HDF5 is not thread-safe.
TEST(LoaderHdf5, TakesTurnsWithCheckpoints) {
  if (!has_h5py()) GTEST_SKIP() << python() << " has no h5py";
  Scratch scratch;
  const std::string path = scratch.path("data.h5");
  write_file(scratch.path("writer.py"),
             "import sys, h5py, numpy as np\n"
             "with h5py.File(sys.argv[1], 'w') as f:\n"
             "    f.create_dataset('x', data=np.arange(4000), chunks=(100,), compression='gzip')\n");
  const Outcome outcome = run_shell(python() + " " + scratch.path("writer.py") + " " + path);
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const Checkpoint checkpoint = small_checkpoint();
  Loader loader(open_source(path), {.batch = 10, .memory = 4000});
  std::int64_t sum = 0;
  for (std::int64_t step = 0; step < loader.steps(); ++step) {
    const Batch batch = loader.batch(0, step);
    for (const std::int64_t value : batch[0].values<std::int64_t>()) sum += value;
    if (step % 10 == 0) {
      save_checkpoint(scratch.path("model.h5"), checkpoint);
      expect_equal(load_checkpoint(scratch.path("model.h5")), checkpoint);
    }
  }
  EXPECT_EQ(sum, 4000 * 3999 / 2);
}

}  // namespace
}  // namespace syncline::io
