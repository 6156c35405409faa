#include "comm/mpi/mpi_communicator.h"

#include "base/timeline.h"
#include "comm/mpi/mpi_wire.h"

namespace syncline::comm {
namespace {

class MpiCommunicator : public WorkerCommunicator {
 public:
  explicit MpiCommunicator(const MpiOptions& options)
      : WorkerCommunicator(std::make_unique<MpiWire>(options), options.worker) {}

  [[noreturn]] void abort_job(int exit_code) override {
    std::fflush(nullptr);
    timeline::flush();
    if (Wire* wire = worker().seize()) static_cast<MpiWire*>(wire)->abort_job(exit_code);
    std::_Exit(exit_code);  // a transfer hangs in MPI: the launcher sees a rank gone and ends the others
  }
};

}  // namespace

bool mpi_is_initialized() {
  int flag = 0;
  check_mpi(MPI_Initialized(&flag), "MPI_Initialized", "start");
  return flag != 0;
}

std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions& options) {
  return std::make_unique<MpiCommunicator>(options);
}

}  // namespace syncline::comm
