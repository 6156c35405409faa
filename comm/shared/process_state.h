// The state of another process of this machine. Open MPI does not report that a rank was stopped or has died.
#pragma once

#include <cstdint>

namespace syncline::comm {

enum class ProcessState {
  kRuns,
  kStopped,  // by a signal or a debugger
  kGone,
};

// Identifies a process. An id alone does not: the system reuses ids, and a container has ids of its own.
struct ProcessName {
  std::uint64_t id = 0;
  std::uint64_t start = 0;  // in the system's ticks since it booted; 0: unknown
  std::uint64_t space = 0;  // the process namespace, in which the id holds; 0: unknown, or /proc shows another one
  friend bool operator==(const ProcessName&, const ProcessName&) = default;
};

// The calling process. Reads /proc.
ProcessName this_process() noexcept;
// Reads /proc. Returns kRuns if the state is unknown, and for a process whose namespace is unknown or not `observer`'s.
// Any thread may call it.
ProcessState process_state(const ProcessName& process, const ProcessName& observer) noexcept;

}  // namespace syncline::comm
