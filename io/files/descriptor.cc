#include "io/files/descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "syncline/error.h"

namespace syncline::io {

RegularFile open_regular(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) return {-1, 0, std::strerror(errno)};
  if (!S_ISREG(status.st_mode)) return {-1, 0, "it is not a regular file"};
  return {file.release(), static_cast<std::uint64_t>(status.st_size), {}};
}

FileLock try_lock(int descriptor, int operation) {
  if (::flock(descriptor, operation | LOCK_NB) == 0) return FileLock::kTaken;
  return errno == EWOULDBLOCK ? FileLock::kHeldByAnother : FileLock::kUnsupported;
}

HoldFileSizeSignal::HoldFileSizeSignal() {
  sigset_t pending;
  sigemptyset(&only_);
  sigaddset(&only_, SIGXFSZ);
  was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
  const int error = pthread_sigmask(SIG_BLOCK, &only_, &before_);
  if (error != 0) fail<IoError>("save: cannot block SIGXFSZ: ", std::strerror(error));
}

HoldFileSizeSignal::~HoldFileSizeSignal() {
  const timespec no_wait{};
  if (!was_pending_) sigtimedwait(&only_, nullptr, &no_wait);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Written write_all(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
  Written written;
  while (written.bytes < bytes.size()) {
    const auto rest = bytes.subspan(written.bytes);
    const ssize_t more = ::pwrite(descriptor, rest.data(), rest.size(), static_cast<off_t>(offset + written.bytes));
    if (more >= 0) written.bytes += static_cast<std::size_t>(more);
    else if (errno != EINTR) return {written.bytes, errno};
  }
  return written;
}

std::string reason_of_write(int error) {
  std::string reason = std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) reason += " (free some space)";
  if (error == EFBIG) reason += " (raise the limit, see ulimit -f)";
  return reason;
}

}  // namespace syncline::io
