// Settings: what files of configuration and the environment may say about a communicator (runtime/options.h reads
// them).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "comm/communicator.h"

namespace syncline::comm {

enum class Transport : std::uint8_t {
  kAuto,    // memory within a node, MPI between nodes; NCCL for large all-reduces where each rank has a GPU of its own
  kShared,  // the same without NCCL
  kMpi,     // MPI's messages everywhere
  kNccl,    // NCCL or an error
};

struct Settings {
  std::optional<double> stall_limit;  // seconds
  std::optional<double> wait_limit;   // seconds
  std::optional<bool> background;     // whether transfers go on while the caller computes
  std::optional<Transport> transport;
  std::optional<WireFormat> wire_format;
  std::optional<bool> verbose;  // rank 0 says on stderr how the ranks are joined
};

// By name: auto, shared, mpi, nccl; float32, float16, bfloat16. They throw ValueError that says what to give instead.
Transport parse_transport(std::string_view name);
WireFormat parse_wire_format(std::string_view name);

}  // namespace syncline::comm
