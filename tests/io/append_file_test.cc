#include "io/files/append_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

// Sets the process's limit on file sizes for the object's lifetime.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST(AppendFile, AddsToWhatIsThere) {
  const Scratch scratch;
  const std::string path = scratch.path("a");
  AppendFile(path).append("one\n");
  AppendFile file(path);
  EXPECT_EQ(file.size(), 4u);
  file.append("two\n");
  file.append("");
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  file.cut(4);
  file.cut(100);
  file.append("three\n");
  EXPECT_EQ(read_file(path), "one\nthree\n");
}

TEST(AppendFile, WhatDoesNotFitIsTakenBack) {
  const Scratch scratch;
  const std::string path = scratch.path("a");
  AppendFile file(path);
  file.append("whole\n");
  {
    const FileSizeLimit limit(10);
    EXPECT_EQ(message_of([&] { file.append("too long\n"); }),
              "cannot write '" + path + "': File too large (raise the limit, see ulimit -f)");
    EXPECT_EQ(read_file(path), "whole\n");
    file.append("abc\n");
  }
  file.append("again\n");
  EXPECT_EQ(read_file(path), "whole\nabc\nagain\n");
}

TEST(AppendFile, SaysWhatIsWrong) {
  const Scratch scratch;
  const std::string path = scratch.path("missing/a");
  EXPECT_EQ(message_of([&] { AppendFile file(path); }), "cannot write '" + path + "': No such file or directory");
  AppendFile full("/dev/full");
  EXPECT_EQ(message_of([&] { full.append("x"); }),
            "cannot write '/dev/full': No space left on device (free some space)");
}

}  // namespace
}  // namespace syncline::io
