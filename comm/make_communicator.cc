#include "comm/make_communicator.h"

#include <thread>

#include "comm/launch.h"
#include "comm/mpi/mpi_communicator.h"
#include "comm/single.h"
#include "comm/trace.h"

namespace syncline::comm {

namespace {

std::unique_ptr<Communicator> make(const WorkerOptions& worker) {
  const Launch launch = read_launch_environment();
  if (launch.size == 1) return make_single_communicator();
  MpiOptions options;
  options.worker = worker;
  options.launch = launch;
  return make_mpi_communicator(options);
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const WorkerOptions& worker) {
  std::unique_ptr<Communicator> communicator = make(worker);
  begin_trace(*communicator);
  return communicator;
}

WorkerOptions options_for_threads(int threads_a_rank, const Settings& settings) {
  const int busy = read_launch_environment().local_size * threads_a_rank;
  WorkerOptions options;
  options.background = settings.background.value_or(busy < static_cast<int>(std::thread::hardware_concurrency()));
  if (settings.wait_limit) options.wait_limit = std::chrono::duration<double>(*settings.wait_limit);
  return options;
}

}  // namespace syncline::comm
