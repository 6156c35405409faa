// Other programs read our checkpoints: HDF5's own tools and, if it is installed, h5py.
#include <gtest/gtest.h>

#include <cstdlib>

#include "syncline/checkpoint/checkpoint.h"
#include "tests/io/scratch.h"

namespace syncline::io {
namespace {

class CheckpointTools : public testing::Test {
 protected:
  CheckpointTools() { save_checkpoint(path_, small_checkpoint()); }

  Scratch scratch_;
  std::string path_ = scratch_.path("a.h5");
};

TEST_F(CheckpointTools, H5ls) {
  if (!has_program("h5ls")) GTEST_SKIP() << "h5ls (hdf5-tools) is not installed";
  const Outcome listing = run_shell("h5ls -r " + path_);
  EXPECT_EQ(listing.status, 0);
  EXPECT_CONTAINS(listing.output, "/model_weights/dense_1/dense_1/kernel:0 Dataset {3, 4}");
  EXPECT_CONTAINS(listing.output, "/optimizer_weights/Adam/iterations:0 Dataset {SCALAR}");
  EXPECT_CONTAINS(listing.output, "/syncline");
}

TEST_F(CheckpointTools, H5dump) {
  if (!has_program("h5dump")) GTEST_SKIP() << "h5dump (hdf5-tools) is not installed";
  const Outcome dump = run_shell("h5dump " + path_);
  EXPECT_EQ(dump.status, 0);
  EXPECT_CONTAINS(dump.output, "(0): \"dense_1\\000\\000\", \"dropout_1\", \"dense_2\\000\\000\"");
  EXPECT_CONTAINS(dump.output, "(0): \"dense_1/kernel:0\", \"dense_1/bias:0\\000\\000\"");
  const Outcome properties = run_shell("h5dump -p -d /model_weights/dense_2/dense_2/bias:0 " + path_);
  EXPECT_EQ(properties.status, 0);
  EXPECT_CONTAINS(properties.output, "CONTIGUOUS");
  EXPECT_CONTAINS(properties.output, "(0): 300, 300.5");
}

// Reads the file the way Keras 2.3.1's load_weights and load_model do.
constexpr const char* kReader = R"(
import sys, h5py
def names(group, name):
    if name in group.attrs:
        return [n.decode("utf8") for n in group.attrs[name]]
    data, part = [], 0
    while "%s%d" % (name, part) in group.attrs:
        data.extend(n.decode("utf8") for n in group.attrs["%s%d" % (name, part)])
        part += 1
    return data
with h5py.File(sys.argv[1], "r") as f:
    assert "layer_names" not in f.attrs and "model_weights" in f
    g = f["model_weights"]
    print(g.attrs["keras_version"].decode("utf8"), g.attrs["backend"].decode("utf8"))
    for layer in names(g, "layer_names"):
        print(layer, [(w, g[layer][w].dtype.name, g[layer][w][()].tolist()) for w in names(g[layer], "weight_names")])
    o = f["optimizer_weights"]
    print([(w, o[w][()].tolist()) for w in names(o, "weight_names")][0])
    print(int(f["syncline"].attrs["seed"]), int(f["syncline"].attrs["step"]))
)";

TEST_F(CheckpointTools, H5pyAsKerasReads) {
  if (!has_h5py()) GTEST_SKIP() << python() << " has no h5py";
  write_file(scratch_.path("reader.py"), kReader);
  const Outcome outcome = run_shell(python() + " " + scratch_.path("reader.py") + " " + path_);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "2.3.1 syncline");
  EXPECT_CONTAINS(outcome.output, "dropout_1 []");
  EXPECT_CONTAINS(outcome.output, "('dense_2/bias:0', 'float32', [300.0, 300.5])");
  EXPECT_CONTAINS(outcome.output, "('Adam/iterations:0', 7)");
  EXPECT_CONTAINS(outcome.output, "18446744073709551615 5");
}

// Reads the float16 values 1.5 and -2^-24, and writes them again in both byte orders. A second argument removes the
// group of Syncline with its digests.
constexpr const char* kHalves = R"(
import sys, h5py
with h5py.File(sys.argv[1], "r+") as f:
    layer = f["model_weights"]["half"]
    print(layer["little"].dtype.str, layer["little"][()].tolist())
    for name, dtype in (("little", "<f2"), ("big", ">f2")):
        values = layer["little"][()]
        del layer[name]
        layer.create_dataset(name, data=values, dtype=dtype)
    if len(sys.argv) > 2:
        del f["syncline"]  # our digests are no longer those of the datasets
)";

TEST_F(CheckpointTools, H5pyReadsAndWritesFloat16) {
  if (!has_h5py()) GTEST_SKIP() << python() << " has no h5py";
  Checkpoint saved;
  const Array halves = Array::from<double>(Shape{2}, {1.5, -0x1p-24}).cast(DType::kFloat16);
  saved.layers = {{"half", {{"little", halves}, {"big", halves}}}};
  save_checkpoint(path_, saved);
  write_file(scratch_.path("halves.py"), kHalves);
  const Outcome outcome = run_shell(python() + " " + scratch_.path("halves.py") + " " + path_ + " foreign");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_CONTAINS(outcome.output, "<f2 [1.5, -5.960464477539063e-08]");
  saved.has_state = false;
  expect_equal(load_checkpoint(path_), saved);
}

TEST_F(CheckpointTools, WhatH5pyReplacedIsNoticed) {
  if (!has_h5py()) GTEST_SKIP() << python() << " has no h5py";
  Checkpoint saved;
  const Array halves = Array::from<double>(Shape{2}, {1.5, -0x1p-24}).cast(DType::kFloat16);
  saved.layers = {{"half", {{"little", halves}, {"big", halves}}}};
  save_checkpoint(path_, saved);
  write_file(scratch_.path("halves.py"), kHalves);
  EXPECT_EQ(run_shell(python() + " " + scratch_.path("halves.py") + " " + path_).status, 0);
  EXPECT_CONTAINS(message_of([&] { load_checkpoint(path_); }), "/model_weights/half/little: has lost its digest");
  EXPECT_CONTAINS(message_of([&] { summarize_checkpoint(path_); }), "has lost its digest");
}

// Computes the digests as docs/checkpoint_format.md describes them, with another implementation of XXH3.
constexpr const char* kDigests = R"PY(
import subprocess, sys, h5py
def xxh3(data):
    return subprocess.run(["xxhsum", "-H2"], input=data, stdout=subprocess.PIPE, check=True).stdout.split()[0].decode()
lines = []
def visit(name, item):
    if not isinstance(item, h5py.Dataset):
        return
    digest = xxh3(item[()].tobytes())
    assert item.attrs["xxh3_128"].decode() == digest, name
    shape = "(" + ", ".join(map(str, item.shape)) + ("," if len(item.shape) == 1 else "") + ")"
    lines.append("/%s %s %s %s\n" % (name, item.dtype.name, shape, digest))
with h5py.File(sys.argv[1], "r") as f:
    f.visititems(visit)
    assert f["syncline"].attrs["root_digest"].decode() == xxh3("".join(sorted(lines)).encode())
    print(len(lines), "digests")
)PY";

TEST_F(CheckpointTools, DigestsAreWhatTheFormatSays) {
  if (!has_h5py() || !has_program("xxhsum")) GTEST_SKIP() << "needs h5py and xxhsum";
  write_file(scratch_.path("digests.py"), kDigests);
  const Outcome outcome = run_shell(python() + " " + scratch_.path("digests.py") + " " + path_);
  EXPECT_EQ(outcome.output, "6 digests\n");
}

}  // namespace
}  // namespace syncline::io
