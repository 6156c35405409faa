// syncline show.
#include <gtest/gtest.h>

#include <limits>

#include "syncline/checkpoint/checkpoint.h"
#include "tests/tools/run.h"

namespace syncline::tools {
namespace {

using io::Outcome;
using io::Scratch;

class Show : public testing::Test {
 protected:
  void SetUp() override {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    io::Checkpoint checkpoint;
    checkpoint.layers = {{"d",
                          {{"w", Array::from<float>({2, 2, 2}, {0.1f, 1, 2, 3, 4, 5, 6, nan})},
                           {"b", Array::from<bool>({3}, {true, false, true})},
                           {"h", Array::from<Float16>({1}, {Float16(0.1f)})},
                           {"empty", Array(DType::kInt8, {0, 4})},
                           {"n", Array::scalar(std::int64_t{-7})}}}};
    io::save_checkpoint(path_, checkpoint);
  }
  Outcome show(const std::string& arguments) { return run("show " + path_ + " " + arguments); }

  Scratch scratch_;
  std::string path_ = scratch_.path("a.h5");
};

TEST_F(Show, ARowOfTheLastAxisPerLine) {
  const Outcome outcome = show("w");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, R"(w  float32  (2, 2, 2)
[0, 0] 0.1 1
[0, 1] 2 3
[1, 0] 4 5
[1, 1] 6 nan
)");
}

TEST_F(Show, OtherShapesAndDtypes) {
  EXPECT_EQ(show("b").output, "b  bool  (3,)\n[0] true\n[1] false\n[2] true\n");
  EXPECT_EQ(show("h").output, "h  float16  (1,)\n[0] 0.099976\n");
  EXPECT_EQ(show("n").output, "n  int64  ()\n[] -7\n");
  EXPECT_EQ(show("empty").output, "empty  int8  (0, 4)\n");
}

TEST_F(Show, Rows) {
  EXPECT_EQ(show("w --rows 1").output, "w  float32  (2, 2, 2)\n[1, 0] 4 5\n[1, 1] 6 nan\n");
  EXPECT_EQ(show("b --rows 1:").output, "b  bool  (3,)\n[1] false\n[2] true\n");
  EXPECT_EQ(show("b --rows :1").output, "b  bool  (3,)\n[0] true\n");
  EXPECT_EQ(show("b --rows 2:2").output, "b  bool  (3,)\n");
  for (const char* bad : {"3", "2:4", "2:1", "a", "1:b", "-1:2", "1:2:3", "99999999999999999999"}) {
    const Outcome outcome = show(std::string("b --rows=") + bad);
    EXPECT_EQ(outcome.status, 1) << bad;
    EXPECT_CONTAINS(outcome.output, "syncline: --rows ");
  }
  EXPECT_EQ(show("n --rows 0").status, 1);
}

TEST_F(Show, Json) {
  EXPECT_EQ(show("w --json --rows 1").output,
            "{\"name\":\"w\",\"dtype\":\"float32\",\"shape\":[2,2,2],\"rows\":[1,2],\"values\":[4.0,5.0,6.0,null]}\n");
  EXPECT_EQ(show("b --json").output,
            "{\"name\":\"b\",\"dtype\":\"bool\",\"shape\":[3],\"rows\":[0,3],\"values\":[true,false,true]}\n");
}

TEST_F(Show, UnknownNames) {
  const Outcome outcome = show("x");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.output, "syncline: '" + path_ + "' has no array 'x'; syncline stat lists its arrays\n");
}

}  // namespace
}  // namespace syncline::tools
