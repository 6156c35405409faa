// What every writer of files needs of the system: a descriptor that closes itself, writes that are whole, and limits on
// file sizes that are errors.
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
  // Closes and returns close's code: some file systems report a failed write only here.
  int close() { return ::close(release()); }
  // The caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// A file to read; the caller closes the descriptor. Never blocks, also where somebody put a FIFO.
struct RegularFile {
  int descriptor = -1;
  std::uint64_t size = 0;
  std::string refused;  // why there is no descriptor
};
RegularFile open_regular(const std::string& path);

// Keeps SIGXFSZ, which write(2) sends to the writing thread, from ending the process; write then returns EFBIG.
// Blocking it for this thread leaves the process's own handling of signals alone. Throws IoError.
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

// How much was written; with an error less than what was given.
struct Written {
  std::size_t bytes = 0;
  int error = 0;
};
Written write_whole(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes);

// For people, with what to do about it.
std::string reason_of_write(int error);

}  // namespace syncline::io
