// Address space for OpenBLAS, where it is limited (ulimit -v): OpenBLAS takes a buffer for each thread that multiplies,
// and where there is no room it tries again for ever.
#pragma once

#include <string>

namespace syncline::kernels {

// Why OpenBLAS would not find room for a buffer a thread; "" if it does, or has them. Any thread may ask.
std::string lacking_blas_memory();

// Lets OpenBLAS take its buffers now if address space is limited, so that nothing else takes their room. Throws Error
// if there is none. Before the first product, once.
void reserve_blas_memory();

// Lets OpenBLAS take so many buffers, which it keeps.
void take_blas_buffers(int count);

}  // namespace syncline::kernels
