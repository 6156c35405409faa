// BlockSignals: blocks all signals of the calling thread while it lives. Threads started meanwhile inherit the mask, so
// signal handlers run on the program's own threads. The constructor throws Error.
#pragma once

#include <signal.h>

#include <cstring>

#include "syncline/error.h"

namespace syncline {

class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    const int error = pthread_sigmask(SIG_SETMASK, &all, &before_);
    if (error != 0) fail<Error>("cannot block signals: ", std::strerror(error));
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace syncline
