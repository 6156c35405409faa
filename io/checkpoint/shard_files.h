// ShardFiles: finds the weights of a checkpoint, in the file itself or in its shards (syncline/checkpoint/shards.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/hdf5/file.h"

namespace syncline::io {

// The files that `file` lists, if it is an index; else none. Throws IoError for a name outside its directory.
std::vector<std::string> listed_shards(const Hdf5File& file);

// Needs a live Hdf5Session. Not thread-safe.
class ShardFiles {
 public:
  // Reads the list of shards, if `file` is an index.
  explicit ShardFiles(const Hdf5File& file);

  // The dataset of weight `name` ("dense_1/kernel:0") of `group`, in the file or in a shard. Throws IoError for a link
  // to any other place. Must not outlive this object.
  Hdf5Group open(const Hdf5Group& group, const std::string& name);

 private:
  const Hdf5File& shard(const std::string& name, const Hdf5Location& link);

  std::string directory_;
  std::map<std::string, std::vector<Hdf5File>> files_;  // by name; empty until opened
};

}  // namespace syncline::io
