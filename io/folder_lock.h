// FolderLock: one training at a time saves into a folder. Two would remove each other's checkpoints and shards.
#pragma once

#include <string>

#include "io/descriptor.h"

namespace syncline::io {

// Held until it is destroyed or the process ends, however it ends. The folder must be there. Throws IoError if another
// process has it. On file systems without locks nothing is held.
class FolderLock {
 public:
  explicit FolderLock(const std::string& directory);

 private:
  Descriptor folder_;
};

}  // namespace syncline::io
