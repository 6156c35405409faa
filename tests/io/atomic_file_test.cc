#include "io/files/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>
#include <thread>

#include "syncline/checkpoint/checkpoint.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

void save_text(const std::string& path, const std::string& text) {
  write_file_durably(path, std::as_bytes(std::span(text)));
}

Checkpoint large_checkpoint(float value) {
  Checkpoint checkpoint;
  Array array(DType::kFloat32, {1 << 18});
  std::fill_n(array.data<float>(), array.size(), value);
  checkpoint.layers = {{"layer", {{"kernel:0", array}}}};
  return checkpoint;
}

// For the child of a death test: prints the IoError of `action` and exits with 3; exits with 0 if there is none.
template <class Action>
[[noreturn]] void report_and_exit(Action action) {
  try {
    action();
  } catch (const IoError& error) {
    std::cerr << error.what() << std::endl;
    std::_Exit(3);
  }
  std::_Exit(0);
}

void limit_file_size(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(9);
}

TEST(AtomicFile, WritesAndReplaces) {
  const Scratch scratch;
  save_text(scratch.path("a"), "first");
  save_text(scratch.path("a"), "second");
  EXPECT_EQ(read_file(scratch.path("a")), "second");
  save_text(scratch.path("a"), "");
  EXPECT_EQ(read_file(scratch.path("a")), "");
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"a"});
}

TEST(AtomicFile, AFullDiskKeepsTheOldFile) {
  const Scratch scratch;
  const std::string path = scratch.path("a.h5");
  save_checkpoint(path, large_checkpoint(1));
  const std::string before = read_file(path);
  EXPECT_EXIT(report_and_exit([&] {
                limit_file_size(300000);
                save_checkpoint(path, large_checkpoint(2));
              }),
              testing::ExitedWithCode(3), "cannot save '.*a.h5': writing byte 300000: File too large");
  EXPECT_EQ(read_file(path), before);
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"a.h5"});
}

TEST(AtomicFile, AFullDiskLeavesNothingWhereNothingWas) {
  const Scratch scratch;
  EXPECT_EXIT(report_and_exit([&] {
                limit_file_size(10000);  // enough for the message
                save_checkpoint(scratch.path("a.h5"), large_checkpoint(2));
              }),
              testing::ExitedWithCode(3), "File too large");
  EXPECT_TRUE(scratch.files().empty());
}

TEST(AtomicFile, TheProcessKeepsItsSignals) {
  const Scratch scratch;
  // After a failed save, the process's own write beyond the limit still raises SIGXFSZ.
  EXPECT_EXIT(
      {
        limit_file_size(1000);
        try {
          save_text(scratch.path("a"), std::string(2000, 'x'));
          std::_Exit(8);
        } catch (const IoError&) {
        }
        const int descriptor = ::open(scratch.path("b").c_str(), O_WRONLY | O_CREAT, 0666);
        const std::string text(2000, 'x');
        while (::write(descriptor, text.data(), text.size()) > 0) {
        }
        std::_Exit(7);
      },
      testing::KilledBySignal(SIGXFSZ), "");
}

TEST(AtomicFile, AReadOnlyDirectory) {
  const Scratch scratch;
  save_text(scratch.path("a"), "old");
  ASSERT_EQ(::chmod(scratch.directory().c_str(), 0555), 0);
  EXPECT_EXIT(report_and_exit([&] {
                // Root ignores permissions.
                if (::geteuid() == 0 && ::setuid(65534) != 0) std::_Exit(9);
                save_text(scratch.path("a"), "new");
              }),
              testing::ExitedWithCode(3), "cannot save '.*': opening '.*a.tmp': Permission denied");
  ASSERT_EQ(::chmod(scratch.directory().c_str(), 0755), 0);
  EXPECT_EQ(read_file(scratch.path("a")), "old");
}

// The directory can be written and searched, but not listed.
TEST(AtomicFile, ADirectoryThatMayNotBeRead) {
  const Scratch scratch;
  ASSERT_EQ(::chmod(scratch.directory().c_str(), 0333), 0);
  EXPECT_EXIT(report_and_exit([&] {
                // Root ignores permissions.
                if (::geteuid() == 0 && ::setuid(65534) != 0) std::_Exit(9);
                make_directory_durably(scratch.path("run"));
                save_text(scratch.path("a"), "text");
              }),
              testing::ExitedWithCode(0), "");
  ASSERT_EQ(::chmod(scratch.directory().c_str(), 0755), 0);
  EXPECT_EQ(scratch.files(), (std::vector<std::string>{"a", "run"}));
}

TEST(AtomicFile, AMissingDirectory) {
  EXPECT_CONTAINS(message_of([] { save_text("/nowhere/a", "text"); }), "'/nowhere/a.tmp': No such file or directory");
}

// A rename would replace /dev/null for every program.
TEST(AtomicFile, APipeIsNotReplaced) {
  const Scratch scratch;
  ASSERT_EQ(::mkfifo(scratch.path("a").c_str(), 0666), 0);
  EXPECT_CONTAINS(message_of([&] { save_text(scratch.path("a"), "text"); }), "it is a device, a pipe or a socket");
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"a"});
  EXPECT_TRUE(std::filesystem::status(scratch.path("a")).type() == std::filesystem::file_type::fifo);
}

TEST(AtomicFile, OverwritesWhatAKilledProcessLeft) {
  const Scratch scratch;
  write_file(scratch.path("a.tmp"), std::string(100000, 'x'));
  save_text(scratch.path("a"), "new");
  EXPECT_EQ(read_file(scratch.path("a")), "new");
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"a"});
}

TEST(AtomicFile, RefusesATemporaryThatSomebodyIsWriting) {
  const Scratch scratch;
  write_file(scratch.path("a.tmp"), "theirs");
  const int descriptor = ::open(scratch.path("a.tmp").c_str(), O_WRONLY);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  EXPECT_CONTAINS(message_of([&] { save_text(scratch.path("a"), "new"); }), "another process is saving");
  EXPECT_EQ(read_file(scratch.path("a.tmp")), "theirs");
  ::close(descriptor);
}

TEST(AtomicFile, ALinkInPlaceOfTheTemporaryIsNotFollowed) {
  const Scratch scratch;
  write_file(scratch.path("victim"), "precious");
  ASSERT_EQ(::symlink(scratch.path("victim").c_str(), scratch.path("a.tmp").c_str()), 0);
  message_of([&] { save_text(scratch.path("a"), "new"); });
  EXPECT_EQ(read_file(scratch.path("victim")), "precious");
}

TEST(AtomicFile, RivalsDoNotHarmTheFile) {
  const Scratch scratch;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        try {
          save_text(scratch.path("a"), std::string(10000, static_cast<char>('a' + t)));
        } catch (const IoError&) {
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  const std::string text = read_file(scratch.path("a"));
  EXPECT_EQ(text, std::string(10000, text[0]));
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"a"});
}

TEST(AtomicFile, AKillLeavesTheOldOrTheNew) {
  const Scratch scratch;
  const std::string path = scratch.path("a.h5");
  save_checkpoint(path, large_checkpoint(0));
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      for (float value = 1;; ++value) save_checkpoint(path, large_checkpoint(value));
    ::usleep(random() % 30000);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const Checkpoint found = load_checkpoint(path);
    const std::span<const float> values = found.layers[0].weights[0].value.values<float>();
    EXPECT_EQ(values.front(), values.back());
  }
  save_checkpoint(path, large_checkpoint(0));
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"a.h5"});
}

}  // namespace
}  // namespace syncline::io
