// MpiMemory: MPI-3 shared-memory windows of the ranks of a node.
//
// Open MPI 4.1 backs a window by a sparse file, by default in /dev/shm. If that is too small, some ranks hang in the
// call and others get an error, or all of them are killed by SIGBUS when they touch the memory. So the space is looked
// up before, and the pages are touched in a way that can fail, before anybody relies on them.
#pragma once

#include <string>

#include "comm/mpi/mpi_session.h"
#include "comm/shared/node.h"

namespace syncline::comm {

class MpiMemory : public NodeMemory {
 public:
  // `node`: the ranks of the node.
  explicit MpiMemory(MpiHandle node);

  std::unique_ptr<Window> allocate(std::size_t bytes_a_rank) override;
  std::string why() const override { return why_; }
  const MpiHandle& node() const { return node_; }

 private:
  bool everybody(bool fine) const;

  const MpiHandle node_;
  std::string why_;
};

}  // namespace syncline::comm
