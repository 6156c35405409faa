#include "comm/nccl/nccl_choice.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/digest.h"
#include "syncline/error.h"

namespace syncline::comm {
namespace {

constexpr int kSharesGpus = 23000;  // the first version that allows several ranks on one GPU

// Equal for all processes of one running system, containers included; different on any other system.
std::uint64_t digest_of_node() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name(std::istreambuf_iterator<char>(file), {});
  if (name.empty()) {
    name.resize(256);
    if (gethostname(name.data(), name.size() - 1) != 0) name = "a node without a name";
  }
  return digest_bytes(name.data(), name.size());
}

template <std::size_t kSize>
void place(std::array<char, kSize>& place, const std::string& text) {
  std::fill(std::copy_n(text.begin(), std::min(text.size(), kSize - 1), place.begin()), place.end(), '\0');
}

void check_cuda(const NcclLibrary& cuda, int code, const char* call) {
  if (code != kCudaSuccess)
    fail<CommError>("NCCL: ", call, ": ", cuda.cudaGetErrorName(code), ": ", cuda.cudaGetErrorString(code), " (code ",
                    code, ")");
}

void look(const NcclOptions& options, NcclLibrary& library, NcclAvailability& found) {
  load_cudart(library, options.cudart_library);
  int gpus = 0;
  check_cuda(library, library.cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  if (gpus < 1) fail<CommError>("NCCL: no GPU is visible to this process");
  found.device = options.local_rank % gpus;
  check_cuda(library, library.cudaDeviceGetPCIBusId(found.gpu.data(), static_cast<int>(found.gpu.size()), found.device),
             "cudaDeviceGetPCIBusId");
  load_nccl(library, options.nccl_library);
  if (const int code = library.ncclGetVersion(&found.version); code != kNcclSuccess)
    fail<CommError>("NCCL: ncclGetVersion: ", library.ncclGetErrorString(code), " (code ", code, ")");
  found.usable = 1;
}

bool same_gpu(const NcclAvailability& a, const NcclAvailability& b) { return a.node == b.node && a.gpu == b.gpu; }

// The reason why the ranks cannot use NCCL together, or "".
std::string find_obstacle(std::span<const NcclAvailability> ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].usable == 0) return join_text("rank ", r, ": ", ranks[r].why_not.data());
    if (ranks[r].version != ranks[0].version)
      return join_text("rank 0 has NCCL ", name_nccl_version(ranks[0].version), ", rank ", r, " has NCCL ",
                       name_nccl_version(ranks[r].version), "; install one version on all nodes");
  }
  return "";
}

// "ranks 0 and 1 share the GPU 0000:01:00.0", or "".
std::string find_shared_gpu(std::span<const NcclAvailability> ranks) {
  for (std::size_t b = 1; b < ranks.size(); ++b)
    for (std::size_t a = 0; a < b; ++a)
      if (same_gpu(ranks[a], ranks[b]))
        return join_text("ranks ", a, " and ", b, " share the GPU ", ranks[a].gpu.data(), " of one node");
  return "";
}

// The reason why NCCL would refuse several ranks on one GPU, or "".
std::string find_refusal_to_share(std::span<const NcclAvailability> ranks) {
  if (ranks[0].version < kSharesGpus)
    return "NCCL " + name_nccl_version(ranks[0].version) +
           " supports one rank per GPU; 2.30 is the first version that supports more";
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].many_ranks_a_gpu == 0)
      return join_text("NCCL supports this only with NCCL_MULTI_RANK_GPU_ENABLE=1, which rank ", r, " does not set");
    if (ranks[r].multicast_forced != 0)
      return join_text("NCCL does not support this with NCCL_NVLS_ENABLE=1, which rank ", r, " sets: unset it");
  }
  return "";
}

}  // namespace

std::string name_nccl_version(int version) {
  return join_text(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

NcclAvailability look_for_gpus(const NcclOptions& options, NcclLibrary& library) {
  NcclAvailability found;
  found.many_ranks_a_gpu = options.many_ranks_a_gpu ? 1 : 0;
  found.multicast_forced = options.multicast_forced ? 1 : 0;
  const std::array settings{options.smallest_bytes, options.piece_bytes, std::int64_t{options.slots}};
  found.settings = digest_bytes(settings.data(), sizeof settings);
  found.node = digest_of_node();
  try {
    look(options, library, found);
  } catch (const CommError& error) {
    place(found.why_not, error.what());
  }
  return found;
}

std::string check_nccl(std::span<const NcclAvailability> ranks) {
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].settings != ranks[0].settings)
      fail<DisagreementError>("NCCL: ranks 0 and ", r, " have different piece sizes; give all ranks the same options");
  std::string obstacle = find_obstacle(ranks);
  std::string shared;
  if (obstacle.empty()) shared = find_shared_gpu(ranks);
  if (!shared.empty()) {
    const std::string refusal = find_refusal_to_share(ranks);
    if (!refusal.empty()) obstacle = shared + "; " + refusal;
  }
  if (!obstacle.empty())
    fail<CommError>("NCCL: cannot be used: ", obstacle,
                    "; start as many ranks as there are GPUs, or set SYNCLINE_TRANSPORT=auto");
  return "NCCL " + name_nccl_version(ranks[0].version) + (shared.empty() ? ", one GPU per rank" : "; " + shared);
}

}  // namespace syncline::comm
