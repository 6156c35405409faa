#include "base/paged_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace syncline {

bool PagedFile::open(const std::string& path) {
  close();
  written_ = 0;
  error_ = 0;
  text_.clear();
  text_.reserve(2 * kPage);
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  return fd_ >= 0;
}

void PagedFile::add(std::string_view line) {
  const std::size_t in_page = (written_ + text_.size()) % kPage;
  if (in_page + line.size() > kPage) {
    text_.append(kPage - in_page, ' ');
    write_text();
  }
  text_ += line;
}

int PagedFile::write() {
  write_text();
  return std::exchange(error_, 0);
}

void PagedFile::write_text() {
  for (std::string_view rest = text_; !rest.empty() && fd_ >= 0;) {
    const ssize_t done = ::write(fd_, rest.data(), rest.size());
    if (done > 0) {
      written_ += static_cast<std::size_t>(done);
      rest.remove_prefix(static_cast<std::size_t>(done));
    } else if (errno != EINTR) {
      error_ = errno;
      close();
    }
  }
  text_.clear();
}

void PagedFile::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace syncline
