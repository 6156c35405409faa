// Disk system calls that fail on purpose. The test program defines open, write, pwrite, fsync, flock, rename, mkdir,
// symlink, unlink, ftruncate, sync_file_range and close. They replace the C library's functions, also in the libraries
// that the program uses, and work normally unless a fault is set. open() of a regular file for reading does not count.
#pragma once

#include <string>

namespace syncline::io {

// Counts the calls above during its lifetime. Call number `at` (from 0) fails with `error`; unless `once`, all later
// calls fail, too. `file`: only calls on files whose path contains it count, so threads that write other files do not
// disturb the count. kShortWrite: a write accepts half of its bytes, which is not a failure. kKill: SIGKILL ends the
// process instead of the call. At most one object may exist at a time.
class FailingCalls {
 public:
  static constexpr int kShortWrite = -1, kKill = -2;

  FailingCalls(int at, int error, bool once = true, const std::string& file = {});
  ~FailingCalls();
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  // The number of calls so far.
  int calls() const;
};

// During its lifetime every flock fails with ENOLCK, as on a file system without locks.
class WithoutLocks {
 public:
  WithoutLocks();
  ~WithoutLocks();
  WithoutLocks(const WithoutLocks&) = delete;
  WithoutLocks& operator=(const WithoutLocks&) = delete;
};

}  // namespace syncline::io
