#include "syncline/distributed/make_communicator.h"

#include <cstdio>

#include "comm/mpi/mpi_communicator.h"
#include "comm/single.h"
#include "comm/worker/trace.h"
#include "syncline/distributed/ending.h"
#include "syncline/distributed/exit_codes.h"
#include "syncline/distributed/launch.h"

namespace syncline::comm {
namespace {

std::unique_ptr<Communicator> make(const CommOptions& options) {
  const Launch launch = read_launch_environment();
  if (launch.size == 1) return make_single_communicator();
  MpiOptions mpi;
  mpi.worker = options.worker;
  mpi.share_memory = options.transport != Transport::kMpi;
  mpi.format = options.format;
  mpi.algorithms = options.algorithms;
  mpi.nccl = options.transport == Transport::kNccl ? UseNccl::kRequired : UseNccl::kNever;
  mpi.verbose = options.verbose;
  mpi.launch = launch;
  return make_mpi_communicator(mpi);
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const CommOptions& options) {
  std::unique_ptr<Communicator> communicator = make(options);
  if (options.verbose && communicator->rank() == 0)
    std::fprintf(stderr, "syncline: %s\n", communicator->describe().c_str());
  begin_trace(*communicator);
  return communicator;
}

int run_job(std::string_view program, const std::function<CommOptions()>& options,
            const std::function<void(Communicator&)>& job) {
  std::unique_ptr<Communicator> communicator;
  try {
    if (!options) fail<ValueError>("run_job: there is no function that gives the options; give comm_options");
    communicator = make_communicator(options());
    job(*communicator);
    communicator->barrier({.plan = kEndOfProgram});
    return 0;
  } catch (const std::exception& error) {
    if (communicator != nullptr) end_job(*communicator, program, error);
    std::fputs(join_text(program, ": ", error.what(), '\n').c_str(), stderr);
    return exit_code_of(error);
  }
}

}  // namespace syncline::comm
