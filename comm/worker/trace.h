// The timeline of a job: what makes syncline/timeline.h's recorder of one process a part of it. SYNCLINE_TRACE names
// the folder; docs/timeline.md has the rest.
#pragma once

#include "comm/worker/account.h"
#include "syncline/distributed/communicator.h"

namespace syncline::comm {

// Where SYNCLINE_TRACE is set, begins this rank's timeline, for the time of this communicator of all ranks. Collective,
// because it measures the ranks' clocks. Throws IoError if the folder cannot be written.
void begin_trace(Communicator& communicator);

// For the destructor of a communicator, while it still works: if its time was traced, gathers where the ranks' time
// went, and rank 0 prints it as a line on stderr. `account`: null for a rank alone. `clean`: no error, nothing under
// way; otherwise rank 0 tells what it knows itself. Never throws.
void end_trace(Communicator& communicator, const Account* account, bool clean) noexcept;

}  // namespace syncline::comm
