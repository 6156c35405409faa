#include "tests/io/failing_calls.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace {

std::atomic<int> counted{-1};  // the calls so far; negative without a FailingCalls
std::atomic<int> first{0}, fault{0};
std::atomic<bool> only_one{true};
std::atomic<bool> without_locks{false};
std::string part_of_path;  // written only while `counted` is negative

bool is_meant(const char* path) { return std::strstr(path, part_of_path.c_str()) != nullptr; }
bool is_meant(int descriptor) {
  if (part_of_path.empty()) return true;
  char path[PATH_MAX] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return ::readlink(link.c_str(), path, sizeof path - 1) > 0 && is_meant(path);
}

// The fault for a call that begins now, or 0. `file`: the call's path or descriptor.
int next_fault(auto file) {
  int number = counted.load();
  if (number < 0 || !is_meant(file)) return 0;
  do {
    if (number < 0) return 0;
  } while (!counted.compare_exchange_weak(number, number + 1));
  if (number < first || (number > first && only_one)) return 0;
  if (fault == syncline::io::FailingCalls::kKill) ::raise(SIGKILL);
  return fault;
}

bool fails(auto file) {
  const int error = next_fault(file);
  if (error > 0) errno = error;
  return error > 0;
}

// Makes the system call unless it has a fault.
template <class... Arguments>
int call(auto file, long number, Arguments... arguments) {
  return fails(file) ? -1 : static_cast<int>(::syscall(number, arguments...));
}

ssize_t transfer(long number, int descriptor, const void* bytes, size_t size, auto... offset) {
  const int error = next_fault(descriptor);
  if (error > 0) errno = error;
  if (error > 0) return -1;
  if (error == syncline::io::FailingCalls::kShortWrite) size = (size + 1) / 2;
  return ::syscall(number, descriptor, bytes, size, offset...);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(list, int) : 0;
  va_end(list);
  if ((flags & (O_WRONLY | O_RDWR | O_DIRECTORY)) != 0) return call(path, SYS_openat, AT_FDCWD, path, flags, mode);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t write(int descriptor, const void* bytes, size_t size) { return transfer(SYS_write, descriptor, bytes, size); }
ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  return transfer(SYS_pwrite64, descriptor, bytes, size, offset);
}

int fsync(int descriptor) { return call(descriptor, SYS_fsync, descriptor); }
int flock(int descriptor, int operation) noexcept {
  if (!without_locks) return call(descriptor, SYS_flock, descriptor, operation);
  errno = ENOLCK;
  return -1;
}
int ftruncate(int descriptor, off_t size) noexcept { return call(descriptor, SYS_ftruncate, descriptor, size); }
int sync_file_range(int descriptor, off_t offset, off_t size, unsigned flags) {
  return call(descriptor, SYS_sync_file_range, descriptor, offset, size, flags);
}

int mkdir(const char* path, mode_t mode) noexcept { return call(path, SYS_mkdirat, AT_FDCWD, path, mode); }
int rename(const char* from, const char* to) noexcept {
  return call(from, SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int symlink(const char* target, const char* path) noexcept { return call(path, SYS_symlinkat, target, AT_FDCWD, path); }
int unlink(const char* path) noexcept { return call(path, SYS_unlinkat, AT_FDCWD, path, 0); }

// As on Linux, a failed close releases the descriptor, too.
int close(int descriptor) {
  const bool failed = fails(descriptor);
  const int error = errno;
  const int result = static_cast<int>(::syscall(SYS_close, descriptor));
  if (failed) errno = error;
  return failed ? -1 : result;
}

}  // extern "C"

namespace syncline::io {

FailingCalls::FailingCalls(int at, int error, bool once, const std::string& file) {
  part_of_path = file;
  first = at;
  fault = error;
  only_one = once;
  counted = 0;
}

FailingCalls::~FailingCalls() { counted = -1; }

int FailingCalls::calls() const { return counted; }

WithoutLocks::WithoutLocks() { without_locks = true; }
WithoutLocks::~WithoutLocks() { without_locks = false; }

}  // namespace syncline::io
