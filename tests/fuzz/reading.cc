#include "tests/fuzz/reading.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "io/files/descriptor.h"

namespace syncline::io {
namespace {

// A named file on a file system in memory. HDF5 resolves the real path of a file, which a file of memfd_create lacks.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::mkstemp(path_.data())) {}
  ~MemoryFile() { ::unlink(path_.c_str()); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::string& path() const { return path_; }
  bool holds(std::span<const std::byte> bytes) const {
    return descriptor_.get() >= 0 && ::ftruncate(descriptor_.get(), 0) == 0 &&
           write_all(descriptor_.get(), 0, bytes).error == 0;
  }

 private:
  std::string path_ = "/dev/shm/fuzzed.XXXXXX";
  Descriptor descriptor_;
};

}  // namespace

std::string file_of(const std::uint8_t* data, std::size_t size) {
  static const MemoryFile file;
  if (!file.holds(std::as_bytes(std::span(data, size))))
    fail<InternalError>("'", file.path(), "': cannot write it: ", std::strerror(errno));
  return file.path();
}

}  // namespace syncline::io
