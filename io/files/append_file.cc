#include "io/files/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "syncline/error.h"

namespace syncline::io {

AppendFile::AppendFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) {
  struct stat found {};
  if (file_.get() < 0 || ::fstat(file_.get(), &found) != 0)
    fail<IoError>("cannot write '", path_, "': ", std::strerror(errno));
  size_ = static_cast<std::uint64_t>(found.st_size);
}

void AppendFile::append(std::string_view bytes) {
  const HoldFileSizeSignal hold;
  const Written written = write_all(file_.get(), size_, std::as_bytes(std::span(bytes)));
  if (written.error == 0) {
    size_ += bytes.size();
    return;
  }
  const bool taken_back = written.bytes == 0 || ::ftruncate(file_.get(), static_cast<off_t>(size_)) == 0;
  fail<IoError>("cannot write '", path_, "': ", reason_of_write(written.error),
                taken_back ? "" : "; the file now ends in the middle of a record");
}

void AppendFile::cut(std::uint64_t size) {
  if (size >= size_) return;
  if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0)
    fail<IoError>("cannot truncate '", path_, "' to ", size, " bytes: ", std::strerror(errno));
  size_ = size;
}

}  // namespace syncline::io
