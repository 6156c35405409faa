// What benchmarks/allreduce times: ways to sum a buffer of float32 over the ranks, in place. Raw MPI is used here,
// which the rest of the program may not: the peer and the bare loop are to have nothing of ours in them.
//
// Every rank makes the same contenders in the same order and calls the same; one thread. They are destroyed before the
// communicator. Throws CommError.
#pragma once

#include <cstdint>
#include <memory>

#include "syncline/distributed/communicator.h"

namespace syncline::benchmarks {

class Contender {
 public:
  virtual ~Contender() = default;
  virtual float* data() = 0;  // owned by the contender; as many bytes as it was made for
  virtual void all_reduce(std::int64_t count) = 0;
};

// In the communicator's own memory, where buckets lie, if it has any.
std::unique_ptr<Contender> make_syncline(comm::Communicator& comm, std::int64_t bytes);

// In ordinary memory, as what a program hands over may lie.
std::unique_ptr<Contender> make_copied(comm::Communicator& comm, std::int64_t bytes);

// One MPI_Allreduce over ordinary memory, with MPI's own choice of algorithm.
std::unique_ptr<Contender> make_mpi(std::int64_t bytes);

// What is possible on one node: all buffers lie in an MPI shared window, and between two barriers each rank adds its
// slice of all buffers and writes the sum to all. Null if the ranks are on several nodes, or the window does not fit.
std::unique_ptr<Contender> make_window(std::int64_t bytes);

void barrier();
// The largest of the ranks' values, on all of them.
double largest(double value);

}  // namespace syncline::benchmarks
