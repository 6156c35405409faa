#include "comm/mpi/mpi_session.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "syncline/error.h"

namespace syncline::comm {
namespace {

void require_level(int level) {
  if (level >= MPI_THREAD_SERIALIZED) return;
  fail<CommError>("MPI has thread level ", level,
                  ", but Syncline calls it from two threads in turn and needs MPI_THREAD_SERIALIZED (",
                  MPI_THREAD_SERIALIZED, "); initialize MPI with MPI_Init_thread, or let Syncline initialize it");
}

// Ranks that wait inside MPI yield the core to other threads. A user's own setting wins.
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

namespace {

std::timed_mutex& mpi_mutex() {
  static std::timed_mutex mutex;
  return mutex;
}

constexpr std::chrono::seconds kReadingTime{1};

// Waits until the pipe is empty, at most until `end`. Does not wait for files, terminals and sockets: they lose
// nothing.
void wait_for_reader(int descriptor, std::chrono::steady_clock::time_point end) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0 || !S_ISFIFO(found.st_mode)) return;
  int unread = 0;
  while (std::chrono::steady_clock::now() < end && ::ioctl(descriptor, FIONREAD, &unread) == 0 && unread > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// The launcher reads the output of ranks from pipes. When it ends the job, it drops what it has not read, such as the
// reason of the end.
void wait_for_launcher() {
  std::fflush(nullptr);
  const auto end = std::chrono::steady_clock::now() + kReadingTime;
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) wait_for_reader(descriptor, end);
}

}  // namespace

std::unique_lock<std::timed_mutex> lock_mpi() { return std::unique_lock(mpi_mutex()); }

void abort_mpi(int exit_code) noexcept {
  wait_for_launcher();
  const std::unique_lock lock(mpi_mutex(), std::chrono::seconds(2));
  if (lock) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);  // a call hangs in MPI: the launcher sees that a rank is gone and ends the others
}

MpiHandle::MpiHandle(std::shared_ptr<MpiLife> life, MPI_Comm comm) : life_(std::move(life)), comm_(comm) {
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", "start");
}

MpiHandle::MpiHandle(MpiHandle&& other) noexcept
    : life_(std::move(other.life_)), comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}

MpiHandle::~MpiHandle() {
  if (comm_ == MPI_COMM_NULL || !life_->may_free()) return;
  const auto lock = lock_mpi();
  MPI_Comm_free(&comm_);
}

int MpiHandle::rank() const {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm_, &rank), "MPI_Comm_rank", "start");
  return rank;
}

int MpiHandle::size() const {
  int size = 1;
  check_mpi(MPI_Comm_size(comm_, &size), "MPI_Comm_size", "start");
  return size;
}

MpiSession::MpiSession() {
  int flag = 0;
  check_mpi(MPI_Finalized(&flag), "MPI_Finalized", "start");
  if (flag != 0) fail<CommError>("MPI is already finalized; keep one communicator for the whole run");
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
