// The only interface to threads: loops split over the TBB pool into chunks that depend only on the loop.
//
// Cost is the estimated time of one item on one core, in nanoseconds (a float read and written in memory: about 1, in
// cache: 0.1; a transcendental function: about 1). It determines whether to split and into how many chunks. It need not
// be exact, but must be a function of shapes only.
//
// Threads: several user threads may call every function at once; each has its own arena, and all share the workers of
// the pool. A nested loop runs inline, so a body never starts work of another loop. Exceptions of a body reach the
// caller. A serial run allocates nothing. A process forked after the first parallel loop computes on one thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

#include "syncline/threads.h"

namespace syncline::kernels {

// The oneTBB version of the headers at build time and of the loaded library.
struct PoolVersion {
  std::string built, loaded;
};
PoolVersion pool_version();

// The fixed split of a loop: chunk i covers [begin(i), end(i)).
struct Chunks {
  std::int64_t items = 0;
  std::int64_t size = 1;  // items of a chunk; the last may be shorter
  std::int64_t count = 0;

  std::int64_t begin(std::int64_t i) const { return i * size; }
  std::int64_t end(std::int64_t i) const { return std::min(items, (i + 1) * size); }
};

inline constexpr std::int64_t kMaxChunks = 64;        // lets reductions keep partial results in a small array
inline constexpr double kSerialNanoseconds = 10'000;  // shorter loops run serially
inline constexpr double kChunkNanoseconds = 5'000;    // minimum duration of a chunk
inline constexpr std::int64_t kChunkAlignment = 64;   // chunks of long loops start at its multiples

// Returns the split of a loop, a function of its arguments only. A reduction that combines one partial result per chunk
// in chunk order gives the same bits for every number of threads.
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
// True if a loop started now would use other threads.
bool can_split();
// Calls function(body, i) for each i < count, on the pool.
void run_on_pool(std::int64_t count, ChunkFunction function, void* body);
}  // namespace internal

// Calls body(chunk, begin, end) for each chunk of a fixed split, in any order, on any thread. Use it if a result
// depends on the chunk boundaries (reductions): the calls are the same for every number of threads.
template <class F>
void parallel_chunks(const Chunks& chunks, F&& body) {
  if (chunks.count <= 1 || !internal::can_split()) {
    for (std::int64_t i = 0; i < chunks.count; ++i) body(i, chunks.begin(i), chunks.end(i));
    return;
  }
  // The counter orders the caller's writes before every chunk, and every chunk before the return, also by an exception.
  // TBB does the same, but its library is not built for ThreadSanitizer, which would report each access. For that
  // reason parallel.cc is not instrumented either.
  struct Context {
    const Chunks& chunks;
    std::remove_reference_t<F>& body;
    std::atomic<std::int64_t> progress{0};
    ~Context() { static_cast<void>(progress.load(std::memory_order_acquire)); }
  } context{chunks, body};
  struct Finish {
    std::atomic<std::int64_t>& progress;
    ~Finish() { progress.fetch_add(1, std::memory_order_release); }
  };
  context.progress.fetch_add(1, std::memory_order_release);
  internal::run_on_pool(
      chunks.count,
      [](void* opaque, std::int64_t i) {
        auto& c = *static_cast<Context*>(opaque);
        static_cast<void>(c.progress.load(std::memory_order_acquire));
        const Finish finish{c.progress};
        c.body(i, c.chunks.begin(i), c.chunks.end(i));
      },
      &context);
}

// Calls body(begin, end) on ranges that cover [0, count) once. A short loop, or a pool of one thread, makes a single
// call, so the result of an item must not depend on its range. Ranges start at multiples of 64 items, or anywhere if
// items are expensive.
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
