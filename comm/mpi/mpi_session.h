// MpiSession: starts and finalizes MPI for all communicators of this process.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "comm/mpi/mpi_library.h"
#include "comm/worker/stall_watch.h"

namespace syncline::comm {

// Ends all processes of the job. Waits for up to 1 s until the launcher has read what this rank wrote to its pipes. If
// another thread holds MPI for 2 s, ends only this process, without MPI_Abort.
[[noreturn]] void abort_mpi(int exit_code) noexcept;

// Initialises MPI, or joins the MPI that the program has initialised. The last owner finalizes MPI if MpiSession
// initialised it and nothing abandoned it, but not while an exception unwinds the stack: its text would wait for the
// other ranks. Only threads that make or destroy communicators construct and destroy it.
class MpiSession {
 public:
  // Throws CommError if MPI cannot be used.
  static std::shared_ptr<MpiSession> join();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Disables MPI_Finalize: other ranks may not come, or a request is open.
  void abandon() { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }

 private:
  MpiSession();
  bool ours_ = false;
  bool abandoned_ = false;
};

// Whether one communicator may free its MPI objects. Freeing waits for the other ranks, so all ranks free after an
// orderly end, or no rank frees.
struct MpiLife {
  explicit MpiLife(std::shared_ptr<MpiSession> of) : session(std::move(of)) {}
  // From the last message on: MPI frees objects and finalizes, which waits for other ranks.
  std::optional<StallWatch> end;  // before the session, which finalizes
  const std::shared_ptr<MpiSession> session;
  bool orderly = true;
  bool may_free() const { return orderly && !session->abandoned() && std::uncaught_exceptions() == 0; }
};

// Owns an MPI communicator.
class MpiHandle {
 public:
  MpiHandle(const LockedMpi& mpi, std::shared_ptr<MpiLife> life, MpiComm comm);
  MpiHandle(MpiHandle&& other) noexcept
      : life_(std::move(other.life_)),
        comm_(std::exchange(other.comm_, MpiComm::kNull)),
        rank_(other.rank_),
        size_(other.size_) {}
  MpiHandle& operator=(MpiHandle&&) = delete;
  ~MpiHandle();

  MpiComm get() const { return comm_; }
  const std::shared_ptr<MpiLife>& life() const { return life_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

 private:
  std::shared_ptr<MpiLife> life_;
  MpiComm comm_ = MpiComm::kNull;
  int rank_ = 0, size_ = 1;
};

}  // namespace syncline::comm
