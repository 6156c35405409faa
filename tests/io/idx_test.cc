#include "io/data/idx.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift));
  return text;
}

std::string idx(char type, std::initializer_list<std::uint32_t> dims, const std::string& data) {
  std::string text{'\0', '\0', type, static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) text += big_endian(dim);
  return text + data;
}

std::string gzipped(const Scratch& scratch, const std::string& bytes) {
  write_file(scratch.path("plain"), bytes);
  const Outcome outcome = run_shell("gzip -n -f " + scratch.path("plain"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  return read_file(scratch.path("plain.gz"));
}

class Idx : public testing::Test {
 protected:
  Array read(const std::string& bytes) {
    write_file(path_, bytes);
    return read_idx(path_);
  }
  std::string refusal(const std::string& bytes) {
    std::string message = message_of([&] { read(bytes); });
    EXPECT_CONTAINS(message, path_);
    EXPECT_ONE_LINE(message);
    return message;
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("data");
};

TEST_F(Idx, ReadsPlainAndGzipped) {
  const std::string bytes = idx(8, {2, 3}, "\1\2\3\4\5\6");
  for (const Array& array : {read(bytes), read(gzipped(scratch_, bytes))}) {
    EXPECT_EQ(array.shape(), (Shape{2, 3}));
    EXPECT_EQ(array.data<std::uint8_t>()[5], 6);
  }
}

TEST_F(Idx, TurnsBytesAround) {
  EXPECT_EQ(read(idx(11, {1}, {'\1', '\2'})).data<std::int16_t>()[0], 258);
  EXPECT_EQ(read(idx(12, {2}, big_endian(7) + big_endian(4294967295u))).data<std::int32_t>()[1], -1);
  EXPECT_EQ(read(idx(13, {1}, big_endian(0x3fc00000))).data<float>()[0], 1.5f);
  EXPECT_EQ(read(idx(14, {1}, big_endian(0x3ff80000) + big_endian(0))).data<double>()[0], 1.5);
  EXPECT_EQ(read(idx(9, {1}, "\xff")).data<std::int8_t>()[0], -1);
}

TEST_F(Idx, ReadsNoRows) { EXPECT_EQ(read(idx(8, {0, 28, 28}, "")).shape(), (Shape{0, 28, 28})); }

TEST_F(Idx, NoSuchFile) {
  EXPECT_EQ(message_of([] { read_idx("/nowhere/data"); }),
            "data file '/nowhere/data': cannot open: No such file or directory");
  EXPECT_CONTAINS(message_of([&] { read_idx(scratch_.directory()); }), "not a regular file");
  ::alarm(20);  // a FIFO without a writer
  ASSERT_EQ(::mkfifo(scratch_.path("fifo").c_str(), 0666), 0);
  EXPECT_CONTAINS(message_of([&] { read_idx(scratch_.path("fifo")); }), "not a regular file");
  ::alarm(0);
}

TEST_F(Idx, WrongMagic) {
  EXPECT_CONTAINS(refusal("hello, world"), "wrong magic number (bytes 104 101 108 108)");
  EXPECT_CONTAINS(refusal(idx(10, {1}, "x")), "wrong magic number");
  EXPECT_CONTAINS(refusal(idx(8, {}, "x")), "wrong magic number");
}

TEST_F(Idx, TruncatedPlain) {
  const std::string bytes = idx(8, {2, 3}, "\1\2\3\4\5\6");
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_CONTAINS(refusal(bytes.substr(0, length)), "is truncated");
  EXPECT_CONTAINS(refusal(bytes.substr(0, 15)), "the data needs 6 bytes, but 3 are there");
}

TEST_F(Idx, TruncatedGzip) {
  const std::string bytes = gzipped(scratch_, idx(8, {1000}, std::string(1000, 'x')));
  for (std::size_t length = 0; length < bytes.size(); ++length) refusal(bytes.substr(0, length));
  EXPECT_CONTAINS(refusal(bytes.substr(0, bytes.size() - 1)), "the gzip stream ends too early");
}

TEST_F(Idx, DamagedGzip) {
  std::string bytes = gzipped(scratch_, idx(8, {1000}, std::string(1000, 'x')));
  bytes[bytes.size() - 5] ^= 1;  // in the stream's checksum
  EXPECT_CONTAINS(refusal(bytes), "cannot read: incorrect data check");
}

TEST_F(Idx, TrailingBytes) {
  EXPECT_CONTAINS(refusal(idx(8, {2}, "abc")), "more bytes than its header claims");
  EXPECT_CONTAINS(refusal(gzipped(scratch_, idx(8, {2}, "abc"))), "more bytes than its header claims");
}

TEST_F(Idx, ImpossibleDimensions) {
  constexpr std::uint32_t kMost = 4294967295u;
  EXPECT_CONTAINS(refusal(idx(8, {kMost, kMost, kMost}, "abc")), "more than its 19 bytes can hold");
  EXPECT_CONTAINS(refusal(idx(14, {kMost}, "abc")), "claims the shape (4294967295,) of float64");
}

}  // namespace
}  // namespace syncline::io
