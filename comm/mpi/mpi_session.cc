#include "comm/mpi/mpi_session.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "syncline/error.h"

namespace syncline::comm {
namespace {

void require_serialized(int serialized) {
  if (serialized != 0) return;
  fail<CommError>(
      "MPI: its thread level is below MPI_THREAD_SERIALIZED, which Syncline needs, because it calls MPI from two "
      "threads in turn; initialize MPI with MPI_Init_thread, or let Syncline initialize it");
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

void abort_mpi(int exit_code) noexcept {
  wait_for_launcher();
  const LockedMpi mpi(std::chrono::seconds(2));
  if (mpi) mpi->abort(exit_code);
  std::_Exit(exit_code);  // a call hangs in MPI: the launcher sees that a rank is gone and ends the others
}

MpiHandle::MpiHandle(const LockedMpi& mpi, std::shared_ptr<MpiLife> life, MpiComm comm)
    : life_(std::move(life)), comm_(comm) {
  check_mpi(mpi->comm_rank(comm_, &rank_), "MPI_Comm_rank", "start");
  check_mpi(mpi->comm_size(comm_, &size_), "MPI_Comm_size", "start");
}

MpiHandle::~MpiHandle() {
  if (comm_ == MpiComm::kNull || !life_->may_free()) return;
  const LockedMpi mpi;
  mpi->free_comm(&comm_);
}

MpiSession::MpiSession() {
  int initialized = 0, finalized = 0, serialized = 0;
  const LockedMpi mpi;
  check_mpi(mpi->state(&initialized, &finalized), "MPI_Initialized", "start");
  if (finalized != 0) fail<CommError>("MPI is already finalized; keep one communicator for the whole run");
  if (initialized != 0) {
    check_mpi(mpi->query_thread(&serialized), "MPI_Query_thread", "start");
  } else {
    check_mpi(mpi->initialize(&serialized), "MPI_Init_thread", "start");
    ours_ = true;
  }
  require_serialized(serialized);
}

MpiSession::~MpiSession() {
  if (!ours_ || abandoned_ || std::uncaught_exceptions() > 0) return;
  const LockedMpi mpi;
  mpi->finalize();
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
