// XXH3 of each chunk of a fixed split, then of the digests of the chunks.
#include "ops/kernels/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>

#include "ops/kernels/parallel.h"

namespace syncline::kernels {
namespace {

constexpr double kNanosecondsAByte = 0.1;

}  // namespace

std::uint64_t digest(const void* memory, std::size_t bytes) {
  const Chunks chunks = fixed_chunks(static_cast<std::int64_t>(bytes), kNanosecondsAByte);
  std::array<XXH64_hash_t, kMaxChunks + 1> digests{};
  digests[0] = bytes;
  parallel_chunks(chunks, [&](std::int64_t i, std::int64_t begin, std::int64_t end) {
    digests[static_cast<std::size_t>(i) + 1] =
        XXH3_64bits(static_cast<const std::byte*>(memory) + begin, static_cast<std::size_t>(end - begin));
  });
  return XXH3_64bits(digests.data(), (static_cast<std::size_t>(chunks.count) + 1) * sizeof digests[0]);
}

}  // namespace syncline::kernels
