// The layout of a checkpoint in HDF5 (docs/checkpoint_format.md), shared by the code for whole and for sharded
// checkpoints. Needs a live Hdf5Session. Throws IoError, and ValueError for invalid names.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/hdf5/array.h"
#include "io/hdf5/file.h"
#include "syncline/checkpoint/checkpoint.h"

namespace syncline::io {

inline constexpr const char* kWeightsGroup = "model_weights";
inline constexpr const char* kOptimizerGroup = "optimizer_weights";
inline constexpr const char* kStateGroup = "syncline";
// Attributes of the state's group, beside the fields (io/checkpoint/fields.h).
inline constexpr const char* kFormatName = "format";
inline constexpr const char* kRootDigest = "root_digest";
inline constexpr const char* kShards = "shards";          // of an index: names of its files
inline constexpr const char* kGeneration = "generation";  // of an index: number of earlier saves at this path
inline constexpr const char* kShard = "shard";            // of a shard: its number

struct ShardNames {
  std::vector<std::string> files;  // in the index's directory
  std::int64_t generation = 0;
};

// Writes a weight, or a link to it, into its group.
using WriteWeight = std::function<ArrayHeader(const Hdf5Group& group, const Weight& weight)>;

// Writes all of a checkpoint; `write` writes the weights. With `shards`, the file becomes their index.
void write_checkpoint(const Hdf5File& file, const Checkpoint& checkpoint, const WriteWeight& write,
                      const ShardNames* shards = nullptr);

// Writes a shard; `write` writes its weights and appends their headers.
void write_shard(const Hdf5File& file, const TrainingState& state, int number,
                 const std::function<void(std::vector<ArrayHeader>&)>& write);

// The digest of the sorted list of all datasets: path, dtype, shape and digest, one line each. It detects datasets that
// are missing or belong to another file.
std::string root_digest(std::vector<ArrayHeader> headers);
// Throws if the datasets listed are not those that were written. ArrayReader checks their values.
void verify_root(const Hdf5Group& root, const std::vector<ArrayHeader>& headers);

// Read the group kStateGroup.
TrainingState read_state(const Hdf5Group& group);
CheckpointHead read_head(const Hdf5Group& group);

}  // namespace syncline::io
