// Makes the communicator that fits how this process was started; called by main.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "syncline/distributed/communicator.h"
#include "syncline/distributed/settings.h"

#pragma GCC visibility push(default)
namespace syncline::comm {

struct CommOptions {
  WorkerOptions worker = {};
  Transport transport = Transport::kAuto;
  WireFormat format = WireFormat::kSame;  // between nodes, for more than 64 KiB of float32
  bool verbose = false;                   // rank 0 prints on stderr how the ranks are connected
};

// For one of several ranks: a communicator over memory, MPI and NCCL, depending on where the ranks are. Otherwise a
// communicator of size 1, without touching MPI. Throws CommError, before any message, if the launcher and MPI disagree.
std::unique_ptr<Communicator> make_communicator(const CommOptions& options = {});

// Options for ranks of `threads_a_rank` compute threads. `settings` override.
CommOptions options_for_threads(int threads_a_rank, const Settings& settings = {});

// For main: makes the communicator and runs `job` on it. If `job` throws, ends all ranks (end_job, which prints
// "program: rank 1: what"). If there is no communicator, prints the error. Returns the exit code of the process.
int run_job(std::string_view program, const CommOptions& options, const std::function<void(Communicator&)>& job);

}  // namespace syncline::comm
#pragma GCC visibility pop
