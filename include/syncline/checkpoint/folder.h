// A folder of one training's checkpoints: `step-0000000943.h5`, ..., a symbolic link `latest` to the checkpoint to
// resume from, and a link `best` to the one with the best metric.
//
// A save writes the new file durably (io/files/atomic_file.h), moves `latest`, moves `best`, and removes old files, in
// this order. If it is interrupted, `latest` still points at a whole file. Symbolic links are used because every
// program follows them (`load_weights("run/latest")`, `h5ls run/latest`), one rename replaces them, and they cannot be
// half written. File systems without symbolic links are refused with this reason.
//
// One process at a time saves into a folder; any may load. Objects are immutable, so threads may share one within the
// rules of save_checkpoint and load_checkpoint.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "syncline/checkpoint/checkpoint.h"
#include "syncline/checkpoint/shards.h"

#pragma GCC visibility push(default)
namespace syncline::io {

struct FolderOptions {
  int keep_last = 3;  // newest files to keep; at least 1
  int keep_best = 1;  // best files by metric to keep, of any age; files without a metric do not count. Unreadable files
                      // are kept too, because one of them may be the best
  bool higher_is_better = false;
};

struct FolderLoad {
  Checkpoint checkpoint;
  std::string path;
  std::string warning;  // one line, if this is not the file that `latest` points at; otherwise empty
};

// The new checkpoint, `path`, is saved and `latest` points at it, but an old file cannot be removed.
struct SurplusError : IoError {
  SurplusError(const std::string& message, std::string saved) : IoError(message), path(std::move(saved)) {}
  std::string path;
};

class CheckpointFolder {
 public:
  // Throws ValueError for options out of range. Touches no file.
  explicit CheckpointFolder(std::string directory, FolderOptions options = {});

  // Saves and returns the new file's path. Makes the directory if it is missing, but not its parents. The file is named
  // by its global step and replaces one of the same step. Throws as save_checkpoint does; `latest` then points at a
  // whole file, the old one or the new one; after SurplusError at the new one. The disk needs room for one file more
  // than is kept. On a full disk the oldest files are removed first, but neither the target of `latest` nor the best
  // one.
  std::string save(const Checkpoint& checkpoint) const;

  // Sharded saving (syncline/checkpoint/shards.h): save_shard on each of `shard.count` ranks, then the caller's
  // barrier, then save_index on one rank, which does the rest of save. On a full disk save_shard throws DiskFullError
  // and removes nothing, because only one rank must remove files.
  std::string save_shard(const Checkpoint& checkpoint, Shard shard) const;
  std::string save_index(const Checkpoint& checkpoint, int count) const;
  // Call this instead of save_index if a shard could not be written: removes the shards that no index lists.
  void discard_shards() const;
  // Removes the oldest file but the newest, the best and those that cannot be opened. False if no other file is left,
  // or if `latest` is missing or damaged, because an older file may then be the last whole one.
  bool make_room() const;
  // Whether a process now writes a checkpoint of this folder, or was killed while it did so.
  bool is_saving() const;

  // The file name that `latest` points at; empty if the link is missing or does not point at a file of this folder.
  std::string latest() const;
  // Loads the target of `latest`; if it is missing or damaged, the newest whole file, with a warning. Empty if the
  // folder has no checkpoint or does not exist. Throws IoError if there are checkpoints but none is whole, or if the
  // only entry is a `latest` that points elsewhere.
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
  void make_newest(const std::string& name) const;
  void write_with_room(const std::function<void()>& write) const;
  std::vector<Entry> entries() const;
  Ranking by_metric(const std::vector<Entry>& entries) const;
  void remove_surplus(const std::vector<Entry>& entries, const Ranking& ranking) const;

  std::string directory_;
  FolderOptions options_;
};

}  // namespace syncline::io
#pragma GCC visibility pop
