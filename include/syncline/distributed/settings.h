// Settings: communicator options that configuration files and the environment may set (runtime/session/options.h reads
// them).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "syncline/distributed/communicator.h"
#include "syncline/error.h"

#pragma GCC visibility push(default)
namespace syncline::comm {

enum class Transport : std::uint8_t {
  kAuto,    // memory within a node, MPI between nodes
  kShared,  // the same
  kMpi,     // MPI's messages everywhere
  kNccl,    // as kAuto, with NCCL for large all-reduces; an error if NCCL is unavailable
};

struct WorkerOptions {
  // Both limits are of the time without progress: a transfer that moves may take longer.
  std::chrono::duration<double> stall_limit{60};  // a longer wait() reports the missing ranks on stderr
  // A longer wait() throws StallError. At the end of a program (kEndOfProgram) the time counts from when the other
  // programs were last seen running.
  std::chrono::duration<double> wait_limit{600};
  // Transfer large collectives while the caller computes. This needs a processor that the ranks' computation leaves
  // free; otherwise background transfers cost more than they hide, and wait() should do them. Empty: if the node has
  // one beside `threads` for each of its ranks.
  std::optional<bool> background = {};
  int threads = 0;  // compute threads of each rank; 0: unknown, so transfers run in the background
};

struct Settings {
  std::optional<double> stall_limit;  // seconds
  std::optional<double> wait_limit;   // seconds
  std::optional<bool> background;     // transfer while the caller computes
  std::optional<Transport> transport;
  std::optional<WireFormat> wire_format;
  std::optional<bool> verbose;  // rank 0 prints on stderr how the ranks are connected
};

// Parse a name. They throw ValueError that lists the valid names. Inline, because the single-process runtime does not
// link comm.
inline Transport parse_transport(std::string_view name) {
  if (name == "auto") return Transport::kAuto;
  if (name == "shared") return Transport::kShared;
  if (name == "mpi") return Transport::kMpi;
  if (name == "nccl") return Transport::kNccl;
  fail("give auto, shared, mpi or nccl");
}

inline WireFormat parse_wire_format(std::string_view name) {
  if (name == "float32") return WireFormat::kSame;
  if (name == "float16") return WireFormat::kFloat16;
  if (name == "bfloat16") return WireFormat::kBfloat16;
  fail("give float32, float16 or bfloat16");
}

}  // namespace syncline::comm
#pragma GCC visibility pop
