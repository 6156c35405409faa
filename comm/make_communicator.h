// The communicator that fits how this process was started; what a main calls.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/worker.h"

namespace syncline::comm {

// Started as one of several ranks: over MPI. Otherwise a communicator of size 1, without touching MPI. Throws CommError
// if the launcher and MPI do not fit together, before any message.
std::unique_ptr<Communicator> make_communicator(const WorkerOptions& options = {});

// Options for ranks that compute with so many threads each: transfers go on in the background only if that leaves this
// node a processor to spare. Otherwise they would take more time from the computation than they hide.
// `settings` override.
WorkerOptions options_for_threads(int threads_a_rank, const Settings& settings = {});

}  // namespace syncline::comm
