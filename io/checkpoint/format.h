// The layout of a checkpoint in HDF5 (docs/checkpoint_format.md), for the files of io that write and read whole ones,
// and those that are split into shards. Needs a live Hdf5Session. Throws IoError, and ValueError for names.
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
inline constexpr const char* kShards = "shards";          // of an index: the names of its files
inline constexpr const char* kGeneration = "generation";  // of an index: how often it has been saved at this path
inline constexpr const char* kShard = "shard";            // of a shard: its number

struct ShardNames {
  std::vector<std::string> files;  // in the index's directory
  std::int64_t generation = 0;
};

// Puts a weight, or a link to it, into its group.
using WriteWeight = std::function<ArrayHeader(const Hdf5Group& group, const Weight& weight)>;

// All of a checkpoint but the weights themselves; an index of `shards` if there are any.
void write_checkpoint(const Hdf5File& file, const Checkpoint& checkpoint, const WriteWeight& write,
                      const ShardNames* shards = nullptr);

// A shard: `write` puts weights into the file and appends their headers.
void write_shard(const Hdf5File& file, const TrainingState& state, int number,
                 const std::function<void(std::vector<ArrayHeader>&)>& write);

// Of what a file lists: paths, dtypes, shapes and digests of all its datasets, sorted, a line each. It ties the
// datasets to each other: one that is missing, or that is another file's, is found like a flipped bit.
std::string root_digest(std::vector<ArrayHeader> headers);
// Whether the datasets listed are those that were written. Whether their values are, ArrayReader checks.
void verify_root(const Hdf5Group& root, const std::vector<ArrayHeader>& headers);

// Of the group kStateGroup.
TrainingState read_state(const Hdf5Group& group);
CheckpointHead read_head(const Hdf5Group& group);

}  // namespace syncline::io
