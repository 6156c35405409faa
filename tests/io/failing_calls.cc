#include "tests/io/failing_calls.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

namespace {

std::atomic<int> counted{-1};  // negative while nothing is to fail
std::atomic<int> first{0}, fault{0};
std::atomic<bool> only_one{true};

// The fault of the call that now begins, or 0.
int next_fault() {
  int number = counted.load();
  do {
    if (number < 0) return 0;
  } while (!counted.compare_exchange_weak(number, number + 1));
  return number == first || (number > first && !only_one) ? fault.load() : 0;
}

bool fails() {
  const int error = next_fault();
  if (error > 0) errno = error;
  return error > 0;
}

}  // namespace

extern "C" {

ssize_t write(int descriptor, const void* bytes, size_t size) {
  const int error = next_fault();
  if (error > 0) errno = error;
  if (error > 0) return -1;
  if (error == syncline::io::FailingCalls::kShortWrite) size = (size + 1) / 2;
  return ::syscall(SYS_write, descriptor, bytes, size);
}

int fsync(int descriptor) { return fails() ? -1 : static_cast<int>(::syscall(SYS_fsync, descriptor)); }

int ftruncate(int descriptor, off_t size) noexcept {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_ftruncate, descriptor, size));
}

int rename(const char* from, const char* to) noexcept {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int symlink(const char* target, const char* path) noexcept {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_symlinkat, target, AT_FDCWD, path));
}

int unlink(const char* path) noexcept {
  return fails() ? -1 : static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

}  // extern "C"

namespace syncline::io {

FailingCalls::FailingCalls(int at, int error, bool once) {
  first = at;
  fault = error;
  only_one = once;
  counted = 0;
}

FailingCalls::~FailingCalls() { counted = -1; }

int FailingCalls::calls() const { return counted; }

}  // namespace syncline::io
