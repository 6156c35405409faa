#include "comm/mpi/mpi_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "syncline/error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; Debian 12's C library has it, the kernel may not
#endif

namespace syncline::comm {
namespace {

// Space that Open MPI uses beside our bytes.
constexpr std::size_t kMargin = std::size_t{1} << 20;

// Reads a string variable of Open MPI's configuration; returns `otherwise` if it has no value.
std::string mpi_variable(const char* name, const std::string& otherwise) {
  const auto lock = lock_mpi();
  int level = 0, index = 0, count = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &level) != MPI_SUCCESS) return otherwise;
  std::string found = otherwise;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
    std::vector<char> text(static_cast<std::size_t>(count) + 1, '\0');
    if (MPI_T_cvar_read(handle, text.data()) == MPI_SUCCESS && text[0] != '\0') found = text.data();
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return found;
}

class MpiWindow : public Window {
 public:
  MpiWindow(std::shared_ptr<MpiLife> life, MPI_Win window, int ranks) : life_(std::move(life)), window_(window) {
    for (int l = 0; l < ranks; ++l) {
      MPI_Aint size = 0;
      int unit = 0;
      void* base = nullptr;
      check_mpi(MPI_Win_shared_query(window_, l, &size, &unit, &base), "MPI_Win_shared_query", "start");
      // A part may begin inside a page, at the same offset on every rank.
      parts_.push_back(reinterpret_cast<std::byte*>(in_pages(reinterpret_cast<std::uintptr_t>(base))));
    }
  }
  ~MpiWindow() override {
    if (!life_->may_free()) return;
    const auto lock = lock_mpi();
    MPI_Win_free(&window_);
  }

 private:
  const std::shared_ptr<MpiLife> life_;
  MPI_Win window_;
};

// Backs the pages with zeroed memory. Returns false if there is not enough.
bool populate(std::byte* begin, std::size_t bytes) {
  if (::madvise(begin, in_pages(bytes), MADV_POPULATE_WRITE) != 0 && errno != EINVAL) return false;
  std::memset(begin, 0, bytes);
  return true;
}

}  // namespace

MpiMemory::MpiMemory(MpiHandle node) : node_(std::move(node)) {}

// Whether `fine` is true on all ranks of the node. The caller must not hold the MPI lock.
bool MpiMemory::everybody(bool fine) const {
  const auto lock = lock_mpi();
  int all = fine ? 1 : 0;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, node_.get()), "MPI_Allreduce", "shared memory");
  return all == 1;
}

std::unique_ptr<Window> MpiMemory::allocate(std::size_t bytes_a_rank) {
  const std::size_t asked = in_pages(bytes_a_rank) + kPage;
  const std::size_t needed = static_cast<std::size_t>(node_.size()) * asked + kMargin;
  const std::string directory = mpi_variable("osc_sm_backing_directory", "/dev/shm");
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

  std::unique_ptr<MpiWindow> window;
  {
    const auto lock = lock_mpi();
    MPI_Info info = MPI_INFO_NULL;
    check_mpi(MPI_Info_create(&info), "MPI_Info_create", "shared memory");
    check_mpi(MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set", "shared memory");
    void* base = nullptr;
    MPI_Win handle = MPI_WIN_NULL;
    check_mpi(
        MPI_Win_allocate_shared(static_cast<MPI_Aint>(asked), 1, info, node_.get(), static_cast<void*>(&base), &handle),
        "MPI_Win_allocate_shared", "shared memory");
    check_mpi(MPI_Info_free(&info), "MPI_Info_free", "shared memory");
    window = std::make_unique<MpiWindow>(node_.life(), handle, node_.size());
  }
  if (everybody(populate(window->part(node_.rank()), bytes_a_rank))) return window;
  why_ = join_text(directory, " has no room for ", node_.size(), " x ", bytes_a_rank >> 10, " KiB");
  return nullptr;
}

}  // namespace syncline::comm
