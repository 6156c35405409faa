#include "io/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace syncline::io {

FolderLock::FolderLock(const std::string& directory)
    : folder_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_.get() < 0) fail<IoError>("checkpoint folder '", directory, "': cannot open it: ", std::strerror(errno));
  if (::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    fail<IoError>("checkpoint folder '", directory,
                  "': another training saves into it right now; wait until it has ended, or give another folder");
}

}  // namespace syncline::io
