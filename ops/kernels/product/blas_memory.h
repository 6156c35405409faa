// Reserves memory for OpenBLAS under a limit (ulimit -v, ulimit -d). OpenBLAS takes one buffer per multiplying thread
// and retries forever if there is no room. Under a limit, a process ends without OpenBLAS's own end, which may not
// return.
#pragma once

#include <string>

namespace syncline::kernels {

// Returns why OpenBLAS lacks memory for one buffer per thread, or "" if it has enough. Any thread may call it.
std::string lacking_blas_memory();

// Makes OpenBLAS take its buffers now if memory is limited, before other allocations use it. Throws Error if
// there is no room. Call once, before the first product.
void reserve_blas_memory();

// Makes OpenBLAS take `count` buffers, which it keeps.
void take_blas_buffers(int count);

}  // namespace syncline::kernels
