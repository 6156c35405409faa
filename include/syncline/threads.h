// The number of threads that compute. All loops of the process share one pool.
#pragma once

#pragma GCC visibility push(default)
namespace syncline {

inline constexpr int kMostThreads = 4096;

// The maximum number of threads of a loop. Default: the number of processors in the affinity mask of the process.
int thread_count();
// Sets the number of threads for the whole process, 1 to kMostThreads; with 1, every loop runs on its caller. Do not
// call while a function runs. Throws ValueError.
void set_thread_count(int n);

}  // namespace syncline
#pragma GCC visibility pop
