// syncline convert: round trips between the formats, files of other programs, and refused files.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "syncline/checkpoint/checkpoint.h"
#include "tests/tools/run.h"

namespace syncline::tools {
namespace {

using io::Outcome;
using io::Scratch;

class Convert : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return scratch_.path(name); }
  Outcome convert(const std::string& in, const std::string& out, const std::string& options = "") {
    return run("convert " + options + " " + path(in) + " " + path(out));
  }
  void expect_converted(const std::string& in, const std::string& out) {
    const Outcome outcome = convert(in, out);
    EXPECT_EQ(outcome.status, 0) << in << " " << out;
    EXPECT_EQ(outcome.output, "");
  }
  // Runs a Python program. Callers check first that its imports exist.
  Outcome python(const std::string& program) { return io::run_shell("/usr/bin/python3 -c \"" + program + "\""); }

  Scratch scratch_;
};

std::string safetensors(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

TEST_F(Convert, ThereAndBack) {
  io::Checkpoint checkpoint = io::small_checkpoint();
  checkpoint.version = "0.1 of the past";
  checkpoint.metric = 0.1;
  checkpoint.notes = {{"sums", "[1.5,null]"}, {"callback/gr\u00fc\u00df", "two\nlines"}};
  io::save_checkpoint(path("a.h5"), checkpoint);
  expect_converted("a.h5", "g.h5");
  io::expect_equal(io::load_checkpoint(path("g.h5")), checkpoint);
  EXPECT_EQ(io::read_file(path("a.h5")), io::read_file(path("g.h5")));
  expect_converted("a.h5", "b.npz");
  expect_converted("b.npz", "c.safetensors");
  expect_converted("c.safetensors", "d.h5");
  expect_converted("a.h5", "e.safetensors");
  expect_converted("e.safetensors", "f.npz");
  io::expect_equal(io::load_checkpoint(path("d.h5")), checkpoint);
  EXPECT_EQ(io::read_file(path("b.npz")), io::read_file(path("f.npz")));
  EXPECT_EQ(io::read_file(path("c.safetensors")), io::read_file(path("e.safetensors")));
  EXPECT_EQ(run("diff " + path("a.h5") + " " + path("b.npz")).status, 0);
  EXPECT_EQ(run("diff " + path("a.h5") + " " + path("c.safetensors")).status, 0);
}

TEST_F(Convert, AMetricThatJsonDoesNotKnow) {
  io::Checkpoint checkpoint = io::small_checkpoint();
  for (const double metric : {INFINITY, -INFINITY, NAN}) {
    checkpoint.metric = metric;
    io::save_checkpoint(path("a.h5"), checkpoint);
    EXPECT_EQ(convert("a.h5", "b.npz", "--force").status, 0);
    EXPECT_EQ(convert("b.npz", "c.h5", "--force").status, 0);
    io::expect_equal(io::load_checkpoint(path("c.h5")), checkpoint);
  }
}

// A file of a Keras model holds more than arrays.
TEST_F(Convert, AModelOfKeras) {
  if (python("import h5py").status != 0) GTEST_SKIP() << "no h5py for /usr/bin/python3";
  io::save_checkpoint(path("a.h5"), io::small_checkpoint());
  io::write_file(path("make.py"), "import h5py\nwith h5py.File('" + path("a.h5") +
                                      "', 'r+') as file:\n  file.attrs['model_config'] = b'{}'\n");
  const Outcome made = io::run_shell("/usr/bin/python3 " + path("make.py"));
  ASSERT_EQ(made.status, 0) << made.output;
  const std::string before = io::read_file(path("a.h5"));
  const Outcome refused = convert("a.h5", "a.h5", "--force");
  EXPECT_EQ(refused.status, 1);
  EXPECT_CONTAINS(refused.output, "holds a Keras model, and only its arrays are converted");
  EXPECT_EQ(io::read_file(path("a.h5")), before);
  const Outcome told = convert("a.h5", "b.h5");
  EXPECT_EQ(told.status, 0);
  EXPECT_CONTAINS(told.output, "holds a Keras model; only its arrays are converted");
}

TEST_F(Convert, EveryDtypeAndShape) {
  io::Checkpoint checkpoint;
  checkpoint.layers = {{"l", {}}};
  for (const char* name : {"bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"}) {
    const Array array = Array::from<float>({2, 3, 1}, {0, 1, 1, 0, 1, 1}).cast(parse_dtype(name));
    checkpoint.layers[0].weights.push_back({name, array});
  }
  checkpoint.layers[0].weights.push_back({"empty", Array(DType::kFloat32, {0, 4})});
  checkpoint.layers[0].weights.push_back({"scalar", Array::scalar(3.0)});
  io::save_checkpoint(path("a.h5"), checkpoint);
  expect_converted("a.h5", "a.npz");
  expect_converted("a.h5", "a.safetensors");
  expect_converted("a.npz", "b.h5");
  expect_converted("a.safetensors", "c.h5");
  io::expect_equal(io::load_checkpoint(path("b.h5")), checkpoint);
  io::expect_equal(io::load_checkpoint(path("c.h5")), checkpoint);
}

TEST_F(Convert, RefusesToReplaceUnlessForced) {
  io::save_checkpoint(path("a.h5"), io::small_checkpoint());
  io::write_file(path("b.npz"), "precious");
  const Outcome outcome = convert("a.h5", "b.npz");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.output, "syncline: convert: '" + path("b.npz") + "' exists; --force replaces it\n");
  EXPECT_EQ(io::read_file(path("b.npz")), "precious");
  EXPECT_EQ(convert("a.h5", "b.npz", "--force").status, 0);
  EXPECT_EQ(run("diff " + path("a.h5") + " " + path("b.npz")).status, 0);
  EXPECT_EQ(convert("a.h5", "b.txt").status, 1);
  EXPECT_EQ(scratch_.files(), (std::vector<std::string>{"a.h5", "b.npz"}));
}

TEST_F(Convert, NumPyReadsAndWritesTheArrays) {
  if (python("import numpy").status != 0) GTEST_SKIP() << "no NumPy for /usr/bin/python3";
  io::save_checkpoint(path("a.h5"), io::small_checkpoint());
  expect_converted("a.h5", "a.npz");
  const Outcome read = python("import numpy; f = numpy.load(\\\"" + path("a.npz") +
                              "\\\"); k = f[\\\"dense_1/kernel:0\\\"]; print(k.dtype, k.shape, k.sum())");
  EXPECT_EQ(read.output, "float32 (3, 4) 33.0\n");
  const std::string arrays =
      "a=numpy.arange(6, dtype=\\\">i4\\\").reshape(2, 3), b=numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))";
  for (const std::string save : {"savez", "savez_compressed"}) {
    const std::string file = save + ".npz";
    EXPECT_EQ(python("import numpy; numpy." + save + "(\\\"" + path(file) + "\\\", " + arrays + ")").output, "");
    EXPECT_EQ(run("show " + path(file) + " a").output, "a  int32  (2, 3)\n[0] 0 1 2\n[1] 3 4 5\n");
    EXPECT_EQ(run("show " + path(file) + " b").output, "b  float64  (2, 3)\n[0] 0 1 2\n[1] 3 4 5\n");
  }
}

TEST_F(Convert, SafetensorsOfOthers) {
  const std::string header =
      R"({"block.0.weight":{"dtype":"I16","shape":[2],"data_offsets":[1,5]},)"
      R"("__metadata__":{"format":"pt"},"block.0.on":{"dtype":"BOOL","shape":[],"data_offsets":[0,1]}})";
  io::write_file(path("a.safetensors"), safetensors(header, std::string("\1\1\0\2\0", 5)));
  expect_converted("a.safetensors", "a.h5");
  const io::Checkpoint checkpoint = io::load_checkpoint(path("a.h5"));
  ASSERT_EQ(checkpoint.layers.size(), 1u);
  EXPECT_EQ(checkpoint.layers[0].name, "block.0");
  EXPECT_EQ(checkpoint.layers[0].weights.at(0).name, "block.0.on");
  EXPECT_EQ(checkpoint.layers[0].weights.at(1).value.data<std::int16_t>()[1], 2);
}

// If any step took time quadratic in the number of arrays, it would exceed the limit.
TEST_F(Convert, ManyArrays) {
  constexpr int kArrays = 200'000;
  std::string header = "{";
  for (int i = 0; i < kArrays; ++i)
    header += fmt::format(R"({}"layer{}.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, i, i + 1);
  io::write_file(path("a.safetensors"), safetensors(header + "}", std::string(kArrays, 'x')));
  const Outcome outcome = run("convert --seconds 40 " + path("a.safetensors") + " " + path("b.npz"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  const Outcome listed = run("show --seconds 20 " + path("b.npz") + " layer199999.weight");
  EXPECT_EQ(listed.output, "layer199999.weight  uint8  (1,)\n[0] 120\n");
}

TEST_F(Convert, HostileSafetensors) {
  const std::string one = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const auto refusal = [&](const std::string& bytes) {
    io::write_file(path("a.safetensors"), bytes);
    const Outcome outcome = run("stat " + path("a.safetensors"));
    EXPECT_EQ(outcome.status, 1) << outcome.output;
    EXPECT_TRUE(outcome.output.starts_with("syncline: ")) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
    return outcome.output;
  };
  const auto header = [&](const std::string& a) { return refusal(safetensors("{\"a\":{" + a + "}}", "xy")); };
  io::write_file(path("a.safetensors"), safetensors(one, "xy"));
  EXPECT_EQ(run("stat " + path("a.safetensors")).status, 0);
  EXPECT_CONTAINS(refusal(safetensors(one, "x")), "the arrays have 2 bytes, but the file has 1");
  EXPECT_CONTAINS(refusal(safetensors(one, "xyz")), "the arrays have 2 bytes, but the file has 3");
  EXPECT_CONTAINS(refusal(std::string(6, '\xff') + std::string(2, '\0') + "{}"), "the header claims");
  EXPECT_CONTAINS(refusal(std::string("\5\0\0\0\0\0\0\0{", 9)), "the header claims 5 bytes");
  EXPECT_CONTAINS(refusal(safetensors(std::string("{\"a\":") + std::string(100000, '['), "")), "nested too deeply");
  EXPECT_CONTAINS(refusal(safetensors("{\"a\":1}", "")), "the header is damaged");
  EXPECT_CONTAINS(header(R"("dtype":"BF16","shape":[1],"data_offsets":[0,2])"),
                  "is of type BF16, which is not supported");
  EXPECT_CONTAINS(header(R"("dtype":"U8","shape":[-1],"data_offsets":[0,2])"), "not a natural number");
  EXPECT_CONTAINS(header(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])"), "impossible shape");
  EXPECT_CONTAINS(header(R"("dtype":"U8","shape":[2],"data_offsets":[0,1])"), "needs 2 bytes");
  EXPECT_CONTAINS(header(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), "begins at 1, not at 0");
  EXPECT_CONTAINS(header(R"("dtype":"BOOL","shape":[2],"data_offsets":[0,2])"), "neither true nor false");
  const std::string twice =
      R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  EXPECT_CONTAINS(refusal(safetensors(twice, "xy")), "has 'a' twice");
}

TEST_F(Convert, DamagedNpzIsOneLine) {
  io::save_checkpoint(path("a.h5"), io::small_checkpoint());
  expect_converted("a.h5", "a.npz");
  const std::string whole = io::read_file(path("a.npz"));
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 60) {
    std::string damaged = whole;
    for (std::size_t i = at; i < std::min(at + 16, whole.size()); ++i) damaged[i] = static_cast<char>(~damaged[i]);
    for (const std::string& bytes : {damaged, whole.substr(0, at)}) {
      io::write_file(path("b.npz"), bytes);
      const Outcome outcome = run("stat " + path("b.npz"));
      if (outcome.status == 0) continue;  // the damage hit fields without a check, such as times
      ++refused;
      EXPECT_EQ(outcome.status, 1) << outcome.output;
      EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
    }
  }
  EXPECT_GT(refused, 60);
}

TEST_F(Convert, OutlinesOfOtherArrays) {
  const std::string header =
      R"({"__metadata__":{"syncline":"OUTLINE"},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const auto refusal = [&](const std::string& outline) {
    std::string text = header;
    io::write_file(path("a.safetensors"), safetensors(text.replace(text.find("OUTLINE"), 7, outline), "xy"));
    const Outcome outcome = convert("a.safetensors", "a.h5");
    EXPECT_EQ(outcome.status, 1) << outcome.output;
    return outcome.output;
  };
  EXPECT_CONTAINS(refusal("{"), "its outline of a checkpoint is damaged");
  const std::string begin = R"({\"model\":\"\",\"metric\":null,\"state\":null,\"optimizer\":[],\"layers\":[)";
  EXPECT_CONTAINS(refusal(begin + "]}"), "its outline names 0 arrays, but it has 1");
  const std::string state = R"({\"model\":\"\",\"state\":{\"epoch\":)";
  EXPECT_CONTAINS(refusal(state + "18446744073709551615}}"), "epoch is not a natural number, or is too large");
  EXPECT_CONTAINS(refusal(R"({\"model\":\"\",\"notes\":{\"a\":1}})"), "its outline of a checkpoint is damaged");
  EXPECT_CONTAINS(refusal(begin + R"({\"name\":\"l\",\"weights\":[\"b\"]}]})"),
                  "names 'b', which the file does not have");
}

}  // namespace
}  // namespace syncline::tools
