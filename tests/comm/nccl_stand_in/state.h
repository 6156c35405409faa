// The stand-in's state, for its own files.
//
// One lock guards everything but the contents of memory; the work on a stream runs without it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/nccl_stand_in/stand_in.h"

// The libraries' opaque types.
struct CUevent_st {
  std::uint64_t recorded = 0, completed = 0;
  bool destroyed = false;
};

struct CUstream_st {
  int device = 0;
  std::deque<std::function<void()>> queue;
  bool busy = false, destroyed = false;
  bool ended = false;       // its thread too
  bool awaits_sum = false;  // ncclAllReduce was called, but its sum is not on this stream yet
  std::thread thread;
};

namespace stand_in {

struct Block {
  std::unique_ptr<std::byte[]> memory;  // null if the caller's memory is pinned
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool on_device = false, freed = false;
  int users = 0;  // items of work on streams
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  Behaviour behaviour;
  std::map<std::string, int> calls;
  std::vector<std::string> violations;
  std::vector<std::unique_ptr<Block>> blocks;  // freed ones too, so that a late use is harmless
  std::vector<std::unique_ptr<CUevent_st>> events;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::vector<std::string> live_comms;  // filled in by nccl.cc
  bool aborts_may_end = false;
  std::uint32_t random = 12345;
};
using Lock = std::unique_lock<std::mutex>;

State& state();
int selected_device();  // of this thread, or -1

// Below: the caller holds the lock.

void violate(const std::string& what);
// Counts the call. True if it has to fail; for a call that frees, the caller still frees.
bool has_to_fail(const char* call);
bool has_to_hang(const char* call);
// The block that holds these bytes, or null and a violation.
Block* find_block(const char* call, const void* begin, std::size_t bytes, bool on_device);
// True if this thread may put work on the stream; otherwise adds a violation.
bool usable(const char* call, CUstream_st* stream);
void enqueue(CUstream_st* stream, std::function<void()> work);
bool idle(const CUstream_st& stream);

}  // namespace stand_in
