// Files that Keras on TensorFlow wrote: whole models, and weights only. Lists of names that do not fit one attribute.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "syncline/checkpoint/checkpoint.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

// Unpacks file `key` of a JSON file, which holds it compressed and in base64.
constexpr const char* kUnpack = R"(
import base64, json, sys, zlib
source, key, target = sys.argv[1:]
with open(source) as file: lines = json.load(file)[key]
with open(target, "wb") as file: file.write(zlib.decompress(base64.b64decode("".join(lines))))
)";

double sum_of(const Array& array) {
  double sum = 0;
  const Array values = array.cast(DType::kFloat64);
  for (const double value : values.values<double>()) sum += value;
  return sum;
}

class KerasFiles : public testing::Test {
 protected:
  static std::string path_of(const std::string& name) {
    return std::string(SYNCLINE_SOURCE_DIR) + "/tests/keras/interchange/" + name;
  }
  Checkpoint load(const std::string& name, const std::string& key) const {
    write_file(scratch_.path("unpack.py"), kUnpack);
    const Outcome outcome =
        run_shell(python() + " " + scratch_.path("unpack.py") + " " + path_of(name) + " " + key + " " + path_);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return load_checkpoint(path_);
  }
  void expect_sums(const Checkpoint& checkpoint, const nlohmann::json& sums) const {
    std::size_t found = 0;
    for (const Layer& layer : checkpoint.layers)
      for (const Weight& weight : layer.weights) {
        ASSERT_TRUE(sums.contains(weight.name)) << weight.name;
        EXPECT_NEAR(sum_of(weight.value), sums[weight.name].get<double>(), 1e-6) << weight.name;
        ++found;
      }
    EXPECT_EQ(found, sums.size());
  }

  const Scratch scratch_;
  const std::string path_ = scratch_.path("keras.h5");
};

TEST_F(KerasFiles, ModelsAndWeightsOfKeras2OnTensorFlow2) {
  const nlohmann::json files = nlohmann::json::parse(std::ifstream(path_of("tf_keras_files.json")));
  const Checkpoint model = load("tf_keras_files.json", "model");
  EXPECT_FALSE(model.has_state);
  expect_sums(model, files["sums"]);
  ASSERT_EQ(model.optimizer.size(), files["optimizer_sums"].size());
  for (std::size_t i = 0; i < model.optimizer.size(); ++i)
    EXPECT_NEAR(sum_of(model.optimizer[i].value), files["optimizer_sums"][i].get<double>(), 1e-6)
        << model.optimizer[i].name;

  save_checkpoint(path_, model);
  EXPECT_EQ(load_checkpoint(path_).layers.size(), model.layers.size());

  const Checkpoint weights = load("tf_keras_files.json", "weights");
  expect_sums(weights, files["sums"]);
  EXPECT_TRUE(weights.optimizer.empty());
  EXPECT_TRUE(verify_checkpoint(path_).problems.empty());
}

TEST_F(KerasFiles, ModelsOfKeras231) {
  const Checkpoint model = load("tensorflow_model.json", "model");
  ASSERT_EQ(model.layers.size(), 13u);
  EXPECT_EQ(model.layers[1].weights.at(0).name, "conv2d_1/kernel:0");
  EXPECT_EQ(model.layers[1].weights.at(0).value.shape(), (Shape{3, 3, 2, 4}));
  ASSERT_EQ(model.optimizer.size(), 76u);
  EXPECT_EQ(model.optimizer[0].name, "Adam/iterations:0");
  EXPECT_EQ(model.optimizer[0].value.item(), 1);  // the 16 rows were one batch
}

Checkpoint many_layers() {
  Checkpoint checkpoint;
  for (int i = 0; i < 1500; ++i) {
    const std::string name = join_text("block_", i, std::string(80, 'x'));
    checkpoint.layers.push_back({name, {{name + "/bias:0", Array::scalar(static_cast<float>(i))}}});
    checkpoint.optimizer.push_back({name + "/m:0", Array::scalar(static_cast<float>(-i))});
  }
  return checkpoint;
}

// Splits the lists as Keras 2.3.1's saving.py does, checks that ours were split equally, and stores them.
constexpr const char* kKerasLists = R"(
import sys, h5py, numpy as np
def save(group, name, data):
    array, chunks, count = np.asarray(data), [np.asarray(data)], 1
    while any(x.nbytes > 64512 for x in chunks):
        count += 1
        chunks = np.array_split(array, count)
    assert count > 1
    for i, chunk in enumerate(chunks):
        group.attrs["%s%d" % (name, i)] = chunk
    return count
def parts(group, name):
    n = 0
    while "%s%d" % (name, n) in group.attrs: n += 1
    return [group.attrs["%s%d" % (name, i)] for i in range(n)]
with h5py.File(sys.argv[1], "r+") as f:
    for group, name in ((f["model_weights"], "layer_names"), (f["optimizer_weights"], "weight_names")):
        assert name not in group.attrs
        ours = parts(group, name)
        names = np.concatenate(ours)
        for i in range(len(ours)): del group.attrs["%s%d" % (name, i)]
        save(group, name, names)
        theirs = parts(group, name)
        assert [p.tolist() for p in ours] == [p.tolist() for p in theirs], (len(ours), len(theirs))
)";

TEST_F(KerasFiles, ListsThatDoNotFitOneAttribute) {
  const Checkpoint checkpoint = many_layers();
  save_checkpoint(path_, checkpoint);
  expect_equal(load_checkpoint(path_), checkpoint);
  if (!has_h5py()) GTEST_SKIP() << python() << " has no h5py";
  write_file(scratch_.path("lists.py"), kKerasLists);
  const Outcome outcome = run_shell(python() + " " + scratch_.path("lists.py") + " " + path_);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  expect_equal(load_checkpoint(path_), checkpoint);
}

}  // namespace
}  // namespace syncline::io
