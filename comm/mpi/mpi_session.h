// MpiSession: MPI's life in this process, shared by the communicators; the lock under which MPI is called; and the
// check of its return codes.
#pragma once

#include <mpi.h>

#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

namespace syncline::comm {

// Throws CommError with MPI's own text unless code is MPI_SUCCESS. `doing` says during what.
void check_mpi(int code, const char* call, std::string_view doing);

// Communicators have threads of their own, and MPI is called by one at a time. Held for calls that return at once, or
// that all ranks make together.
std::unique_lock<std::timed_mutex> lock_mpi();
// Ends all processes of the job; gives up if another call holds the lock for long.
[[noreturn]] void abort_mpi(int exit_code) noexcept;

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
  bool abandoned() const { return abandoned_; }

 private:
  MpiSession();
  bool ours_ = false;
  bool abandoned_ = false;
};

// What one of our communicators has made of MPI is freed together by all its ranks when it ends, or not at all if its
// end was not in order: freeing waits for the other ranks.
struct MpiLife {
  explicit MpiLife(std::shared_ptr<MpiSession> of) : session(std::move(of)) {}
  const std::shared_ptr<MpiSession> session;
  bool orderly = true;
  bool may_free() const { return orderly && !session->abandoned() && std::uncaught_exceptions() == 0; }
};

class MpiHandle {
 public:
  // Takes `comm` over; its errors are returned from now on.
  MpiHandle(std::shared_ptr<MpiLife> life, MPI_Comm comm);
  MpiHandle(MpiHandle&& other) noexcept;
  MpiHandle& operator=(MpiHandle&&) = delete;
  ~MpiHandle();

  MPI_Comm get() const { return comm_; }
  const std::shared_ptr<MpiLife>& life() const { return life_; }
  int rank() const;
  int size() const;

 private:
  std::shared_ptr<MpiLife> life_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace syncline::comm
