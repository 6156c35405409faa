// Checkpoints: a model's weights, its optimizer's weights and the training's progress, in one HDF5 file.
//
// The layout is that of Keras 2.3.1 (docs/checkpoint_format.md): Keras loads the weights; h5ls, h5dump and h5py read
// the file. Saving is atomic: at every moment `path` is the whole old file or the whole new one. Saving and loading
// move arrays between file and memory in one pass that also computes digests, without copies.
//
// Ownership: the returned checkpoint owns the arrays loaded; arrays saved are only read. Threads: any; calls that use
// HDF5 run one at a time. In a job of several ranks one rank saves and all may load.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "syncline/array.h"
#include "syncline/checkpoint/model.h"

#pragma GCC visibility push(default)
namespace syncline::io {

struct Weight {
  std::string name;  // unique in its layer, "dense_1/kernel:0"
  Array value;
};

struct Layer {
  std::string name;
  std::vector<Weight> weights;  // may be empty
};

// The training's progress. Counts are of finished steps; all are zero before the first.
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

// A checkpoint without its arrays. io/checkpoint/fields.h lists the fields for the writer and the reader.
struct CheckpointHead {
  TrainingState state;
  bool has_state = true;         // false after loading Keras's own files, which lack these fields
  std::string model;             // the user's name for it, "cnn"; may be empty
  std::string version;           // of the library that trained it; saving replaces "" with this library's
  std::optional<double> metric;  // quality, which selects the best of several checkpoints
  // Further values for resuming, by name. At most 60,000 bytes with the names.
  std::map<std::string, std::string> notes;

  friend bool operator==(const CheckpointHead&, const CheckpointHead&) = default;
};

struct Checkpoint : CheckpointHead {
  std::vector<Layer> layers;      // in the model's order
  std::vector<Weight> optimizer;  // in the optimizer's order
};

// A checkpoint's head, names, dtypes and shapes, without values.
struct CheckpointSummary : CheckpointHead {
  ModelSpec spec;
};

struct VerifyReport {
  std::vector<std::string> problems;  // one line each; empty if the file is whole
  bool readable = true;               // false if the file cannot be opened; problems then says why
  bool has_digests = false;           // false for files of Keras and of earlier versions: some damage is undetectable
  std::int64_t arrays = 0, bytes = 0;
  bool is_shard = false;  // one shard of a checkpoint (syncline/checkpoint/shards.h)
};

// Throws ValueError for names that HDF5 cannot hold (empty, with empty parts or NUL bytes, duplicate) and for notes
// that are too long or not UTF-8; IoError if the file cannot be written. On error the old file is unchanged and no
// temporary file is left.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Throws IoError, one line with file, object and reason, for a file that is missing, truncated, damaged, in another
// layout, or refers outside itself (external storage, links, virtual datasets, unknown filters). Loading detects any
// damage of the values by their digests; a summary does not read the values.
//
// A training cannot use Keras's own files, which hold weights only: kRefused rejects them early, because HDF5 may crash
// or loop on their strings if these are damaged. Syncline's files have no such strings.
enum class KerasFiles : std::uint8_t { kTaken, kRefused };
Checkpoint load_checkpoint(const std::string& path, KerasFiles others = KerasFiles::kTaken);
CheckpointSummary summarize_checkpoint(const std::string& path, KerasFiles others = KerasFiles::kTaken);

// Reads everything, one array at a time, and reports all damage instead of throwing at the first.
VerifyReport verify_checkpoint(const std::string& path, KerasFiles others = KerasFiles::kTaken);

ModelSpec spec_of(const Checkpoint& checkpoint);

}  // namespace syncline::io
#pragma GCC visibility pop
