// The timeline of a job: combines the per-process recorders of syncline/timeline.h. SYNCLINE_TRACE names the folder;
// see docs/timeline.md.
#pragma once

#include "comm/worker/wait_stats.h"
#include "syncline/distributed/communicator.h"

namespace syncline::comm {

// Starts this rank's timeline if SYNCLINE_TRACE is set and no other communicator is traced. It lasts as long as this
// communicator, which must have all ranks. Collective, because it measures the ranks' clocks. Throws IoError if the
// folder cannot be written.
void begin_trace(Communicator& communicator);

// For the destructor of a communicator that still works. If the communicator was traced, gathers where the ranks' time
// went; rank 0 prints it as a line on stderr. `stats`: null for a single rank. `clean`: no error, nothing under way;
// otherwise rank 0 prints only its own times. Never throws.
void end_trace(Communicator& communicator, const WaitStats* stats, bool clean) noexcept;

}  // namespace syncline::comm
