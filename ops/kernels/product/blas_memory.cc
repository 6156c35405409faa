#include "ops/kernels/product/blas_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "ops/kernels/parallel.h"
#include "ops/kernels/product/blas.h"
#include "syncline/error.h"

// Internal OpenBLAS functions; no header declares them. Null without OpenBLAS.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int position);
[[gnu::weak]] void blas_memory_free(void* buffer);
}

namespace syncline::kernels {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kBuffer = 128 * kMiB;  // for every kernel set of Debian's OpenBLAS

struct Limit {
  rlim_t bytes;
  const char *what, *name;
};

// The smaller one of the process's limits on memory, or nothing.
std::optional<Limit> limit_of_memory() {
  rlimit space{}, data{};
  if (::getrlimit(RLIMIT_AS, &space) != 0 || ::getrlimit(RLIMIT_DATA, &data) != 0) return {};
  if (std::min(space.rlim_cur, data.rlim_cur) == RLIM_INFINITY) return {};
  if (space.rlim_cur <= data.rlim_cur) return Limit{space.rlim_cur, "the address space is", "RLIMIT_AS, ulimit -v"};
  return Limit{data.rlim_cur, "the data of the process are", "RLIMIT_DATA, ulimit -d"};
}

// OpenBLAS starts a thread for each core when it is loaded. Without room for its buffer such a thread tries again
// forever, and OpenBLAS waits for it when the process ends. Under a limit, this handler ends the process before that.
void end_process(int status, void*) {
  std::fflush(nullptr);
  ::_exit(status);
}
[[maybe_unused]] const bool ends_process = limit_of_memory() && ::on_exit(&end_process, nullptr) == 0;

}  // namespace

std::string lacking_blas_memory() {
  const std::optional<Limit> limit = limit_of_memory();
  if (!limit || !loaded_blas().refused.empty()) return {};
  const std::size_t wanted = static_cast<std::size_t>(thread_count()) * kBuffer;
  void* room = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) {
    ::munmap(room, wanted);
    return {};
  }
  return join_text(limit->what, " limited to ", limit->bytes / kMiB, " MiB (", limit->name, "), but OpenBLAS needs ",
                   wanted / kMiB, " MiB for buffers, 128 MiB for each of ", thread_count(),
                   " threads; raise the limit or use fewer threads");
}

void reserve_blas_memory() {
  if (!limit_of_memory()) return;
  const std::string lacking = lacking_blas_memory();
  if (!lacking.empty()) throw Error(lacking);
  take_blas_buffers(thread_count());
}

void take_blas_buffers(int count) {
  if (!loaded_blas().refused.empty()) return;
  std::vector<void*> buffers(static_cast<std::size_t>(count));
  for (void*& buffer : buffers) buffer = blas_memory_alloc(0);
  for (void* buffer : buffers) blas_memory_free(buffer);
}

}  // namespace syncline::kernels
