// A thread that starts while this lives takes no signals: they are for the threads that expect them.
#pragma once

#include <signal.h>

#include <cstring>

#include "syncline/error.h"

namespace syncline::io {

class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    const int error = pthread_sigmask(SIG_SETMASK, &all, &before_);
    if (error != 0) fail<IoError>("cannot block signals: ", std::strerror(error));
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace syncline::io
