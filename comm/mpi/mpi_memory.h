// MpiMemory: MPI-3 shared-memory windows for the ranks of one node, and files of our own for memory that lasts.
//
// Open MPI 4.1 backs a window with a sparse file, by default in /dev/shm. If the file system is too small, some ranks
// hang in the call while others get an error, or SIGBUS kills all of them on first access. allocate() therefore checks
// the free space first, and then populates the pages with a call that can fail. It waits for the ranks of the node, and
// ends the job at the wait limit.
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

  std::unique_ptr<Window> allocate(std::size_t bytes_a_rank) override;
  // A file of our own in the folder of MPI's windows. It has no name as soon as all ranks of the node have opened it.
  std::unique_ptr<Window> allocate_lasting(std::size_t bytes_a_rank) override;
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
