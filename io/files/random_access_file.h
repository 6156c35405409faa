// RandomAccessFile: random access to the bytes of a file on disk or in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "syncline/array.h"

namespace syncline::io {

class RandomAccessFile {
 public:
  virtual ~RandomAccessFile() = default;
  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  // Fills `target` with the bytes from `offset` on. Throws IoError if the file ends too early.
  virtual void read(std::uint64_t offset, std::span<std::byte> target) = 0;

 protected:
  RandomAccessFile(std::string path, std::uint64_t size) : path_(std::move(path)), size_(size) {}

 private:
  std::string path_;
  std::uint64_t size_;
};

// Opens a file. Throws IoError if it is missing or not a regular file.
std::unique_ptr<RandomAccessFile> open_random_access_file(const std::string& path);
// A file in memory, which shares `bytes`.
std::unique_ptr<RandomAccessFile> random_access_file_of(std::string path, Array bytes);

}  // namespace syncline::io
