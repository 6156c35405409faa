// The state of another process of this machine, by process id. Open MPI does not report that a rank was stopped or has
// died.
#pragma once

#include <sys/types.h>

namespace syncline::comm {

enum class ProcessState {
  kRuns,
  kStopped,  // by a signal or a debugger
  kGone,
};

// Reads /proc; returns kRuns if the state is unknown. Any thread may call it.
ProcessState process_state(pid_t process) noexcept;

}  // namespace syncline::comm
