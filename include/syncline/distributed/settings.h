// Options of a communicator, and those of them that configuration files and the environment may set
// (runtime/session/options.h reads them).
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

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

// How the nodes of a collective exchange messages. Both give the same bits.
enum class Algorithm : std::uint8_t {
  kDirect,  // each node sends to every other node, in one round
  kHalves,  // the two halves of larger and larger groups of nodes, in log2(nodes) rounds
};

// The algorithms of collectives between nodes, by the number of nodes and the bytes of a message. The first row that
// fits counts; if none does, kHalves. All ranks must have the same table.
struct AlgorithmTable {
  static constexpr int kAnyNodes = std::numeric_limits<int>::max();
  static constexpr std::int64_t kAnyBytes = std::numeric_limits<std::int64_t>::max();
  // A message is a share of the collective's bytes: the bytes, divided by the number of nodes, and by that of the ranks
  // of a node, as most ranks' nodes have them.
  struct Row {
    int nodes = kAnyNodes;           // up to this number
    std::int64_t bytes = kAnyBytes;  // of a message, up to this number
    Algorithm algorithm = Algorithm::kHalves;
    friend bool operator==(const Row&, const Row&) = default;
  };
  // How nodes agree on a collective, and exchange the values of a small one. By the number of nodes alone.
  std::vector<Row> meetings = {{.nodes = 4, .algorithm = Algorithm::kDirect}};
  // Large reductions and broadcasts.
  std::vector<Row> sums = {{.nodes = 8, .algorithm = Algorithm::kDirect}};
  // Large gathers. Halves pack a node's result and send half of it in one message, so a gather of which some rank would
  // exchange more bytes than this is direct whatever the table says.
  static constexpr std::int64_t kMostPacked = 16 << 20;
  std::vector<Row> gathers = {{.nodes = 63, .algorithm = Algorithm::kDirect},
                              {.bytes = 2047, .algorithm = Algorithm::kHalves},
                              {.algorithm = Algorithm::kDirect}};
  friend bool operator==(const AlgorithmTable&, const AlgorithmTable&) = default;
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
  std::optional<AlgorithmTable> algorithms;
  std::optional<bool> verbose;  // rank 0 prints on stderr how the ranks are connected
};

struct CommOptions {
  WorkerOptions worker = {};
  Transport transport = Transport::kAuto;
  WireFormat format = WireFormat::kSame;  // between nodes, for more than 64 KiB of float32
  AlgorithmTable algorithms = {};         // between nodes
  bool verbose = false;                   // rank 0 prints on stderr how the ranks are connected
};

// Options for ranks of `threads_a_rank` compute threads. `settings` override.
inline CommOptions options_for_threads(int threads_a_rank, const Settings& settings = {}) {
  CommOptions options;
  options.worker.threads = threads_a_rank;
  if (settings.stall_limit) options.worker.stall_limit = std::chrono::duration<double>(*settings.stall_limit);
  if (settings.wait_limit) options.worker.wait_limit = std::chrono::duration<double>(*settings.wait_limit);
  if (settings.background) options.worker.background = *settings.background;
  if (settings.transport) options.transport = *settings.transport;
  if (settings.wire_format) options.format = *settings.wire_format;
  if (settings.algorithms) options.algorithms = *settings.algorithms;
  if (settings.verbose) options.verbose = *settings.verbose;
  return options;
}

// Parse a name. They throw ValueError that lists the valid names.
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
