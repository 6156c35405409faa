#include "syncline/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>

#include "io/checkpoint/fields.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

Checkpoint one_weight(const std::string& layer, const std::string& weight) {
  Checkpoint checkpoint;
  checkpoint.layers = {{layer, {{weight, Array::scalar(1.0f)}}}};
  return checkpoint;
}

TEST(Checkpoint, ComesBackAsItWasSaved) {
  const Scratch scratch;
  const Checkpoint saved = small_checkpoint();
  save_checkpoint(scratch.path("a.h5"), saved);
  expect_equal(load_checkpoint(scratch.path("a.h5")), saved);
  EXPECT_EQ(scratch.files(), std::vector<std::string>{"a.h5"});
}

TEST(Checkpoint, KeepsEveryDtypeAndShape) {
  const Scratch scratch;
  Checkpoint saved;
  Layer& layer = saved.layers.emplace_back(Layer{"all", {}});
  const std::array dtypes{DType::kBool,  DType::kUint8,   DType::kInt8,    DType::kInt16,  DType::kInt32,
                          DType::kInt64, DType::kFloat16, DType::kFloat32, DType::kFloat64};
  const std::array shapes{Shape{}, Shape{1}, Shape{0}, Shape{3, 0, 2}, Shape{2, 3, 4, 5}};
  for (const DType dtype : dtypes)
    for (const Shape& shape : shapes) {
      Array value(dtype, shape);
      for (std::size_t i = 0; i < value.bytes(); ++i)
        value.raw()[i] = static_cast<std::byte>(dtype == DType::kBool ? i % 2 : i * 7 + 1);
      layer.weights.push_back({join_text("all/", dtype, layer.weights.size()), value});
    }
  save_checkpoint(scratch.path("a.h5"), saved);
  expect_equal(load_checkpoint(scratch.path("a.h5")), saved);
}

TEST(Checkpoint, EqualContentsGiveEqualBytes) {
  const Scratch scratch;
  save_checkpoint(scratch.path("a.h5"), small_checkpoint());
  save_checkpoint(scratch.path("b.h5"), small_checkpoint());
  EXPECT_EQ(read_file(scratch.path("a.h5")), read_file(scratch.path("b.h5")));
}

TEST(Checkpoint, ReplacesTheOldOne) {
  const Scratch scratch;
  Checkpoint checkpoint = small_checkpoint();
  save_checkpoint(scratch.path("a.h5"), checkpoint);
  checkpoint.state.epoch = 3;
  save_checkpoint(scratch.path("a.h5"), checkpoint);
  EXPECT_EQ(load_checkpoint(scratch.path("a.h5")).state.epoch, 3);
}

TEST(Checkpoint, EmptyOnesAreFine) {
  const Scratch scratch;
  save_checkpoint(scratch.path("a.h5"), Checkpoint{});
  expect_equal(load_checkpoint(scratch.path("a.h5")), Checkpoint{});
}

TEST(Checkpoint, NamesMayBePaths) {
  const Scratch scratch;
  const Checkpoint saved = one_weight("block/conv", "block/conv/inner/kernel:0");
  save_checkpoint(scratch.path("a.h5"), saved);
  expect_equal(load_checkpoint(scratch.path("a.h5")), saved);
}

TEST(Checkpoint, ListsOfNamesBeyondAnObjectHeaderAreSplit) {
  const Scratch scratch;
  Checkpoint saved;
  for (int i = 0; i < 3000; ++i)
    saved.layers.push_back({join_text("a_layer_with_a_rather_long_name_for_an_attribute_", i), {}});
  saved.layers[2999].weights.push_back({"kernel:0", Array::scalar(2.0f)});
  for (int i = 0; i < 2500; ++i)
    saved.optimizer.push_back({join_text("training/Adam/some_long_variable_name_", i), Array::scalar(1.0f)});
  save_checkpoint(scratch.path("a.h5"), saved);
  expect_equal(load_checkpoint(scratch.path("a.h5")), saved);
}

TEST(Checkpoint, RefusesNamesThatHdf5CannotHold) {
  const Scratch scratch;
  const std::string nul("a\0b", 3);
  for (const std::string& name : {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"),
                                  std::string("."), std::string("a/../b"), nul}) {
    const auto save = [&](const Checkpoint& checkpoint) { save_checkpoint(scratch.path("a.h5"), checkpoint); };
    EXPECT_CONTAINS(message_of<ValueError>([&] { save(one_weight(name, "w")); }), "is not a valid name");
    EXPECT_CONTAINS(message_of<ValueError>([&] { save(one_weight("layer", name)); }), "is not a valid name");
  }
  EXPECT_TRUE(scratch.files().empty());
}

TEST(Checkpoint, RefusesANameThatOccursTwice) {
  const Scratch scratch;
  Checkpoint checkpoint = small_checkpoint();
  checkpoint.layers[0].weights[1].name = "dense_1/kernel:0";
  EXPECT_CONTAINS(message_of<ValueError>([&] { save_checkpoint(scratch.path("a.h5"), checkpoint); }),
                  "'dense_1/kernel:0' occurs twice");
}

TEST(Checkpoint, AWeightInsideAnotherIsOneLine) {
  const Scratch scratch;
  Checkpoint checkpoint = one_weight("layer", "kernel");
  checkpoint.layers[0].weights.push_back({"kernel/part", Array::scalar(1.0f)});
  const std::string message = message_of<ValueError>([&] { save_checkpoint(scratch.path("a.h5"), checkpoint); });
  EXPECT_CONTAINS(message, "a.h5'): the weight 'layer/kernel' and 'layer/kernel/part' cannot be in one file");
  EXPECT_ONE_LINE(message);
}

TEST(Checkpoint, NoSuchFile) {
  const std::string message = message_of([] { load_checkpoint("/nowhere/a.h5"); });
  EXPECT_EQ(message, "checkpoint '/nowhere/a.h5': cannot open: No such file or directory");
}

TEST(Checkpoint, ADirectoryIsNoCheckpoint) {
  const Scratch scratch;
  EXPECT_CONTAINS(message_of([&] { load_checkpoint(scratch.directory()); }), "not a regular file");
  EXPECT_CONTAINS(message_of([&] { save_checkpoint(scratch.directory(), small_checkpoint()); }), "Is a directory");
}

TEST(Checkpoint, SummaryHasEverythingButTheValues) {
  const Scratch scratch;
  const Checkpoint saved = small_checkpoint();
  save_checkpoint(scratch.path("a.h5"), saved);
  const CheckpointSummary summary = summarize_checkpoint(scratch.path("a.h5"));
  EXPECT_NO_THROW(require_same_model("a.h5", summary.spec, spec_of(saved)));
  EXPECT_EQ(summary.state, saved.state);
  EXPECT_EQ(summary.model, "mlp");
  EXPECT_TRUE(summary.has_state);
}

TEST(Checkpoint, KeepsNotesAndTheVersionThatWroteIt) {
  const Scratch scratch;
  Checkpoint saved = small_checkpoint();
  saved.notes = {{"plan", "12ab"}, {"empty", ""}, {"names/ of \"all\" kinds", "two\nlines"}};
  save_checkpoint(scratch.path("a.h5"), saved);
  EXPECT_EQ(load_checkpoint(scratch.path("a.h5")).notes, saved.notes);
  EXPECT_EQ(summarize_checkpoint(scratch.path("a.h5")).notes, saved.notes);
  EXPECT_NE(load_checkpoint(scratch.path("a.h5")).version, "");
}

TEST(Checkpoint, RefusesNotesThatDoNotFit) {
  const Scratch scratch;
  Checkpoint checkpoint = small_checkpoint();
  const auto save = [&] { save_checkpoint(scratch.path("a.h5"), checkpoint); };
  checkpoint.notes = {{"long", std::string(60'000, 'x')}};
  EXPECT_CONTAINS(message_of<ValueError>(save), "keep them within 60000");
  checkpoint.notes = {{"bytes", "\xff"}};
  EXPECT_CONTAINS(message_of<ValueError>(save), "not text in UTF-8");
  EXPECT_TRUE(scratch.files().empty());
}

TEST(Checkpoint, ThreadsMaySaveAndLoadAtOnce) {
  const Scratch scratch;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::string path = scratch.path(join_text(t, ".h5"));
      for (int i = 0; i < 10; ++i) {
        save_checkpoint(path, small_checkpoint());
        load_checkpoint(path);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scratch.files().size(), 4u);
}

// All code for fields uses the lists, so it would ignore a field that is only in the struct.
TEST(Checkpoint, EveryFieldIsListed) {
  TrainingState state;
  std::size_t bytes = 0;
  std::set<const void*> listed;
  for_each_state_field(state, [&](const char*, const auto& value) {
    bytes += sizeof value;
    EXPECT_TRUE(listed.insert(&value).second);
  });
  EXPECT_EQ(bytes, sizeof state);
  CheckpointHead head;
  bytes = 0;
  for_each_head_field(head, [&](const char*, const auto& value, bool) { bytes += sizeof value; });
  EXPECT_EQ(bytes + sizeof state + alignof(CheckpointHead), sizeof head) << "has_state takes the rest";
}

}  // namespace
}  // namespace syncline::io
