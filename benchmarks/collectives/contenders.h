// The contenders of benchmarks/allreduce: ways to sum a buffer of float32 over the ranks, in place; and a gather. The
// source includes mpi.h, which otherwise only comm/mpi may do: the peer and the bare loop must not contain code of
// Syncline.
//
// All calls are collective: every rank makes the same contenders and the same calls in the same order, from one thread.
// Destroy contenders before the communicator. Throws CommError.
#pragma once

#include <cstdint>
#include <memory>

#include "syncline/distributed/communicator.h"

namespace syncline::benchmarks {

class Contender {
 public:
  virtual ~Contender() = default;
  virtual float* data() = 0;                  // of the size given at construction; valid as long as the contender
  virtual void call(std::int64_t count) = 0;  // of the first `count` elements
};

// Syncline's all-reduce, of a buffer in the communicator's shared memory (if it has any), like buckets.
std::unique_ptr<Contender> make_syncline(comm::Communicator& comm, std::int64_t bytes);

// Syncline's all-reduce, of a buffer in ordinary memory, like arrays of a caller.
std::unique_ptr<Contender> make_copied(comm::Communicator& comm, std::int64_t bytes);

// Syncline's gather, of equal parts of a buffer in the communicator's shared memory (if it has any).
std::unique_ptr<Contender> make_gather(comm::Communicator& comm, std::int64_t bytes);

// One MPI_Allreduce over ordinary memory, with MPI's own choice of algorithm.
std::unique_ptr<Contender> make_mpi(std::int64_t bytes);

// The limit of one node: all buffers are in an MPI shared window, and between two barriers each rank sums its slice of
// all buffers and writes the sum to all. Null if the ranks are on several nodes or the window does not fit.
std::unique_ptr<Contender> make_window(std::int64_t bytes);

void barrier();
// The maximum over the ranks, on every rank.
double largest(double value);

}  // namespace syncline::benchmarks
