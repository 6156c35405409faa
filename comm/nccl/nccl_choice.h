// Which ranks could use NCCL, and whether all of them do: the same decision on every rank, from the same reports.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "comm/nccl/nccl_library.h"
#include "comm/nccl/nccl_options.h"

namespace syncline::comm {

// What one rank reports to the others: plain bytes.
struct NcclAvailability {
  std::uint32_t usable = 0;    // the libraries are there, and a GPU
  std::uint32_t required = 0;  // of the options, as are the next four
  std::uint32_t many_ranks_a_gpu = 0;
  std::uint32_t multicast_forced = 0;
  std::uint64_t settings = 0;  // digest of what has to be equal on all ranks
  std::int32_t version = 0;    // NCCL's: 22809 is 2.28.9
  std::int32_t device = 0;     // CUDA's number, in this process
  std::uint64_t node = 0;      // digest of what tells this node from others
  std::array<char, 32> gpu{};  // its address on the node's bus
  std::array<char, 256> why_not{};
};
static_assert(std::is_trivially_copyable_v<NcclAvailability>);

// Loads the libraries and looks for this rank's GPU: the one with the number of its local rank, or, where the rank sees
// fewer, counted round again. Throws nothing; what is missing stands in why_not. `library` is filled if usable.
NcclAvailability look_for_gpus(const NcclOptions& options, NcclLibrary& library);

struct NcclDecision {
  bool use = false;
  std::string why;  // "NCCL 2.28.9, a GPU a rank", or why not
};

// Of all ranks' reports, in rank order. Throws CommError where NCCL is required and cannot be used, or where the ranks'
// settings differ.
NcclDecision decide_on_nccl(std::span<const NcclAvailability> ranks);

// 22809 -> "2.28.9"
std::string name_nccl_version(int version);

}  // namespace syncline::comm
