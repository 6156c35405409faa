// Frames and names of event files. TensorBoard reads them in
// tests/runtime/training/callbacks/foreign_readers_test.py.
#include "runtime/training/callbacks/event_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

TEST(EventFile, KnowsTheChecksum) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(""), 0U);
}

TEST(EventFile, LaterFilesHaveLaterNames) {
  const Scratch scratch;
  const std::string folder = scratch.path("a/b");
  std::string before;
  for (int i = 0; i < 3; ++i) {
    const EventFile file(folder, 1);
    EXPECT_GT(file.path(), before);
    before = file.path();
  }
  write_file(folder + "/events.out.tfevents.9000000000.host", "");
  EXPECT_CONTAINS(EventFile(folder, 1).path(), "/events.out.tfevents.9000000001.");
}

TEST(EventFile, HoldsBackUntilFlush) {
  const Scratch scratch;
  EventFile file(scratch.path("run"), 1);
  const auto begin = std::filesystem::file_size(file.path());
  file.add_scalar("loss", 1, 0.5);
  EXPECT_EQ(std::filesystem::file_size(file.path()), begin);
  const auto held = file.held();
  file.flush();
  EXPECT_EQ(std::filesystem::file_size(file.path()), begin + held);
  EXPECT_EQ(file.held(), 0u);
}

TEST(EventFile, SaysWhatIsWrong) {
  const Scratch scratch;
  write_file(scratch.path("file"), "");
  const std::string folder = scratch.path("file/run");
  EXPECT_EQ(message_of([&] { EventFile(folder, 1); }),
            "cannot write event files into '" + folder + "': Not a directory");
}

}  // namespace
}  // namespace syncline::io
