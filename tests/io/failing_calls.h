// System calls of the disk that fail on purpose. The test program defines open, write, pwrite, fsync, flock, rename,
// mkdir, symlink, unlink, ftruncate, sync_file_range and close itself, in place of the C library's, also for the
// libraries it uses; they do their work unless a fault is set. What is opened to be read does not count.
#pragma once

#include <string>

namespace syncline::io {

// While it lives, the calls above are counted, and the `at`th one (from 0) and all after it fail with `error`; if
// `once`, only that one. `file`: only calls on files whose path contains it; so threads that write other files do not
// disturb the count. kShortWrite: a write takes half of what it is given, which is no failure. kKill: the process
// ends by SIGKILL in place of the call. One at a time.
class FailingCalls {
 public:
  static constexpr int kShortWrite = -1, kKill = -2;

  FailingCalls(int at, int error, bool once = true, const std::string& file = {});
  ~FailingCalls();
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  // How many there were so far.
  int calls() const;
};

}  // namespace syncline::io
