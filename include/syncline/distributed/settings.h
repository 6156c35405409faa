// Settings: what files of configuration and the environment may say about a communicator (runtime/session/options.h
// reads them).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "syncline/distributed/communicator.h"
#include "syncline/error.h"

namespace syncline::comm {

enum class Transport : std::uint8_t {
  kAuto,    // memory within a node, MPI between nodes
  kShared,  // the same
  kMpi,     // MPI's messages everywhere
  kNccl,    // as kAuto, and NCCL for large all-reduces, or an error
};

struct WorkerOptions {
  std::chrono::duration<double> stall_limit{60};  // a wait() that takes longer says on stderr who has not come
  // And one that takes so long throws StallError; but a program's end (kEndOfProgram) waits for programs that still
  // run: there the time counts from when they were last seen running.
  std::chrono::duration<double> wait_limit{600};
  // Whether large collectives go on while the caller computes. It needs a core to spare: if the computation already
  // uses every core, they cost it more than they hide, and are better left until wait().
  bool background = true;
};

struct Settings {
  std::optional<double> stall_limit;  // seconds
  std::optional<double> wait_limit;   // seconds
  std::optional<bool> background;     // whether transfers go on while the caller computes
  std::optional<Transport> transport;
  std::optional<WireFormat> wire_format;
  std::optional<bool> verbose;  // rank 0 says on stderr how the ranks are joined
};

// By name. They throw ValueError that says what to give instead. Inline: the runtime of one process has no comm.
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
