// NcclOptions: what is known about NCCL before it is looked for: the program's wishes and the environment's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "syncline/distributed/launch.h"

namespace syncline::comm {

struct NcclOptions {
  bool required = false;  // NCCL or an error. Otherwise it is used where each rank has a GPU of its own.
  int local_rank = 0;     // picks the GPU
  // Names or paths of the libraries, "" for the usual ones.
  std::string nccl_library = {};
  std::string cudart_library = {};
  bool many_ranks_a_gpu = false;  // NCCL_MULTI_RANK_GPU_ENABLE=1
  bool multicast_forced = false;  // NCCL_NVLS_ENABLE=1

  // A start or a transfer that takes longer is aborted. A little less than the wait limit of the worker, so that the
  // error that says more comes first.
  std::chrono::duration<double> limit{54};
  // How long an abort, which can hang too, is waited for.
  std::chrono::duration<double> abort_limit{2};

  // All-reduces from this size on go by NCCL. They move in pieces, `slots` of them under way at once. Equal on all
  // ranks.
  std::int64_t smallest_bytes = 1 << 20;
  std::int64_t piece_bytes = 4 << 20;
  int slots = 4;

  std::function<void(const std::string&)> tell = {};  // gets one line: what was chosen, and why
};

// Reads SYNCLINE_NCCL_LIBRARY, SYNCLINE_CUDART_LIBRARY and NCCL's own switches.
NcclOptions read_nccl_environment(const Launch& launch, const Getenv& getenv);
NcclOptions read_nccl_environment(const Launch& launch);

}  // namespace syncline::comm
