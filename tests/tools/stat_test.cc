// syncline stat.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "syncline/checkpoint/checkpoint.h"
#include "tests/tools/run.h"
#include "tools/confined.h"

namespace syncline::tools {
namespace {

using io::Outcome;
using io::Scratch;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

class Stat : public testing::Test {
 protected:
  void SetUp() override {
    io::Checkpoint checkpoint;
    checkpoint.layers = {{"d",
                          {{"d/kernel:0", Array::from<float>({2, 3}, {0, 1, 2, 4, kNan, kInf})},
                           {"d/nothing:0", Array(DType::kFloat32, {0})}}}};
    checkpoint.optimizer = {{"iterations:0", Array::scalar(std::int64_t{7})}};
    io::save_checkpoint(path_, checkpoint);
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("a.h5");
};

TEST_F(Stat, Table) {
  const Outcome outcome = run("stat " + path_);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, R"(name          dtype    shape   bytes  nan  inf  min  max  mean     norm
d/kernel:0    float32  (2, 3)     24    1    1    0    4  1.75  4.58258
d/nothing:0   float32  (0,)        0    0    0    -    -     -        -
iterations:0  int64    ()          8    0    0    7    7     7        7
)");
}

TEST_F(Stat, NamedArraysAndHistogram) {
  const Outcome outcome = run("stat --histogram --bins 2 " + path_ + " iterations:0 d/kernel:0");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, R"(name          dtype    shape   bytes  nan  inf  min  max  mean     norm
iterations:0  int64    ()          8    0    0    7    7     7        7
             7  ########################################  1
             7                                            0
d/kernel:0    float32  (2, 3)     24    1    1    0    4  1.75  4.58258
             0  ########################################  2
             2  ########################################  2
)");
}

TEST_F(Stat, Json) {
  const Outcome outcome = run("stat --json --histogram --bins 4 " + path_);
  EXPECT_EQ(outcome.status, 0);
  const nlohmann::json document = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(document["file"], path_);
  const nlohmann::json& kernel = document["arrays"][0];
  EXPECT_EQ(kernel["name"], "d/kernel:0");
  EXPECT_EQ(kernel["dtype"], "float32");
  EXPECT_EQ(kernel["shape"], (std::vector<int>{2, 3}));
  EXPECT_EQ(kernel["bytes"], 24);
  EXPECT_EQ(kernel["nan"], 1);
  EXPECT_EQ(kernel["inf"], 1);
  EXPECT_EQ(kernel["min"], 0.0);
  EXPECT_EQ(kernel["max"], 4.0);
  EXPECT_EQ(kernel["mean"], 1.75);
  EXPECT_EQ(kernel["histogram"], (std::vector<int>{1, 1, 1, 1}));
  EXPECT_TRUE(document["arrays"][1]["mean"].is_null());
  EXPECT_EQ(document["arrays"][2]["max"], 7);
}

TEST_F(Stat, EqualNamesAreToldApart) {
  io::Checkpoint checkpoint;
  checkpoint.layers = {{"a", {{"w", Array::scalar(1.0f)}}}, {"b", {{"w", Array::scalar(2.0f)}}}};
  checkpoint.optimizer = {{"w", Array::scalar(3.0f)}, {"v", Array::scalar(4.0f)}};
  io::save_checkpoint(path_, checkpoint);
  const nlohmann::json arrays = nlohmann::json::parse(run("stat --json " + path_).output)["arrays"];
  const std::vector<std::string> names{"a/w", "b/w", "optimizer/w", "v"};
  ASSERT_EQ(arrays.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(arrays[i]["name"], names[i]);
    EXPECT_EQ(arrays[i]["max"], 1.0 + static_cast<double>(i));
  }
}

TEST_F(Stat, UnknownNames) {
  const Outcome outcome = run("stat " + path_ + " d/bias:0");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.output, "syncline: '" + path_ + "' has no array 'd/bias:0'; syncline stat lists its arrays\n");
}

TEST_F(Stat, DamagedValues) {
  std::string bytes = io::read_file(path_);
  const std::string four("\0\0\x80\x40", 4);  // the only 4.0f
  bytes[bytes.find(four)] = 1;
  io::write_file(path_, bytes);
  const Outcome outcome = run("stat " + path_);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_CONTAINS(outcome.output, "d/kernel:0: is damaged: its bytes have");
}

TEST_F(Stat, TheLimitsAreKept) {
  io::Checkpoint checkpoint;
  checkpoint.layers = {{"d", {{"large", Array(DType::kFloat32, {8 << 20})}}}};
  io::save_checkpoint(path_, checkpoint);
  EXPECT_EQ(run("stat " + path_).status, 0);
  if (kSanitized) return;
  const Outcome outcome = run("stat --memory 20 " + path_);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.output,
            "syncline: '" + path_ + "': reading it takes more than 20 MiB of memory; --memory raises the limit\n");
}

TEST_F(Stat, DamagedFilesAreOneLine) {
  const std::string whole = io::read_file(path_);
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 40) {
    std::string damaged = whole;
    for (std::size_t i = at; i < std::min(at + 64, whole.size()); ++i) damaged[i] = static_cast<char>(~damaged[i]);
    io::write_file(path_, damaged);
    const Outcome outcome = run("stat " + path_);
    if (outcome.status == 0) continue;  // the damage hit unused space
    ++refused;
    EXPECT_TRUE(outcome.status == 1 || outcome.status == 2) << outcome.status;
    EXPECT_TRUE(outcome.output.starts_with("syncline: ")) << outcome.output;
    EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 1) << outcome.output;
  }
  EXPECT_GT(refused, 5);
}

}  // namespace
}  // namespace syncline::tools
