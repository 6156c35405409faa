// The stand-in for NCCL and the CUDA runtime: a shared library with the calls that comm/nccl uses, for machines without
// a GPU. "GPU memory" is the heap, a stream is a thread that does what it is given late and in order, and ranks
// (threads or processes) meet in POSIX shared memory named by the unique id. It watches the order of the calls and can
// be told to misbehave.
//
// A test that links it calls what is below. A program that only loads it sets STAND_IN="fail=ncclAllReduce fail_at=2"
// (the fields of Behaviour); what was violated or never freed is then printed at the end, with exit code 70.
#pragma once

#include <string>
#include <vector>

namespace stand_in {

struct Behaviour {
  int version = 22809;    // of NCCL
  int devices = 8;        // GPUs that each rank sees
  bool one_gpu = false;   // all of them are one
  std::string fail = {};  // this call fails, the fail_at-th time it is called by whatever thread,
  std::string hang = {};  // and this one is in progress for ever, from the fail_at-th time on
  int fail_at = 0;        // counted from 1
  int fail_code = 1;
  int in_progress = 0;  // so many polls tell that a non-blocking call is in progress
  bool stuck = false;   // sums on a stream do not end, unless aborted
  bool abort_hangs = false;
  int remote_error_at = 0;  // the communicator's state is an error from its so many-th poll on
  int delay_us = 100;       // a stream waits up to this long before each thing it does
};

// Forgets all that was, and behaves like this from now on. Nothing may be alive.
void start_over(const Behaviour& behaviour);
// Lets aborts that hang go on.
void release_aborts();
// How often it was called since start_over().
int calls_of(const std::string& call);
// What was done wrong: uses of freed memory, results read too early, calls after an abort, ...
std::vector<std::string> violations();
// What has not been freed: "cudaMalloc: 3".
std::vector<std::string> alive();

}  // namespace stand_in
