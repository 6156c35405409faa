// MpiMemory: memory that the ranks of one node share, in files of our own.
//
// MPI-3's windows do the same, but where /dev/shm is too small, ranks of Open MPI 4.1 hang, or die of SIGBUS on first
// access. Here a rank allocates its pages by a call that can fail. allocate() waits for the ranks of the node, and ends
// the job at the wait limit.
#pragma once

#include <string>

#include "comm/mpi/mpi_session.h"
#include "comm/shared/node.h"
#include "comm/worker/stall_watch.h"
#include "syncline/distributed/settings.h"

namespace syncline::comm {

class MpiMemory : public NodeMemory {
 public:
  // `node`: MPI communicator of the node's ranks.
  MpiMemory(MpiHandle node, const WorkerOptions& limits);

  // A file in the folder of Open MPI's shared memory. It has no name as soon as all ranks of the node have opened it,
  // so that its pages end with the ranks.
  std::unique_ptr<Window> allocate(std::size_t bytes_a_rank) override;
  std::string why() const override { return why_; }
  const MpiHandle& node() const { return node_; }

 private:
  bool everybody(bool fine) const;
  StallWatch watch() const;
  bool has_room(std::size_t needed);

  const MpiHandle node_;
  const WorkerOptions limits_;
  std::string why_;
};

}  // namespace syncline::comm
