// A checkpoint in several files, for models so big that one rank would write for too long: each rank writes a shard,
// and an index joins them. The index is a checkpoint like any other, but for weights that are external links into the
// shards beside it, "run/step-0000000943.shard-0-of-2-0.h5" for "run/step-0000000943.h5": h5ls, h5py and Keras read it
// as one file.
//
// Saving, with the same checkpoint on each of n ranks:
//
//     save_shard(path, checkpoint, {rank, n});     // on each
//     ...                                          // a barrier of the caller's, reached by ranks that failed too
//     save_index(path, checkpoint, n);             // on one
//
// All or nothing: the index is renamed into place last, and the shards of the one before have other names. If a rank
// has failed, or wrote another step, save_index throws and the old checkpoint stands. All ranks must see one directory.
//
// load_checkpoint and all else that reads checkpoints takes an index. Links are never followed blindly: they must lead
// to the files that the index lists, in its own directory, to the dataset of the same name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "syncline/checkpoint/checkpoint.h"

namespace syncline::io {

struct Shard {
  int number = 0, count = 1;
};

// Writes this rank's part, durably. Throws as save_checkpoint does, ValueError for a number out of range.
std::string save_shard(const std::string& path, const Checkpoint& checkpoint, Shard shard);

// Looks whether the shards are whole, puts the index in place, and removes shards at this path that it does not need.
void save_index(const std::string& path, const Checkpoint& checkpoint, int count);

// The files that seem to be shards of the checkpoint at `path`, by their names alone.
std::vector<std::string> shard_files(const std::string& path);
// The name of the index that a file of this name is a shard of; empty if it is none.
std::string index_of_shard(std::string_view name);

}  // namespace syncline::io
