// MpiSession: starts and finalizes MPI for all communicators of this process. Also the lock for MPI calls, and the
// check of return codes.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "comm/mpi/mpi_library.h"

namespace syncline::comm {

// Throws CommError with MPI's error text unless code is 0. `call` is MPI's name of the function, `doing` names the
// operation.
void check_mpi(int code, const char* call, std::string_view doing);

// Serializes MPI calls, because communicators have threads of their own. Hold the lock only for calls that return at
// once, or that all ranks make together.
std::unique_lock<std::timed_mutex> lock_mpi();
// Ends all processes of the job. Waits for up to 1 s until the launcher has read what this rank wrote to its pipes. If
// another call holds the lock for 2 s, ends only this process, without MPI_Abort.
[[noreturn]] void abort_mpi(int exit_code) noexcept;

// Initialises MPI, or joins the MPI that the program has initialised. The last owner finalizes MPI if MpiSession
// initialised it and nothing abandoned it. Only threads that make or destroy communicators construct and destroy it.
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
  const std::shared_ptr<MpiSession> session;
  bool orderly = true;
  bool may_free() const { return orderly && !session->abandoned() && std::uncaught_exceptions() == 0; }
};

// Owns an MPI communicator.
class MpiHandle {
 public:
  MpiHandle(std::shared_ptr<MpiLife> life, MpiComm comm) : life_(std::move(life)), comm_(comm) {}
  MpiHandle(MpiHandle&& other) noexcept
      : life_(std::move(other.life_)), comm_(std::exchange(other.comm_, MpiComm::kNull)) {}
  MpiHandle& operator=(MpiHandle&&) = delete;
  ~MpiHandle();

  MpiComm get() const { return comm_; }
  const std::shared_ptr<MpiLife>& life() const { return life_; }
  int rank() const;
  int size() const;

 private:
  std::shared_ptr<MpiLife> life_;
  MpiComm comm_ = MpiComm::kNull;
};

}  // namespace syncline::comm
