#include "comm/mpi/mpi_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "syncline/error.h"

namespace syncline::comm {
namespace {

// The folder where Open MPI has shared memory, so that its option moves ours too. Reading an option takes MPI 0.1 s.
const std::string& memory_folder() {
  static const std::string folder = [] {
    const LockedMpi mpi;
    std::array<char, 4096> text{};
    mpi->control_variable("osc_sm_backing_directory", text.data(), static_cast<int>(text.size()));
    return std::string(text[0] != '\0' ? text.data() : "/dev/shm");
  }();
  return folder;
}

// A file for memory. Its name, if this rank has made one, and its descriptor end with the object.
class MemoryFile {
 public:
  MemoryFile() = default;
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    unlink();
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  // Writes the path to `path`; leaves it empty if the file cannot be made.
  void make(const std::string& folder, std::span<char> path) {
    path_ = folder + "/syncline.XXXXXX";
    descriptor_ = ::mkostemp(path_.data(), O_CLOEXEC);
    if (descriptor_ < 0) path_.clear();
    path_.copy(path.data(), path.size() - 1);
  }
  void open(const char* path) { descriptor_ = ::open(path, O_RDWR | O_CLOEXEC); }
  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void unlink() {
    if (!path_.empty()) ::unlink(path_.c_str());
    path_.clear();
  }

  // Allocates pages, in steps that a signal may interrupt. Returns an error number.
  int allocate(std::size_t at, std::size_t bytes) const {
    constexpr std::size_t kStep = std::size_t{64} << 20;
    while (bytes > 0) {
      const std::size_t step = std::min(bytes, kStep);
      const int error = ::posix_fallocate(descriptor_, static_cast<off_t>(at), static_cast<off_t>(step));
      if (error == EINTR) continue;
      if (error != 0) return error;
      at += step;
      bytes -= step;
    }
    return 0;
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

class MappedWindow : public Window {
 public:
  MappedWindow(void* begin, int ranks, std::size_t part)
      : begin_(begin), bytes_(static_cast<std::size_t>(ranks) * part) {
    for (std::size_t at = 0; at < bytes_; at += part) parts_.push_back(static_cast<std::byte*>(begin) + at);
  }
  ~MappedWindow() override { ::munmap(begin_, bytes_); }

 private:
  void* const begin_;
  const std::size_t bytes_;
};

}  // namespace

MpiMemory::MpiMemory(MpiHandle node, const WorkerOptions& limits) : node_(std::move(node)), limits_(limits) {}

// Whether `fine` is true on all ranks of the node. The caller must not hold MPI.
bool MpiMemory::everybody(bool fine) const {
  const LockedMpi mpi;
  int all = fine ? 1 : 0;
  check_mpi(mpi->all_reduce_min(&all, node_.get()), "MPI_Allreduce", "shared memory");
  return all == 1;
}

StallWatch MpiMemory::watch() const {
  return StallWatch(
      limits_,
      [this] {
        return Missing{join_text("rank ", node_.rank(), " of the ", node_.size(),
                                 " on its node waits for the others to make shared memory")};
      },
      abort_mpi);
}

// Whether a file of `needed` bytes fits, on all ranks of the node.
bool MpiMemory::has_room(std::size_t needed) {
  const std::string& directory = memory_folder();
  struct statvfs room {};
  const bool known = ::statvfs(directory.c_str(), &room) == 0;
  const std::size_t free_bytes = known ? room.f_bavail * room.f_frsize : needed;
  why_ = join_text(directory, " has ", free_bytes >> 10, " KiB left, ", needed >> 10, " KiB are needed");
  if (!everybody(free_bytes >= needed)) return false;
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  why_ = join_text("files may have ", limit.rlim_cur >> 10, " KiB (ulimit -f), ", needed >> 10, " KiB are needed");
  return everybody(limit.rlim_cur >= needed);
}

std::unique_ptr<Window> MpiMemory::allocate(std::size_t bytes_a_rank) {
  const StallWatch watching = watch();
  const auto rank = static_cast<std::size_t>(node_.rank());
  const std::size_t part = in_pages(std::max<std::size_t>(bytes_a_rank, 1));
  const std::size_t bytes = static_cast<std::size_t>(node_.size()) * part;
  if (!has_room(bytes)) return nullptr;
  std::array<char, 4096> path{};
  MemoryFile file;
  if (rank == 0) file.make(memory_folder(), path);
  {
    const LockedMpi mpi;
    check_mpi(mpi->broadcast(path.data(), static_cast<int>(path.size()), 0, node_.get()), "MPI_Bcast", "shared memory");
  }
  if (rank > 0 && path[0] != '\0') file.open(path.data());
  why_ = join_text("the ranks of the node cannot open one file in ", memory_folder());
  const bool opened = everybody(file.is_open());
  file.unlink();
  if (!opened) return nullptr;
  // A rank allocates its part, so that the pages lie near it, and a page that is missing is an error here.
  const int error = file.allocate(rank * part, part);
  void* const begin =
      error != 0 ? MAP_FAILED : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  // Without an error here, another rank has found no pages.
  const int failure = error != 0 ? error : begin == MAP_FAILED ? errno : ENOSPC;
  why_ = join_text(memory_folder(), " has no room for ", bytes >> 10, " KiB: ", std::strerror(failure));
  std::unique_ptr<Window> window;
  if (begin != MAP_FAILED) window = std::make_unique<MappedWindow>(begin, node_.size(), part);
  if (!everybody(window != nullptr)) window.reset();
  return window;
}

}  // namespace syncline::comm
