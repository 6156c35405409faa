#include "comm/nccl/nccl_options.h"

#include <cstdlib>

namespace syncline::comm {

NcclOptions read_nccl_environment(const Launch& launch, const Getenv& getenv) {
  const auto value_of = [&](const char* name) {
    const char* text = getenv(name);
    return std::string(text == nullptr ? "" : text);
  };
  return {.local_rank = launch.local_rank,
          .nccl_library = value_of("SYNCLINE_NCCL_LIBRARY"),
          .cudart_library = value_of("SYNCLINE_CUDART_LIBRARY"),
          .many_ranks_a_gpu = value_of("NCCL_MULTI_RANK_GPU_ENABLE") == "1",
          .multicast_forced = value_of("NCCL_NVLS_ENABLE") == "1"};
}

NcclOptions read_nccl_environment(const Launch& launch) {
  return read_nccl_environment(launch, [](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace syncline::comm
