// Communicators for ranks that are threads of one process; unit tests run collectives on them without MPI.
//
// The communicators of one job share a LocalJob, which lives until the last of them is destroyed. One thread drives
// each communicator. They use the wire of MPI processes (comm/shared/node_wire.h) over heap memory. LocalOptions can
// divide the ranks into nodes. A destroyed communicator leaves the job; ranks that still wait for it throw StallError.
// communicator.h defines results, errors and time limits.
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
  // The node number of each rank; empty: all ranks are on one node.
  std::vector<int> node_of_rank = {};
  WireFormat format = WireFormat::kSame;
  AlgorithmTable algorithms = {};
};

// Returns one communicator per rank, in rank order.
std::vector<std::unique_ptr<Communicator>> make_local_communicators(int size, const LocalOptions& options = {});

// Returns one wire per rank, for code that is built on a wire. `node_of_rank` as in LocalOptions, by node. The caller
// must close each wire.
std::vector<std::unique_ptr<Wire>> make_local_wires(int size, std::vector<int> node_of_rank = {});

// Runs `body` once per rank, each in its own thread, and joins all threads. A rank that throws leaves the job, so its
// peers get RankGone. Rethrows the first exception, RankGone only if there is no other. A rank waits at most `limit`
// for the others.
void spawn_ranks(int size, const std::function<void(Communicator&)>& body, const LocalOptions& options = {});

}  // namespace syncline::comm
