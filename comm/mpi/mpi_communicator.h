// A communicator over Open MPI (or another MPI-3 library), for all processes of MPI_COMM_WORLD.
//
// MPI is initialised by the first communicator if nobody did, with MPI_THREAD_SERIALIZED: our calls come from changing
// threads, one at a time. A program that initialised MPI itself must have asked for that level, must not call MPI while
// a collective is under way, and finalizes MPI itself. Otherwise the last communicator finalizes it when it dies,
// unless that could hang: after an error, or while an exception unwinds the stack, MPI is left as it is and the
// launcher ends the job. Every communicator has messages of its own (a duplicate of MPI_COMM_WORLD), so making one is a
// collective.
//
// Every return code is checked; an error of MPI, ranks that disagree, and a wait beyond the limit throw CommError. A
// rank that is killed makes mpirun end the job; a rank that hangs is seen by the limit only.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/communicator.h"
#include "comm/launch.h"
#include "comm/worker.h"

namespace syncline::comm {

struct MpiOptions {
  WorkerOptions worker = {};
  // Large transfers go in pieces that stay in the cache: from 64 MiB on three times as fast as one call.
  std::int64_t piece_bytes = 1 << 20;
  // A gather of more bytes than this goes rank by rank, since MPI's offsets are ints.
  std::int64_t gather_bytes = 1 << 30;
  // Checked against MPI's own size before any message; see check_launch.
  Launch launch = read_launch_environment();
};

// Whether MPI was initialised, by whomever.
bool mpi_is_initialized();

std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions& options = {});

}  // namespace syncline::comm
