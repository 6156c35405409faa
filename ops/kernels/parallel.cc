#include "ops/kernels/parallel.h"

#include <pthread.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <tbb/version.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "base/affinity.h"
#include "syncline/error.h"

namespace syncline::kernels {
namespace {

struct Pool {
  std::mutex mutex;
  std::atomic<int> threads{std::max(1, static_cast<int>(allowed_processors().size()))};
  std::atomic<bool> started{false};
  std::unique_ptr<tbb::global_control> limit;  // bounds the workers of all arenas together
};

Pool& pool() {
  static Pool instance;
  return instance;
}

// A forked child has no workers, and TBB would wait for them, so the child uses one thread.
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  if (pool().started.load(std::memory_order_relaxed)) pool().threads.store(1, std::memory_order_relaxed);
});

// One arena per user thread: with a shared arena, a caller that finds it full would wait for a worker.
struct CallerArena {
  int threads = 0;
  std::optional<tbb::task_arena> arena;

  tbb::task_arena& get(int wanted) {
    if (threads != wanted) {
      arena.emplace(wanted);
      threads = wanted;
    }
    return *arena;
  }
};

thread_local CallerArena caller_arena;
thread_local bool inside_loop = false;

struct InsideLoop {
  bool before = inside_loop;
  InsideLoop() { inside_loop = true; }
  ~InsideLoop() { inside_loop = before; }
};

}  // namespace

PoolVersion pool_version() { return {TBB_VERSION_STRING, TBB_runtime_version()}; }

namespace internal {

bool can_split() { return !inside_loop && thread_count() > 1; }

void run_on_pool(std::int64_t count, ChunkFunction function, void* body) {
  pool().started.store(true, std::memory_order_relaxed);
  // Use the floating-point modes of the caller, which may have changed since its arena was created: bits must not
  // depend on the thread that runs a chunk. An isolated context ignores cancellation of other loops.
  using Context = tbb::task_group_context;
  Context modes(Context::isolated, Context::default_traits | Context::fp_settings);
  caller_arena.get(thread_count()).execute([&] {
    tbb::parallel_for(
        std::int64_t{0}, count,
        [&](std::int64_t i) {
          InsideLoop guard;
          function(body, i);
        },
        tbb::simple_partitioner(), modes);
  });
}

}  // namespace internal
}  // namespace syncline::kernels

namespace syncline {

int thread_count() { return kernels::pool().threads.load(std::memory_order_relaxed); }

void set_thread_count(int n) {
  if (n < 1 || n > kMostThreads)
    fail<ValueError>("set_thread_count(", n, "): the number of threads must be 1 to ", kMostThreads);
  kernels::Pool& p = kernels::pool();
  std::lock_guard lock(p.mutex);
  p.limit.reset();  // TBB applies the smallest live limit: remove the old one first
  if (n > 1) p.limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, n);
  p.threads.store(n, std::memory_order_relaxed);
}

}  // namespace syncline
