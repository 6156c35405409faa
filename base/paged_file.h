// PagedFile: a text file whose lines do not cross pages, for a process that may be killed at any time: the kernel cuts
// the write of such a process at the end of a page only. Spaces fill the rest of a page.
//
// It owns the file. One thread at a time. Nothing throws.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace syncline {

class PagedFile {
 public:
  static constexpr std::size_t kPage = 4096;

  PagedFile() = default;
  PagedFile(const PagedFile&) = delete;
  PagedFile& operator=(const PagedFile&) = delete;
  ~PagedFile() { close(); }

  // An empty file, also if there was one. False, with errno, if it cannot be written.
  bool open(const std::string& path);
  bool is_open() const { return fd_ >= 0; }
  // Keeps a line (at most a page) for the next write, which comes at once where a page is full.
  void add(std::string_view line);
  // Writes what was added. Returns 0, or the first error since the last call (errno); the file is closed then.
  int write();
  void close();

 private:
  void write_text();

  int fd_ = -1;
  int error_ = 0;
  std::size_t written_ = 0;
  std::string text_;
};

}  // namespace syncline
