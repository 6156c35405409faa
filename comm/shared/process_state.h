// How another process of this machine is, by its number. Open MPI tells nobody that a rank was stopped or has died.
#pragma once

#include <sys/types.h>

namespace syncline::comm {

enum class ProcessState {
  kRuns,
  kStopped,  // by a signal or a debugger
  kGone,
};

// Reads /proc; kRuns if that cannot be told. Safe to call from any thread.
ProcessState process_state(pid_t process) noexcept;

}  // namespace syncline::comm
