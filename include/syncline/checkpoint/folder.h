// A folder of checkpoints of one training: `step-0000000943.h5`, ..., a symbolic link `latest` to the one to go on
// from, and a link `best` to the best one by its metric.
//
// A save is: the new file durably in place (io/files/durable_file.h), then `latest` moved, then `best`, then old files
// removed. Whatever interrupts it, `latest` points at a whole file. It is a link and not a file with a name in it
// because links are opened by everybody (`load_weights("run/latest")`, `h5ls run/latest`), are replaced by one rename,
// and have no contents that could be half written. File systems without symbolic links are refused with that reason.
//
// One process saves into a folder at a time; any may load. Objects hold no state beside what they were made with, so
// threads may share one as far as save_checkpoint and load_checkpoint allow.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "syncline/checkpoint/checkpoint.h"
#include "syncline/checkpoint/shards.h"

namespace syncline::io {

struct FolderOptions {
  int keep_last = 3;  // files kept because they are the newest; at least 1
  int keep_best = 1;  // files kept because their metric is best, whatever their age; those without metric never are,
                      // and what cannot be opened just now stays: it may be the best
  bool higher_is_better = false;
};

struct FolderLoad {
  Checkpoint checkpoint;
  std::string path;
  std::string warning;  // one line, if this is not what `latest` points at; else empty
};

class CheckpointFolder {
 public:
  // Throws ValueError for options out of range. Touches no file.
  explicit CheckpointFolder(std::string directory, FolderOptions options = {});

  // Makes the directory if it is missing (not those above it), saves and returns the new file's path. The file is named
  // by its global step and replaces one of the same step. Throws as save_checkpoint does; what `latest` points at is
  // whole then, the old one or the new one. The disk needs room for one file more than is kept; where it is full, the
  // oldest go first, but neither what `latest` points at nor the best one.
  std::string save(const Checkpoint& checkpoint) const;

  // The same for a checkpoint in several files, one written by each rank (syncline/checkpoint/shards.h): save_shard on
  // each of `shard.count` ranks, then a barrier of the caller's, then save_index on one, which does all else that save
  // does. Where the disk is full, save_shard throws DiskFullError and removes nothing: one rank must, not each of them.
  std::string save_shard(const Checkpoint& checkpoint, Shard shard) const;
  std::string save_index(const Checkpoint& checkpoint, int count) const;
  // Instead of save_index, when a shard could not be written: removes those that never came to an index.
  void discard_shards() const;
  // Removes the oldest checkpoint. False if only the newest and the best are left, or an older one may be the last that
  // is whole.
  bool make_room() const;

  // The name that `latest` points at; empty if there is no such link, or it does not point at a file of this folder.
  std::string latest() const;
  // What `latest` points at, or if that is missing or damaged the newest file that is whole, with a warning. Nothing if
  // the folder has no checkpoint or does not exist. Throws IoError if there are checkpoints but none is whole, or there
  // is only a `latest` that leads elsewhere.
  std::optional<FolderLoad> load() const;

 private:
  struct Entry {
    std::string name;
    std::int64_t step = 0, saved = 0;  // when the file was written, in nanoseconds
  };

  struct Ranking {
    std::vector<std::string> best, unreadable;
  };

  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }
  std::string put(const Checkpoint& checkpoint, const std::function<void(const std::string& path)>& write) const;
  std::string lost_latest() const;
  void remove(const std::string& name) const;
  void remove_with_shards(const std::string& name) const;
  void write_with_room(const std::function<void()>& write) const;
  std::vector<Entry> entries() const;
  Ranking by_metric(const std::vector<Entry>& entries) const;
  void remove_surplus(const std::vector<Entry>& entries, const Ranking& ranking) const;

  std::string directory_;
  FolderOptions options_;
};

}  // namespace syncline::io
