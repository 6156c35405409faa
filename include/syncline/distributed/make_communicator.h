// The communicator that fits how this process was started; what a main calls.
#pragma once

#include <memory>

#include "syncline/distributed/communicator.h"
#include "syncline/distributed/settings.h"

namespace syncline::comm {

struct CommOptions {
  WorkerOptions worker = {};
  Transport transport = Transport::kAuto;
  WireFormat format = WireFormat::kSame;  // between nodes, for more than 64 KiB of float32
  bool verbose = false;                   // rank 0 says on stderr how the ranks are joined
};

// Started as one of several ranks: over memory, MPI and NCCL, as the ranks' places allow. Otherwise a communicator of
// size 1, without touching MPI. Throws CommError if the launcher and MPI do not fit together, before any message.
std::unique_ptr<Communicator> make_communicator(const CommOptions& options = {});

// Options for ranks that compute with so many threads each: transfers go on in the background only if that leaves this
// node a processor to spare. Otherwise they would take more time from the computation than they hide.
// `settings` override.
CommOptions options_for_threads(int threads_a_rank, const Settings& settings = {});

}  // namespace syncline::comm
