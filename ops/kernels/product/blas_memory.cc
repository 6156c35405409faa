#include "ops/kernels/product/blas_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <vector>

#include "ops/kernels/parallel.h"
#include "syncline/error.h"

// Internal OpenBLAS functions; no header declares them.
extern "C" {
void* blas_memory_alloc(int position);
void blas_memory_free(void* buffer);
}

namespace syncline::kernels {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kBuffer = 128 * kMiB;  // for every kernel set of Debian's OpenBLAS

bool is_limited(rlimit& limit) { return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY; }

}  // namespace

std::string lacking_blas_memory() {
  rlimit limit{};
  if (!is_limited(limit)) return {};
  const std::size_t wanted = static_cast<std::size_t>(thread_count()) * kBuffer;
  void* room = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) {
    ::munmap(room, wanted);
    return {};
  }
  return join_text("the address space is limited to ", limit.rlim_cur / kMiB,
                   " MiB (RLIMIT_AS, ulimit -v), but OpenBLAS needs ", wanted / kMiB,
                   " MiB for buffers, 128 MiB for each of ", thread_count(),
                   " threads; raise the limit or use fewer threads");
}

void reserve_blas_memory() {
  rlimit limit{};
  if (!is_limited(limit)) return;
  const std::string lacking = lacking_blas_memory();
  if (!lacking.empty()) throw Error(lacking);
  take_blas_buffers(thread_count());
}

void take_blas_buffers(int count) {
  std::vector<void*> buffers(static_cast<std::size_t>(count));
  for (void*& buffer : buffers) buffer = blas_memory_alloc(0);
  for (void* buffer : buffers) blas_memory_free(buffer);
}

}  // namespace syncline::kernels
