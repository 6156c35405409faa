// System calls of the disk that fail on purpose. The test program defines write, fsync, rename, symlink, unlink and
// ftruncate itself, in place of the C library's; they do their work unless a fault is set.
#pragma once

namespace syncline::io {

// While it lives, the calls above are counted, and the `at`th one (from 0) and all after it fail with `error`; if
// `once`, only that one. kShortWrite: a write takes half of what it is given, which is no failure. One at a time.
class FailingCalls {
 public:
  static constexpr int kShortWrite = -1;

  FailingCalls(int at, int error, bool once = true);
  ~FailingCalls();
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  // How many there were so far.
  int calls() const;
};

}  // namespace syncline::io
