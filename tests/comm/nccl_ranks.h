// Ranks as threads whose large all-reduces go by NCCL, or rather by the stand-in.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/nccl/nccl_options.h"
#include "comm/worker/worker.h"
#include "syncline/distributed/communicator.h"

namespace syncline::comm {

// Small pieces, so that little data make many; NCCL is required, and is the stand-in.
NcclOptions stand_in_options();

struct RankEnd {
  std::string error;   // "" if there was none
  bool comm = false;   // it was a CommError,
  bool stall = false;  // and a StallError
  std::string told;    // what the wire told, line by line
};

// Starts NCCL on each rank's wire and runs `body` with a communicator over it, each rank in its own thread.
std::vector<RankEnd> run_nccl_ranks(int size, const NcclOptions& options,
                                    const std::function<void(Communicator&)>& body,
                                    const WorkerOptions& worker = {.wait_limit = std::chrono::seconds(20)});

// An all-reduce of `count` floats that is checked.
void check_sum(Communicator& comm, std::int64_t count);

}  // namespace syncline::comm
