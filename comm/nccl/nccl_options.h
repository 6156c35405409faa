// NcclOptions: NCCL settings of the program and the environment, read before the libraries are loaded.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "syncline/distributed/launch.h"

namespace syncline::comm {

struct NcclOptions {
  int local_rank = 0;  // selects the GPU
  // Names or paths of the libraries; "": the usual ones.
  std::string nccl_library = {};
  std::string cudart_library = {};
  bool many_ranks_a_gpu = false;  // NCCL_MULTI_RANK_GPU_ENABLE=1
  bool multicast_forced = false;  // NCCL_NVLS_ENABLE=1

  // Deadline of a start or a transfer, which is then aborted. make_mpi_communicator sets 0.9 of the worker's
  // wait_limit, so that NCCL's more detailed error comes first.
  std::chrono::duration<double> limit{54};
  // How long to wait for an abort, which can hang too.
  std::chrono::duration<double> abort_limit{2};

  // NCCL does all-reduces of at least smallest_bytes. They move in pieces, with `slots` pieces in flight. Equal on all
  // ranks.
  std::int64_t smallest_bytes = 1 << 20;
  std::int64_t piece_bytes = 4 << 20;
  int slots = 4;

  std::function<void(const std::string&)> tell = {};  // gets one line about a problem that ends nothing
  bool tells_choice = true;                           // and one line about the choice and its reason
};

// Reads SYNCLINE_NCCL_LIBRARY, SYNCLINE_CUDART_LIBRARY and NCCL's own switches.
NcclOptions read_nccl_environment(const Launch& launch, const Getenv& getenv);
NcclOptions read_nccl_environment(const Launch& launch);

}  // namespace syncline::comm
