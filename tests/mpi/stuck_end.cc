// A job whose last rank stays in MPI_Finalize, as with an error of the MPI library; expect_exit.sh checks its end.
#include <mpi.h>
#include <unistd.h>

#include <chrono>

#include "syncline/distributed/make_communicator.h"

// MPI's profiling interface: this function replaces the library's.
extern "C" int MPI_Finalize() {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  while (rank + 1 == size) ::pause();
  return PMPI_Finalize();
}

int main() {
  using namespace std::chrono_literals;
  const auto comm = syncline::comm::make_communicator({.worker = {.stall_limit = 1s, .wait_limit = 3s}});
  comm->barrier({.plan = 1});
}
