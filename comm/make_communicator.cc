#include "comm/make_communicator.h"

#include "comm/launch.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/single.h"

namespace syncline::comm {

std::unique_ptr<Communicator> make_communicator(const WorkerOptions& worker) {
  const Launch launch = read_launch_environment();
  if (launch.size == 1) return make_single_communicator();
  MpiOptions options;
  options.worker = worker;
  options.launch = launch;
  return make_mpi_communicator(options);
}

}  // namespace syncline::comm
