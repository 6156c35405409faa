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

CommOptions with(CommOptions options, const Settings& settings) {
  if (settings.stall_limit) options.worker.stall_limit = std::chrono::duration<double>(*settings.stall_limit);
  if (settings.wait_limit) options.worker.wait_limit = std::chrono::duration<double>(*settings.wait_limit);
  if (settings.background) options.worker.background = *settings.background;
  if (settings.transport) options.transport = *settings.transport;
  if (settings.wire_format) options.format = *settings.wire_format;
  if (settings.verbose) options.verbose = *settings.verbose;
  return options;
}

std::unique_ptr<Communicator> make(const CommOptions& options) {
  const Launch launch = read_launch_environment();
  if (launch.size == 1) return make_single_communicator();
  MpiOptions mpi;
  mpi.worker = options.worker;
  mpi.share_memory = options.transport != Transport::kMpi;
  mpi.format = options.format;
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

CommOptions options_for_threads(int threads_a_rank, const Settings& settings) {
  CommOptions options;
  options.worker.threads = threads_a_rank;
  return with(options, settings);
}

int run_job(std::string_view program, const CommOptions& options, const std::function<void(Communicator&)>& job) {
  std::unique_ptr<Communicator> communicator;
  try {
    communicator = make_communicator(options);
    job(*communicator);
    return 0;
  } catch (const std::exception& error) {
    if (communicator != nullptr) end_job(*communicator, program, error);
    std::fputs(join_text(program, ": ", error.what(), '\n').c_str(), stderr);
    return exit_code_of(error);
  }
}

}  // namespace syncline::comm
