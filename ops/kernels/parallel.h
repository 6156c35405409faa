// The only door to threads: loops split over the TBB pool, with borders that depend on the loop alone.
//
// Cost is the estimated time of one item on one core, in nanoseconds (a float read and written in memory is about 1, in
// cache 0.1; a transcendental function about 1). It decides whether splitting pays and how many chunks there are; it
// never has to be exact, but must be a function of shapes only.
//
// Thread safety: every function may be called from several user threads at once; each of them has its own arena, and
// the workers of the pool are shared. A loop inside a loop's body runs inline, so a body never starts work of another
// loop. Exceptions thrown by a body reach the caller. Nothing is allocated on a serial run. A process that is forked
// after the first parallel loop computes on one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

namespace syncline::kernels {

// Threads that one loop may use. The default is the number of processors in the process's affinity mask.
int thread_count();
// Sets it for the whole process, to 1 to kMostThreads; 1 means that no loop leaves its caller's thread. Not to be
// called while a loop runs. Throws ValueError.
inline constexpr int kMostThreads = 4096;
void set_thread_count(int n);

// oneTBB's version: of the headers that this was built with, and of the library that was loaded.
struct PoolVersion {
  std::string built, loaded;
};
PoolVersion pool_version();

// A loop's fixed split: chunk i covers [begin(i), end(i)).
struct Chunks {
  std::int64_t items = 0;
  std::int64_t size = 1;  // items of a chunk; the last may be shorter
  std::int64_t count = 0;

  std::int64_t begin(std::int64_t i) const { return i * size; }
  std::int64_t end(std::int64_t i) const { return std::min(items, (i + 1) * size); }
};

inline constexpr std::int64_t kMaxChunks = 64;        // so partial results of a reduction fit a small fixed array
inline constexpr double kSerialNanoseconds = 10'000;  // loops below this are not worth waking a worker
inline constexpr double kChunkNanoseconds = 5'000;    // a chunk is at least this long
inline constexpr std::int64_t kChunkAlignment = 64;   // chunks of long loops start at multiples of this

// The split of a loop, a function of its two arguments only. One partial result a chunk, combined in the order of
// chunks, gives the same bits for every number of threads.
inline Chunks fixed_chunks(std::int64_t items, double cost_per_item) {
  if (items <= 0) return {};
  const double total = static_cast<double>(items) * cost_per_item;
  if (total < kSerialNanoseconds) return {items, items, 1};
  const double wanted = std::min(total / kChunkNanoseconds, static_cast<double>(kMaxChunks));
  const auto parts = std::clamp<std::int64_t>(static_cast<std::int64_t>(wanted), 1, items);
  std::int64_t size = (items + parts - 1) / parts;
  if (size >= kChunkAlignment) size = (size + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment;
  return {items, size, (items + size - 1) / size};
}

namespace internal {
using ChunkFunction = void (*)(void* body, std::int64_t chunk);
// True where a loop that started now would use more than the calling thread.
bool can_split();
// Calls function(body, i) for each i < count, on the pool.
void run_on_pool(std::int64_t count, ChunkFunction function, void* body);
}  // namespace internal

// Calls body(chunk, begin, end) for each chunk of a fixed split, in any order, on any thread. Use it where a result
// depends on the borders (reductions): the calls are the same for every number of threads.
template <class F>
void parallel_chunks(const Chunks& chunks, F&& body) {
  if (chunks.count <= 1 || !internal::can_split()) {
    for (std::int64_t i = 0; i < chunks.count; ++i) body(i, chunks.begin(i), chunks.end(i));
    return;
  }
  // The counter orders the caller's writes before every chunk, and every chunk before the return. TBB does so too, but
  // its library is not built for ThreadSanitizer, which would report each access; so parallel.cc is not instrumented
  // either.
  struct Context {
    const Chunks& chunks;
    std::remove_reference_t<F>& body;
    std::atomic<std::int64_t> progress{0};
  } context{chunks, body};
  context.progress.fetch_add(1, std::memory_order_release);
  internal::run_on_pool(
      chunks.count,
      [](void* opaque, std::int64_t i) {
        auto& c = *static_cast<Context*>(opaque);
        static_cast<void>(c.progress.load(std::memory_order_acquire));
        c.body(i, c.chunks.begin(i), c.chunks.end(i));
        c.progress.fetch_add(1, std::memory_order_release);
      },
      &context);
  static_cast<void>(context.progress.load(std::memory_order_acquire));
}

// Calls body(begin, end) on ranges that cover [0, count) once. A short loop, or a pool of one thread, is one call; so
// an item's result must not depend on the range it is in (a border lies at a multiple of 64 items, or of one item if
// items are dear).
template <class F>
void parallel_for(std::int64_t count, double cost_per_item, F&& body) {
  if (count <= 0) return;
  if (static_cast<double>(count) * cost_per_item < kSerialNanoseconds || !internal::can_split()) {
    body(std::int64_t{0}, count);
    return;
  }
  parallel_chunks(fixed_chunks(count, cost_per_item),
                  [&](std::int64_t, std::int64_t begin, std::int64_t end) { body(begin, end); });
}

}  // namespace syncline::kernels
