// The stand-in for NCCL and the CUDA runtime: a shared library with the calls that comm/nccl uses, for machines without
// a GPU. "GPU memory" is the heap, a stream is a thread that runs its work in order with random delays, and ranks
// (threads or processes) meet in POSIX shared memory named by the unique id. It checks the order of the calls and can
// inject failures.
//
// A test that links it uses the functions below. For a program that only loads it, the environment variable STAND_IN
// sets the fields of Behaviour: STAND_IN="fail=ncclAllReduce fail_at=2". At the end of a process with violations or
// leaks, the library prints them and sets the exit code 70.
#pragma once

#include <string>
#include <vector>

namespace stand_in {

struct Behaviour {
  int version = 22809;    // of NCCL
  int devices = 8;        // GPUs that each rank sees
  bool one_gpu = false;   // they are all the same GPU
  std::string fail = {};  // the fail_at-th call of this function fails, on whichever thread
  std::string hang = {};  // calls of this function never end, from the fail_at-th on
  int fail_at = 0;        // counted from 1
  int fail_code = 1;
  int in_progress = 0;  // the number of polls for which a non-blocking call is in progress
  bool stuck = false;   // sums on a stream end only if they are aborted
  bool abort_hangs = false;
  int remote_error_at = 0;  // from this poll on, a communicator's state is a remote error; 0: never
  int delay_us = 100;       // the limit of a stream's delay before each item
};

// Clears the records and sets the behaviour. Nothing may be alive.
void start_over(const Behaviour& behaviour);
// Lets hanging aborts end.
void release_aborts();
// The number of calls of this function since start_over(), or of copies from or to memory that the caller registered.
inline constexpr const char* kCopyOfRegistered = "cudaMemcpyAsync of registered memory";
int calls_of(const std::string& call);
// Wrong uses: of freed memory, results read too early, calls after an abort, ...
std::vector<std::string> violations();
// What is not freed: "cudaMalloc: 3".
std::vector<std::string> alive();

}  // namespace stand_in
