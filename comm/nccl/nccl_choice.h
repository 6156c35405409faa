// Whether the ranks can use NCCL. Every rank reports what it has, and every rank derives the same answer from the
// reports.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "comm/nccl/nccl_library.h"
#include "comm/nccl/nccl_options.h"

namespace syncline::comm {

// One rank's report to the others: plain bytes.
struct NcclAvailability {
  std::uint32_t usable = 0;            // the libraries and a GPU are available
  std::uint32_t many_ranks_a_gpu = 0;  // from the options, like the next two
  std::uint32_t multicast_forced = 0;
  std::uint64_t settings = 0;  // digest of the options that must be equal on all ranks
  std::int32_t version = 0;    // NCCL's: 22809 is 2.28.9
  std::int32_t device = 0;     // CUDA device number, in this process
  std::uint64_t node = 0;      // digest of the node's identity
  std::array<char, 32> gpu{};  // PCI bus address
  std::array<char, 256> why_not{};
};
static_assert(std::is_trivially_copyable_v<NcclAvailability>);

// Loads the libraries and selects this rank's GPU: its local rank modulo the number of visible GPUs. Throws nothing:
// why_not holds the reason if something is missing. Fills `library` if usable.
NcclAvailability look_for_gpus(const NcclOptions& options, NcclLibrary& library);

// Takes the reports of all ranks, in rank order. Returns "NCCL 2.28.9, one GPU per rank". Throws CommError if NCCL
// cannot be used, DisagreementError if the ranks' settings differ.
std::string check_nccl(std::span<const NcclAvailability> ranks);

// 22809 -> "2.28.9"
std::string name_nccl_version(int version);

}  // namespace syncline::comm
