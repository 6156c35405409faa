#include "syncline/checkpoint/model.h"

#include <gtest/gtest.h>

#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

ModelSpec small_model() { return spec_of(small_checkpoint()); }

std::string refusal(const ModelSpec& found, const ModelSpec& expected) {
  const std::string message = message_of([&] { require_same_model("a.h5", found, expected); });
  EXPECT_CONTAINS(message, "checkpoint 'a.h5' is of another model or optimizer: ");
  EXPECT_ONE_LINE(message);
  return message;
}

TEST(CheckpointModel, TheSameModelIsAccepted) {
  EXPECT_NO_THROW(require_same_model("a.h5", small_model(), small_model()));
}

TEST(CheckpointModel, LayersWithoutWeightsDoNotCount) {
  ModelSpec other = small_model();
  other.layers.erase(other.layers.begin() + 1);
  EXPECT_NO_THROW(require_same_model("a.h5", small_model(), other));
  EXPECT_NO_THROW(require_same_model("a.h5", other, small_model()));
}

TEST(CheckpointModel, NamesTheFirstDifferentShape) {
  ModelSpec other = small_model();
  other.layers[2].weights[0].shape = Shape{4, 10};
  EXPECT_CONTAINS(refusal(small_model(), other),
                  "weight 'dense_2/kernel:0' is float32 (4, 2) in the file, float32 (4, 10) in the model's layer "
                  "'dense_2'");
}

TEST(CheckpointModel, NamesTheFirstDifferentDtype) {
  ModelSpec other = small_model();
  other.layers[0].weights[1].dtype = DType::kFloat64;
  EXPECT_CONTAINS(refusal(small_model(), other), "weight 'dense_1/bias:0' is float32 (4,) in the file, float64 (4,)");
}

TEST(CheckpointModel, NamesAMissingLayer) {
  ModelSpec other = small_model();
  other.layers.push_back({"dense_3", {{"dense_3/bias:0", DType::kFloat32, Shape{2}}}});
  EXPECT_CONTAINS(refusal(small_model(), other), "layer 'dense_3' of the model is missing in the file");
  EXPECT_CONTAINS(refusal(other, small_model()), "the file has the layer 'dense_3', which the model does not have");
}

TEST(CheckpointModel, NamesALayerOfAnotherName) {
  ModelSpec other = small_model();
  other.layers[0].name = "conv2d_1";
  EXPECT_CONTAINS(refusal(other, small_model()), "layer 0 is 'conv2d_1' in the file, 'dense_1' in the model");
}

TEST(CheckpointModel, NamesAnotherOptimizer) {
  ModelSpec other = small_model();
  other.optimizer = {{"SGD/iterations:0", DType::kInt64, Shape{}}};
  EXPECT_CONTAINS(refusal(small_model(), other),
                  "weight 0 is 'Adam/iterations:0' in the file, 'SGD/iterations:0' in the optimizer");
  other.optimizer.clear();
  EXPECT_CONTAINS(refusal(other, small_model()), "weight 'Adam/iterations:0' of the optimizer is missing in the file");
}

}  // namespace
}  // namespace syncline::io
