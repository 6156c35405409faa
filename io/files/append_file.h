// A file that grows by whole records, which other programs read meanwhile.
//
// What append() was given is there whole or not at all: where a write fails in the middle, its beginning is taken back.
// Only a crash of the machine or a kill within the call can leave a part. Nothing is synced to the disk. A limit on
// file sizes is an error like a full disk. For one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/files/descriptor.h"

namespace syncline::io {

class AppendFile {
 public:
  // Opens the file, or makes it; what is in it stays. Throws IoError.
  explicit AppendFile(std::string path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // Throws IoError, one line; the file can be appended to again.
  void append(std::string_view bytes);
  // Drops what is behind the first `size` bytes. Throws IoError.
  void cut(std::uint64_t size);

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace syncline::io
