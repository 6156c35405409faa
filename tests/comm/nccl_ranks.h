// Ranks as threads, with large all-reduces over the stand-in for NCCL.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/nccl/nccl_options.h"
#include "comm/worker/worker.h"
#include "syncline/distributed/communicator.h"

namespace syncline::comm {

// The stand-in as NCCL, with small pieces, so that little data makes many pieces.
NcclOptions stand_in_options();

struct RankEnd {
  std::string error;   // "" if there was none
  bool comm = false;   // the error is a CommError
  bool stall = false;  // the error is a StallError
  std::string told;    // the wire's reports, one a line
};

// Starts NCCL on each rank's wire and runs `body` with a communicator over it, each rank in its own thread.
std::vector<RankEnd> run_nccl_ranks(int size, const NcclOptions& options,
                                    const std::function<void(Communicator&)>& body,
                                    const WorkerOptions& worker = {.wait_limit = std::chrono::seconds(20)});

// All-reduces `count` floats and checks the sums. The second has them in new shared memory.
void check_sum(Communicator& comm, std::int64_t count);
void check_shared_sum(Communicator& comm, std::int64_t count);

}  // namespace syncline::comm
