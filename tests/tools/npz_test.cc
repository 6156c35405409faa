// Hostile .npz, .npy and HDF5 files: each is refused in one line that says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

#include "io/arrays/npy.h"
#include "io/hdf5/file.h"
#include "tests/tools/run.h"
#include "tools/confined.h"

namespace syncline::tools {
namespace {

using io::Outcome;
using io::Scratch;

std::string npy(const std::string& header, const std::string& data) {
  std::string text("\x93NUMPY\1\0", 8);
  text += {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return text + header + data;
}

Array parse(const std::string& bytes) { return io::parse_npy("a", std::as_bytes(std::span(bytes))); }

std::string refusal(const std::string& bytes) {
  std::string message = io::message_of([&] { parse(bytes); });
  EXPECT_TRUE(message.starts_with("a: ")) << message;
  return message;
}

std::string fields(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

TEST(Npy, WhatIsWrittenIsRead) {
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0, 4}, Shape{2, 3}}) {
    const std::string header = io::npy_header(DType::kInt16, shape);
    EXPECT_EQ(header.size() % 64, 0u);
    const std::string bytes = header + std::string(2 * static_cast<std::size_t>(shape.size()), '\1');
    const Array array = parse(bytes);
    EXPECT_EQ(array.dtype(), DType::kInt16);
    EXPECT_EQ(array.shape(), shape);
    for (const std::int16_t value : array.values<std::int16_t>()) EXPECT_EQ(value, 0x101);
  }
}

TEST(Npy, ByteOrderAndFortranOrder) {
  const Array big = parse(npy(fields(">i2", "(2,)"), std::string("\0\1\1\0", 4)));
  EXPECT_EQ(big.data<std::int16_t>()[0], 1);
  EXPECT_EQ(big.data<std::int16_t>()[1], 256);
  const Array columns = parse(npy("{'shape': (2, 3), 'fortran_order': True, 'descr': '|u1'}", "adbecf"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(columns.raw()), 6), "abcdef");
}

TEST(Npy, Refused) {
  EXPECT_CONTAINS(refusal("no npy"), "is not an npy array");
  EXPECT_CONTAINS(refusal(npy(fields("|O", "(1,)"), "xxxxxxxx")), "has type '|O', which is not supported");
  EXPECT_CONTAINS(refusal(npy(fields("<u2", "(1,)"), "xx")), "has type '<u2'");
  EXPECT_CONTAINS(refusal(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "")), "records");
  EXPECT_CONTAINS(refusal(npy(fields("|u1", "(3,)"), "xy")), "needs 3 bytes, but 2 are there");
  EXPECT_CONTAINS(refusal(npy(fields("|u1", "(-1,)"), "")), "impossible shape");
  EXPECT_CONTAINS(refusal(npy(fields("<f8", "(4294967296, 4294967296)"), "")), "impossible shape");
  EXPECT_CONTAINS(refusal(npy(fields("|u1", "(99999999999999999999,)"), "")), "impossible shape");
  EXPECT_CONTAINS(refusal(npy("{'descr': '|u1'}", "")), "is incomplete");
  EXPECT_CONTAINS(refusal(npy("{'descr': '|u1", "")), "does not end");
  EXPECT_CONTAINS(refusal(npy("{__import__('os')}", "")), "is damaged");
  EXPECT_CONTAINS(refusal(std::string("\x93NUMPY\1\0\xff\xff{}", 12)), "claims 65535 bytes");
  EXPECT_CONTAINS(refusal(std::string("\x93NUMPY\7\0\1\0{}", 12)), "version 7");
}

class HostileNpz : public testing::Test {
 protected:
  // Runs Python statements that fill the open zip file z.
  void make(const std::string& statements) {
    const Outcome outcome =
        io::run_shell("/usr/bin/python3 -c \"import zipfile, sys; z = zipfile.ZipFile(sys.argv[1], \\\"w\\\"); " +
                      statements + "; z.close()\" " + path_);
    ASSERT_EQ(outcome.status, 0) << outcome.output;
  }
  std::string refusal(int status) {
    const Outcome outcome = run("stat --memory 64 " + path_);
    EXPECT_EQ(outcome.status, status) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
    return outcome.output;
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("a.npz");
};

TEST_F(HostileNpz, MembersThatAreNoArrays) {
  make("z.writestr(\\\"a.txt\\\", \\\"text\\\")");
  EXPECT_CONTAINS(refusal(1), "'a.txt' is not an npy array");
  make("z.writestr(\\\"a.npy\\\", \\\"text that is no array\\\")");
  EXPECT_CONTAINS(refusal(1), "'a': is not an npy array");
  make("z.writestr(\\\"a.npy\\\", \\\"x\\\" * 1000, zipfile.ZIP_LZMA)");
  EXPECT_CONTAINS(refusal(1), "has compression 14; only stored and deflated members are supported");
}

TEST_F(HostileNpz, ABombMeetsTheLimit) {
  if (kSanitized) GTEST_SKIP() << "the sanitizers need all address space";
  const std::string header = io::npy_header(DType::kUint8, {200 << 20});
  io::write_file(scratch_.path("header"), header);
  make("z.writestr(\\\"a.npy\\\", open(\\\"" + scratch_.path("header") +
       "\\\", \\\"rb\\\").read() + bytes(200 << 20), zipfile.ZIP_DEFLATED)");
  EXPECT_LT(io::read_file(path_).size(), std::size_t{1} << 20);
  EXPECT_CONTAINS(refusal(2), "takes more than 64 MiB of memory");
}

TEST(HostileHdf5, ALinkOutOfTheFile) {
  const Scratch scratch;
  const std::string path = scratch.path("a.h5");
  {
    const io::Hdf5Session session;
    io::Hdf5File file = io::Hdf5File::create(path);
    const std::array<std::string, 1> layers{"l"}, weights{"w"};
    file.root().write_names("layer_names", layers);
    const io::Hdf5Group layer = file.root().make_group("l");
    layer.write_names("weight_names", weights);
    ASSERT_GE(H5Lcreate_external("/etc/passwd", "x", layer.id(), "w", H5P_DEFAULT, H5P_DEFAULT), 0);
    file.commit();
  }
  for (const std::string& command : {std::string("ls "), std::string("stat "), "diff " + path + " "}) {
    const Outcome outcome = run(command + path);
    EXPECT_EQ(outcome.status, command[0] == 'd' ? 2 : 1) << command;
    EXPECT_CONTAINS(outcome.output, "/l/w: is a soft or external link, which is refused");
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
}

}  // namespace
}  // namespace syncline::tools
