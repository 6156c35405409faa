// FolderLock: lets one training at a time save into a folder. Two would remove each other's checkpoints and shards.
//
// The lock is a POSIX record lock on the file `.lock` in the folder. Keras jobs
// (python/syncline/checkpoint/whole_files.py) take the same lock, so the two exclude each other. Network file systems
// support POSIX locks, and forked processes do not inherit them: a data loader's worker that outlives its job does not
// keep the folder locked. (Forked processes share the lock of an open file description.) Two properties of POSIX locks
// matter. They do not exclude the process that holds them, so this class keeps a list of the folders its process holds.
// They end when the process closes any descriptor of the file, so no other code here may open `.lock`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "io/files/descriptor.h"

namespace syncline::io {

// Holds the lock until destruction or the end of the process. The folder must exist. Meanwhile the file `.lock` names
// the holder. Throws IoError naming the holder if this process holds the lock, or another process still does after
// `patience` (a job that was asked to end needs a moment). Throws IoError if the file cannot be created. On file
// systems without locks, only trainings of this process exclude each other. Thread-safe.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder, std::chrono::duration<double> patience = std::chrono::seconds(5));
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  using Folder = std::pair<dev_t, ino_t>;

  void take_in_process(const std::string& folder) const;
  void leave_in_process() const;
  // False if another process holds the lock.
  bool try_lock();
  bool is_at_its_place() const;
  void write_holder() const;
  std::string holder() const;

  const std::string path_;
  const pid_t process_;
  const Folder folder_;
  std::optional<Descriptor> file_;
};

}  // namespace syncline::io
