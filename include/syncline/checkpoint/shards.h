// Sharded checkpoints, for models too large for one rank to write in time: each rank writes a shard, and an index joins
// the shards. The index is an ordinary checkpoint whose weights are external links into the shards beside it,
// "run/step-0000000943.shard-0-of-2-0.h5" for "run/step-0000000943.h5": h5ls, h5py and Keras read it as one file.
//
// Saving, with the same checkpoint on each of n ranks:
//
//     save_shard(path, checkpoint, {rank, n});     // on each
//     ...                                          // the caller's barrier, for failed ranks too
//     save_index(path, checkpoint, n);             // on one
//
// A rank needs the values of its own shard only. The others may be arrays without bytes (absent_array), so a model
// that no rank can hold twice can be saved.
//
// Saving is atomic: save_index renames the index into place last, and the previous checkpoint's shards have other
// names. If a rank has failed or wrote another step, save_index throws and the old checkpoint remains. All ranks must
// share one directory.
//
// load_checkpoint and all other readers of checkpoints accept an index. They follow only links to files that the index
// lists, in its own directory, to the dataset of the same name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "syncline/checkpoint/checkpoint.h"

#pragma GCC visibility push(default)
namespace syncline::io {

struct Shard {
  int number = 0, count = 1;
};

// An array of this dtype and shape without bytes: raw() is null.
Array absent_array(DType dtype, Shape shape);
// For each weight of the checkpoint, layers first: whether the shard holds it. Reads no values. Shards get about equal
// bytes, in this order. Throws ValueError for a number out of range.
std::vector<bool> weights_in(Shard shard, const Checkpoint& checkpoint);

// Writes this rank's shard durably. Throws as save_checkpoint does, and ValueError for a number out of range.
std::string save_shard(const std::string& path, const Checkpoint& checkpoint, Shard shard);

// Checks that the shards are whole, renames the index into place, and removes unneeded shards at this path.
void save_index(const std::string& path, const Checkpoint& checkpoint, int count);

// The files whose names are those of shards of the checkpoint at `path`.
std::vector<std::string> shard_files(const std::string& path);
// The name of the index to which a file of this name belongs as a shard; empty if it is not a shard.
std::string index_of_shard(std::string_view name);

}  // namespace syncline::io
#pragma GCC visibility pop
