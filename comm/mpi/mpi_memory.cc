#include "comm/mpi/mpi_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "comm/worker/stall_watch.h"
#include "syncline/error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; Debian 12's C library has it, the kernel may not
#endif

namespace syncline::comm {
namespace {

// Space that Open MPI uses beside our bytes.
constexpr std::size_t kMargin = std::size_t{1} << 20;

// The folder of the files that back windows.
std::string window_folder() {
  const LockedMpi mpi;
  std::array<char, 4096> text{};
  mpi->control_variable("osc_sm_backing_directory", text.data(), static_cast<int>(text.size()));
  return text[0] != '\0' ? text.data() : "/dev/shm";
}

class SharedWindow : public Window {
 public:
  SharedWindow(const LockedMpi& mpi, std::shared_ptr<MpiLife> life, MpiWindow window, int ranks)
      : life_(std::move(life)), window_(window) {
    for (int l = 0; l < ranks; ++l) {
      void* first = nullptr;
      check_mpi(mpi->window_part(window_, l, &first), "MPI_Win_shared_query", "start");
      // A part may begin inside a page, at the same offset on every rank.
      parts_.push_back(reinterpret_cast<std::byte*>(in_pages(reinterpret_cast<std::uintptr_t>(first))));
    }
  }
  ~SharedWindow() override {
    if (!life_->may_free()) return;
    const LockedMpi mpi;
    mpi->free_window(&window_);
  }

 private:
  const std::shared_ptr<MpiLife> life_;
  MpiWindow window_;
};

// Backs the pages with zeroed memory. Returns false if there is not enough.
bool populate(std::byte* begin, std::size_t bytes) {
  if (::madvise(begin, in_pages(bytes), MADV_POPULATE_WRITE) != 0 && errno != EINVAL) return false;
  std::memset(begin, 0, bytes);
  return true;
}

}  // namespace

MpiMemory::MpiMemory(MpiHandle node, const WorkerOptions& limits) : node_(std::move(node)), limits_(limits) {}

// Whether `fine` is true on all ranks of the node. The caller must not hold MPI.
bool MpiMemory::everybody(bool fine) const {
  const LockedMpi mpi;
  int all = fine ? 1 : 0;
  check_mpi(mpi->all_reduce_min(&all, node_.get()), "MPI_Allreduce", "shared memory");
  return all == 1;
}

std::unique_ptr<Window> MpiMemory::allocate(std::size_t bytes_a_rank) {
  const StallWatch watch(
      limits_,
      [&] {
        return Missing{join_text("rank ", node_.rank(), " of the ", node_.size(),
                                 " on its node waits for the others to make shared memory")};
      },
      abort_mpi);
  const std::size_t asked = in_pages(bytes_a_rank) + page_size();
  const std::size_t needed = static_cast<std::size_t>(node_.size()) * asked + kMargin;
  const std::string directory = window_folder();
  struct statvfs room {};
  const bool known = ::statvfs(directory.c_str(), &room) == 0;
  const std::size_t free_bytes = known ? room.f_bavail * room.f_frsize : needed;
  why_ = join_text(directory, " has ", free_bytes >> 10, " KiB left, ", needed >> 10, " KiB are needed");
  if (!everybody(free_bytes >= needed)) return nullptr;
  // The memory of a window is one file.
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  why_ = join_text("files may have ", limit.rlim_cur >> 10, " KiB (ulimit -f), ", needed >> 10, " KiB are needed");
  if (!everybody(limit.rlim_cur >= needed)) return nullptr;

  std::unique_ptr<SharedWindow> window;
  {
    const LockedMpi mpi;
    MpiWindow handle = MpiWindow::kNull;
    check_mpi(mpi->allocate_shared(asked, node_.get(), &handle), "MPI_Win_allocate_shared", "shared memory");
    window = std::make_unique<SharedWindow>(mpi, node_.life(), handle, node_.size());
  }
  if (everybody(populate(window->part(node_.rank()), bytes_a_rank))) return window;
  why_ = join_text(directory, " has no room for ", node_.size(), " x ", bytes_a_rank >> 10, " KiB");
  return nullptr;
}

}  // namespace syncline::comm
