// Digests large buffers at memory speed (XXH3). Detects accidental differences; not for security. Equal on every
// processor and for every number of threads. For short texts use base/digest.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace syncline::kernels {

// Thread-safe; allocates and throws nothing.
std::uint64_t digest(const void* memory, std::size_t bytes);

}  // namespace syncline::kernels
