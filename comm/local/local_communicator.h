// Ranks as threads of one process: collectives become ordinary unit tests.
//
// The communicators of one job share a meeting place, which lives until the last of them is gone. Each belongs to one
// rank's thread. Sums run in rank order: ((r0 + r1) + r2) + ... A communicator that is destroyed has left the job;
// ranks that still wait for it get CommError. Results, errors and time limits are as communicator.h says.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/worker.h"

namespace syncline::comm {

inline constexpr std::chrono::seconds kLocalLimit{20};

// One communicator a rank, in rank order.
std::vector<std::unique_ptr<Communicator>> make_local_communicators(int size,
                                                                    std::chrono::duration<double> limit = kLocalLimit);

// One wire a rank, for what is built upon a wire. Each is closed by whoever drives it.
std::vector<std::unique_ptr<Wire>> make_local_wires(int size);

// Runs `body` once a rank, each in its own thread, and joins them all. Rethrows the exception that came first; a rank
// that throws leaves the job, so that the others are told. A rank waits at most `limit` for the others.
void spawn_ranks(int size, const std::function<void(Communicator&)>& body,
                 std::chrono::duration<double> limit = kLocalLimit);

}  // namespace syncline::comm
