// MpiSession: MPI's life in this process, shared by the communicators; and the check of its return codes.
#pragma once

#include <mpi.h>

#include <memory>
#include <string_view>

namespace syncline::comm {

// Throws CommError with MPI's own text unless code is MPI_SUCCESS. `doing` says during what.
void check_mpi(int code, const char* call, std::string_view doing);

// Initialises MPI, or joins the one that the program has initialised. The last owner finalizes what was initialised
// here, unless the session was abandoned. Made and destroyed by the threads that make and destroy communicators.
class MpiSession {
 public:
  // Throws CommError if MPI cannot be used.
  static std::shared_ptr<MpiSession> join();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // MPI must not be finalized any more: other ranks may not come, or a request is open.
  void abandon() { abandoned_ = true; }

 private:
  MpiSession();
  bool ours_ = false;
  bool abandoned_ = false;
};

}  // namespace syncline::comm
