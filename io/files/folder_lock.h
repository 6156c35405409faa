// FolderLock: one training at a time saves into a folder. Two would remove each other's checkpoints and shards.
//
// It is a POSIX record lock on the file `.lock` in the folder, the same as the one of Keras's jobs
// (python/syncline/whole_files.py), so that the two refuse each other. Network file systems have such locks, and a
// process that is forked does not inherit them: a worker of a data loader that outlives its job does not keep the
// folder. A lock of an open file description would go to such children. A POSIX lock has two properties to mind: it
// does not keep a process from itself, so this class counts what the process holds, and it ends when the process
// closes any descriptor of the file, so nothing else here opens `.lock`.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "io/files/descriptor.h"

namespace syncline::io {

// Held until it is destroyed or the process ends, however it ends. The folder must be there. The file `.lock` names the
// holder for as long. Throws IoError, which names the holder, if another process has it for as long as `patience` (a
// job that was just asked to end needs a moment), or this process has it; and if the file cannot be made. On file
// systems without locks nothing is held. Thread-safe.
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
  // False if another process has it.
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
