// syncline diff: its output, and its exit statuses 0 (same), 1 (different) and 2 (failure).
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "syncline/checkpoint/checkpoint.h"
#include "tests/tools/run.h"

namespace syncline::tools {
namespace {

using io::Outcome;
using io::Scratch;

class Diff : public testing::Test {
 protected:
  Diff() : a_(io::small_checkpoint()), b_(a_) {
    for (io::Layer& layer : b_.layers)
      for (io::Weight& weight : layer.weights) weight.value = weight.value.copy();
  }

  Outcome diff(const std::string& options = "") {
    io::save_checkpoint(path_a_, a_);
    io::save_checkpoint(path_b_, b_);
    return run("diff " + options + " " + path_a_ + " " + path_b_);
  }
  float& kernel(int index) { return b_.layers[0].weights[0].value.data<float>()[index]; }

  Scratch scratch_;
  std::string path_a_ = scratch_.path("a.h5"), path_b_ = scratch_.path("b.h5");
  io::Checkpoint a_, b_;
};

TEST_F(Diff, Same) {
  b_.state.step = 6;  // the training state is not compared
  const Outcome outcome = diff();
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "");
  const nlohmann::json document = nlohmann::json::parse(diff("--json").output);
  EXPECT_EQ(document["same"], true);
  EXPECT_TRUE(document["differing"].empty());
}

TEST_F(Diff, Values) {
  kernel(6) = 4;  // was 3
  kernel(11) = std::numeric_limits<float>::quiet_NaN();
  const Outcome outcome = diff();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.output,
            "dense_1/kernel:0: 2 of 12 values differ; 1 NaN or infinite on one side, the first at (2, 3); largest "
            "difference 1 at (1, 2), relative 0.25 at (1, 2), 4194304 ULP at (1, 2)\n");
}

TEST_F(Diff, Json) {
  kernel(6) = 4;
  b_.layers[2].weights[1].name = "dense_2/offset:0";
  const Outcome outcome = diff("--json");
  EXPECT_EQ(outcome.status, 1);
  const nlohmann::json document = nlohmann::json::parse(outcome.output);
  EXPECT_EQ(document["same"], false);
  EXPECT_EQ(document["only_in_a"], std::vector<std::string>{"dense_2/bias:0"});
  EXPECT_EQ(document["only_in_b"], std::vector<std::string>{"dense_2/offset:0"});
  ASSERT_EQ(document["differing"].size(), 1u);
  const nlohmann::json& row = document["differing"][0];
  EXPECT_EQ(row["name"], "dense_1/kernel:0");
  EXPECT_EQ(row["elements"], 12);
  EXPECT_EQ(row["differing"], 1);
  EXPECT_EQ(row["absolute"]["value"], 1.0);
  EXPECT_EQ(row["absolute"]["index"], (std::vector<int>{1, 2}));
  EXPECT_EQ(row["relative"]["value"], 0.25);
  EXPECT_EQ(row["ulps"]["value"], 4194304);
  EXPECT_TRUE(row["first_special"].is_null());
}

TEST_F(Diff, Tolerances) {
  kernel(6) = 3.5f;
  EXPECT_EQ(diff().status, 1);
  EXPECT_EQ(diff("--atol 0.5").status, 0);
  EXPECT_EQ(diff("--atol 0.49").status, 1);
  EXPECT_EQ(diff("--rtol 0.15").status, 0);
  EXPECT_EQ(diff("--ulps 2097152").status, 0);
  EXPECT_EQ(diff("--ulps 2097151").status, 1);
}

TEST_F(Diff, NamesShapesAndDtypes) {
  b_.layers[0].weights[0].value = Array(DType::kFloat64, {3, 4});
  b_.layers[0].weights[1].value = Array(DType::kFloat32, {2, 2});
  b_.layers.pop_back();
  b_.optimizer.push_back({"extra", Array::scalar(1.0f)});
  const Outcome outcome = diff();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.output, "only in " + path_a_ + ": dense_2/kernel:0\nonly in " + path_a_ +
                                ": dense_2/bias:0\nonly in " + path_b_ +
                                ": extra\n"
                                "dense_1/kernel:0: float32 (3, 4) in the first, float64 (3, 4) in the second\n"
                                "dense_1/bias:0: float32 (4,) in the first, float32 (2, 2) in the second\n");
}

TEST_F(Diff, TroubleIsStatusTwo) {
  diff();
  for (const std::string& arguments :
       {"diff " + path_a_ + " /nowhere/b.h5", "diff " + path_a_, "diff --atol -1 " + path_a_ + " " + path_b_,
        "diff --ulps -1 " + path_a_ + " " + path_b_}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_TRUE(outcome.output.starts_with("syncline: ")) << outcome.output;
  }
  io::write_file(path_b_, "no checkpoint");
  EXPECT_EQ(run("diff " + path_a_ + " " + path_b_).status, 2);
}

}  // namespace
}  // namespace syncline::tools
