// A communicator over Open MPI (or another MPI-3 library) for all processes of MPI_COMM_WORLD. It uses shared memory
// within a node and messages between nodes (comm/shared/node_wire.h).
//
// If the program has not initialised MPI, the first communicator does, with MPI_THREAD_SERIALIZED: several threads call
// MPI, one at a time. A program that initialises MPI itself must ask for that level, must not call MPI during a
// collective, and must finalize MPI. Otherwise the destructor of the last communicator finalizes MPI. After an error,
// or during stack unwinding, MPI_Finalize could hang: the destructor skips it, and the launcher ends the job. Every
// communicator duplicates MPI_COMM_WORLD for its own messages, so construction is collective.
//
// Every return code is checked; an MPI error throws CommError. If the ranks of a node cannot share memory (a small
// /dev/shm, a setting), one line on stderr says so, and each rank counts as a node of its own. If a rank is killed, its
// peers name it, and mpirun ends the job. Worker::wait (comm/worker/worker.h) names a rank that hangs.
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
  AlgorithmTable algorithms = {};         // between nodes
  UseNccl nccl = UseNccl::kNever;         // for large all-reduces: see comm/nccl/with_nccl.h
  bool verbose = false;                   // rank 0 prints on stderr whether NCCL is used, and why
  // Checked against MPI's size before the first message; see check_launch.
  Launch launch = read_launch_environment();
};

std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions& options = {});

}  // namespace syncline::comm
