// PagedFile: a text file whose lines do not cross pages, padded with spaces. If a process is killed, the kernel cuts
// its write only at the end of a page, so the file has whole lines.
//
// Owns the file. One thread at a time. Does not throw.
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

  // Creates or truncates the file. False, with errno, if it cannot be written.
  bool open(const std::string& path);
  bool is_open() const { return fd_ >= 0; }
  // Buffers a line of at most a page; writes the buffer if the line does not fit into the page.
  void add(std::string_view line);
  // Writes the buffered lines. Returns 0, or the first error since the last call (errno); an error closes the file.
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
