// Ranks as threads of one process: collectives become ordinary unit tests.
//
// The communicators of one job share a meeting place, which lives until the last of them is gone. Each belongs to one
// rank's thread. The wire is the one of ranks as processes (comm/shared/node_wire.h) over memory of the heap; ranks may
// be told apart into nodes. A communicator that is destroyed has left the job; ranks that still wait for it get
// StallError. Results, errors and time limits are as communicator.h says.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "comm/worker/worker.h"
#include "syncline/distributed/communicator.h"

namespace syncline::comm {

struct LocalOptions {
  std::chrono::duration<double> limit{20};
  std::chrono::duration<double> stall_limit{60};
  // The number of each rank's node; empty: all are on one.
  std::vector<int> node_of_rank = {};
  WireFormat format = WireFormat::kSame;
};

// One communicator a rank, in rank order.
std::vector<std::unique_ptr<Communicator>> make_local_communicators(int size, const LocalOptions& options = {});

// One wire a rank, on one node, for what is built upon a wire. Each is closed by whoever drives it.
std::vector<std::unique_ptr<Wire>> make_local_wires(int size);

// Runs `body` once a rank, each in its own thread, and joins them all. Rethrows the exception that came first; a rank
// that throws leaves the job, so that the others are told. A rank waits at most `limit` for the others.
void spawn_ranks(int size, const std::function<void(Communicator&)>& body, const LocalOptions& options = {});

}  // namespace syncline::comm
