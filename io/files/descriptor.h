// System calls shared by all writers of files: a descriptor that closes itself, complete writes, and file size limits
// as errors.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace syncline::io {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int get() const { return number_; }
  // Returns the code of close(2): some file systems report a failed write only there.
  int close() { return ::close(release()); }
  // Passes ownership to the caller.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// A regular file opened for reading; the caller closes the descriptor. Opening never blocks, not even on a FIFO.
struct RegularFile {
  int descriptor = -1;
  std::uint64_t size = 0;
  std::string refused;  // the reason if descriptor is -1
};
RegularFile open_regular(const std::string& path);

// Tries to lock the open file by flock(2), until its descriptor is closed. `operation`: LOCK_EX (alone) or LOCK_SH.
enum class FileLock { kTaken, kHeldByAnother, kUnsupported };  // kUnsupported: some network file systems have no locks
FileLock try_lock(int descriptor, int operation);

// Keeps SIGXFSZ, which write(2) sends to the writing thread, from ending the process; write then returns EFBIG. Blocks
// the signal for this thread only, which leaves the process's signal handlers alone. Throws IoError.
class HoldFileSizeSignal {
 public:
  HoldFileSizeSignal();
  HoldFileSizeSignal(const HoldFileSizeSignal&) = delete;
  HoldFileSizeSignal& operator=(const HoldFileSizeSignal&) = delete;
  ~HoldFileSizeSignal();

 private:
  sigset_t only_, before_;
  bool was_pending_ = false;
};

// Bytes written; fewer than given if `error` (an errno) is not 0.
struct Written {
  std::size_t bytes = 0;
  int error = 0;
};
Written write_all(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes);

// A message for an errno, with a remedy.
std::string reason_of_write(int error);

}  // namespace syncline::io
