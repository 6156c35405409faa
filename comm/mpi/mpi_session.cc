#include "comm/mpi/mpi_session.h"

#include <cstdlib>
#include <mutex>

#include "base/error.h"

namespace syncline::comm {
namespace {

void require_level(int level) {
  if (level >= MPI_THREAD_SERIALIZED) return;
  fail<CommError>("MPI has thread level ", level, ", but calls come from two threads in turn: MPI_THREAD_SERIALIZED (",
                  MPI_THREAD_SERIALIZED, ") is needed; initialise with MPI_Init_thread, or leave it to Syncline");
}

// Ranks that wait inside MPI let other threads have the core. A user's own setting wins.
void set_defaults_of_open_mpi() {
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "1", /*overwrite=*/0);
  ::setenv("OMPI_MCA_btl_base_warn_component_unused", "0", /*overwrite=*/0);
}

}  // namespace

void check_mpi(int code, const char* call, std::string_view doing) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "unknown error";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail<CommError>(call, " failed during ", doing, ": ", text, " (code ", code, ")");
}

MpiSession::MpiSession() {
  int flag = 0;
  check_mpi(MPI_Finalized(&flag), "MPI_Finalized", "start");
  if (flag != 0) fail<CommError>("MPI was finalized before; keep one communicator for the whole run");
  check_mpi(MPI_Initialized(&flag), "MPI_Initialized", "start");
  int level = MPI_THREAD_SINGLE;
  if (flag != 0) {
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread", "start");
  } else {
    set_defaults_of_open_mpi();
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread", "start");
    ours_ = true;
  }
  require_level(level);
}

MpiSession::~MpiSession() {
  if (ours_ && !abandoned_) MPI_Finalize();
}

std::shared_ptr<MpiSession> MpiSession::join() {
  static std::mutex mutex;
  static std::weak_ptr<MpiSession> current;
  const std::lock_guard lock(mutex);
  std::shared_ptr<MpiSession> session = current.lock();
  if (!session) {
    session = std::shared_ptr<MpiSession>(new MpiSession);
    current = session;
  }
  return session;
}

}  // namespace syncline::comm
