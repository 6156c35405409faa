// A digest of large memory at the speed of memory (XXH3), for telling accidents apart, not for security. Equal on every
// processor and for every number of threads. base/digest.h is for short texts, byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncline::kernels {

// Thread-safe; allocates and throws nothing.
std::uint64_t digest(const void* memory, std::size_t bytes);

}  // namespace syncline::kernels
