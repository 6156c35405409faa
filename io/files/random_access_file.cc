#include "io/files/random_access_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/files/descriptor.h"
#include "syncline/error.h"

namespace syncline::io {
namespace {

class DiskFile : public RandomAccessFile {
 public:
  DiskFile(const std::string& path, int descriptor, std::uint64_t size)
      : RandomAccessFile(path, size), descriptor_(descriptor) {}
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile() override { ::close(descriptor_); }

  void read(std::uint64_t offset, std::span<std::byte> target) override {
    while (!target.empty()) {
      const ssize_t got = ::pread(descriptor_, target.data(), target.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail<IoError>("file '", path(), "': cannot read: ", std::strerror(errno));
      if (got == 0) fail<IoError>("file '", path(), "': ends before byte ", offset + target.size());
      offset += static_cast<std::uint64_t>(got);
      target = target.subspan(static_cast<std::size_t>(got));
    }
  }

 private:
  int descriptor_;
};

class MemoryFile : public RandomAccessFile {
 public:
  MemoryFile(std::string path, Array bytes)
      : RandomAccessFile(std::move(path), bytes.bytes()), bytes_(std::move(bytes)) {}

  void read(std::uint64_t offset, std::span<std::byte> target) override {
    if (offset > size() || target.size() > size() - offset)
      fail<IoError>("file '", path(), "': ends before byte ", offset + target.size());
    if (!target.empty()) std::memcpy(target.data(), bytes_.raw() + offset, target.size());
  }

 private:
  Array bytes_;
};

}  // namespace

std::unique_ptr<RandomAccessFile> open_random_access_file(const std::string& path) {
  const RegularFile file = open_regular(path);
  if (file.descriptor < 0) fail<IoError>("file '", path, "': cannot open: ", file.refused);
  return std::make_unique<DiskFile>(path, file.descriptor, file.size);
}

std::unique_ptr<RandomAccessFile> random_access_file_of(std::string path, Array bytes) {
  return std::make_unique<MemoryFile>(std::move(path), std::move(bytes));
}

}  // namespace syncline::io
