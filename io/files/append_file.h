// AppendFile: a file that grows by whole records while other programs read it.
//
// append() writes all of its bytes or none: if a write fails in the middle, it truncates the file to its old size. Only
// a machine crash, a kill within the call, or a failed truncation leaves a part. Nothing is synced to the disk. A file
// size limit is an error like a full disk. For one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/files/descriptor.h"

namespace syncline::io {

class AppendFile {
 public:
  // Opens the file and keeps its contents, or creates it. Throws IoError.
  explicit AppendFile(std::string path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // Throws IoError, one line; append() may be called again.
  void append(std::string_view bytes);
  // Truncates the file to `size` bytes, if it is longer. Throws IoError.
  void cut(std::uint64_t size);

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace syncline::io
