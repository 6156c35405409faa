// A communicator over Open MPI (or another MPI-3 library), for all processes of MPI_COMM_WORLD: memory shared within a
// node, messages between nodes (comm/shared/node_wire.h).
//
// MPI is initialised by the first communicator if nobody did, with MPI_THREAD_SERIALIZED: our calls come from changing
// threads, one at a time. A program that initialised MPI itself must have asked for that level, must not call MPI while
// a collective is under way, and finalizes MPI itself. Otherwise the last communicator finalizes it when it dies,
// unless that could hang: after an error, or while an exception unwinds the stack, MPI is left as it is and the
// launcher ends the job. Every communicator has messages of its own (a duplicate of MPI_COMM_WORLD), so making one is a
// collective.
//
// Every return code is checked; an error of MPI throws CommError. Where the ranks of a node cannot share memory (a
// small /dev/shm, a setting), one line says so, and each counts as a node of its own. A rank that is killed makes
// mpirun end the job, and is named before that; one that hangs is named by the stall watch (comm/worker/worker.h).
#pragma once

#include <cstdint>
#include <memory>

#include "comm/worker/worker.h"
#include "syncline/distributed/communicator.h"
#include "syncline/distributed/launch.h"

namespace syncline::comm {

enum class UseNccl : std::uint8_t { kNever, kRequired };

struct MpiOptions {
  WorkerOptions worker = {};
  bool share_memory = true;               // within a node
  WireFormat format = WireFormat::kSame;  // between nodes, for more than 64 KiB of float32
  UseNccl nccl = UseNccl::kNever;         // for large all-reduces: see comm/nccl/with_nccl.h
  bool verbose = false;                   // rank 0 says on stderr why NCCL is used, or not
  // Gathers and broadcasts of more bytes than this go piece by piece, since MPI's counts are ints.
  std::int64_t piece_bytes = 1 << 30;
  // Checked against MPI's own size before any message; see check_launch.
  Launch launch = read_launch_environment();
};

// Whether MPI was initialised, by whomever.
bool mpi_is_initialized();

std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions& options = {});

}  // namespace syncline::comm
