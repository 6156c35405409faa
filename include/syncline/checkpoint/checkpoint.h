// Checkpoints: a model's weights, its optimizer's weights and where training stands, in one HDF5 file.
//
// The layout is Keras 2.3.1's (docs/checkpoint_format.md): Keras loads the weights, h5ls, h5dump and h5py read the
// file. Saving is all or nothing: at every moment `path` is the whole old file or the whole new one. Arrays go from
// and to their memory in one pass that takes their digest too; neither saving nor loading copies them.
//
// Arrays loaded are owned by the checkpoint returned; arrays saved are only read. Any thread may call; calls that
// touch HDF5 run one after the other. In a job of several ranks one rank saves and all may load.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "syncline/array.h"
#include "syncline/checkpoint/model.h"

namespace syncline::io {

struct Weight {
  std::string name;  // unique in its layer, "dense_1/kernel:0"
  Array value;
};

struct Layer {
  std::string name;
  std::vector<Weight> weights;  // may be empty
};

// Where training stands. Counts are those of finished steps, so that all zero is a training not yet begun.
struct TrainingState {
  std::int64_t epoch = 0;         // epochs finished
  std::int64_t step = 0;          // steps finished in the epoch now running
  std::int64_t global_step = 0;   // steps finished since the beginning
  std::uint64_t seed = 0;         // of initial values, data order and dropout
  std::uint64_t random_step = 0;  // the counter of the counter-based random numbers
  std::int64_t batch = 0;         // rows of a global batch
  std::int64_t samples = 0;       // rows of the data set

  friend bool operator==(const TrainingState&, const TrainingState&) = default;
};

// All of a checkpoint but its arrays. io/checkpoint/fields.h lists the fields for those who write and read them.
struct CheckpointHead {
  TrainingState state;
  bool has_state = true;         // false after loading a file of Keras's own, which has none of these fields
  std::string model;             // what the user called it, "cnn"; may be empty
  std::string version;           // of the library that trained it; saving takes "" for this library's
  std::optional<double> metric;  // how good it is: what decides which of several is the best
  // What else the program wants to know when it goes on, by name. At most 60,000 bytes with the names.
  std::map<std::string, std::string> notes;

  friend bool operator==(const CheckpointHead&, const CheckpointHead&) = default;
};

struct Checkpoint : CheckpointHead {
  std::vector<Layer> layers;      // in the model's order
  std::vector<Weight> optimizer;  // in the optimizer's order
};

// A checkpoint without the values.
struct CheckpointSummary : CheckpointHead {
  ModelSpec spec;
};

struct VerifyReport {
  std::vector<std::string> problems;  // a line each; empty if nothing is wrong
  bool readable = true;               // false if the file cannot even be opened; problems then says why
  bool has_digests = false;           // false in files of Keras's and of earlier versions: some damage stays unseen
  std::int64_t arrays = 0, bytes = 0;
};

// Throws ValueError for names that HDF5 cannot hold (empty, with empty parts or NUL bytes, twice the same) and for
// notes that are too long or no UTF-8, IoError when the file cannot be written; the old file is then unchanged and no
// temporary file is left.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Throws IoError, one line with file, object and reason, for a file that is missing, truncated, damaged, in another
// layout, or that points outside itself (external storage, links, virtual datasets, unknown filters). Loading finds any
// damage of the values, by their digests; a summary does not look at them.
//
// Who resumes a training has no use for Keras's own files, which hold weights only: kRefused refuses them before more
// of them is read, because HDF5 may crash or loop in their texts if they are damaged. Ours have no such texts.
enum class KerasFiles : std::uint8_t { kTaken, kRefused };
Checkpoint load_checkpoint(const std::string& path, KerasFiles others = KerasFiles::kTaken);
CheckpointSummary summarize_checkpoint(const std::string& path);

// Reads everything, one array at a time, and reports all damage instead of throwing at the first.
VerifyReport verify_checkpoint(const std::string& path);

ModelSpec spec_of(const Checkpoint& checkpoint);

}  // namespace syncline::io
