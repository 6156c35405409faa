// The CUDA runtime's part of the stand-in.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "comm/nccl/nccl_library.h"
#include "tests/comm/nccl_stand_in/state.h"

using stand_in::Block;
using stand_in::Lock;
using stand_in::state;
using stand_in::violate;

namespace {

constexpr int kOk = 0;
constexpr int kNotReady = 600;
constexpr int kInvalid = 1;

thread_local int this_threads_device = -1;

int code_to_fail_with() { return state().behaviour.fail_code; }

// A stream's thread: runs the queued work in order, each item after a random delay.
void run(CUstream_st* stream) {
  Lock lock(state().mutex);
  while (true) {
    state().changed.wait(lock, [&] { return !stream->queue.empty() || stream->destroyed; });
    if (stream->queue.empty()) return;
    const std::function<void()> work = std::move(stream->queue.front());
    stream->queue.pop_front();
    stream->busy = true;
    state().random = state().random * 1664525u + 1013904223u;
    const int limit = state().behaviour.delay_us;
    const int delay = limit == 0 ? 0 : static_cast<int>((state().random >> 8) % static_cast<unsigned>(limit));
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(delay));
    work();
    lock.lock();
    stream->busy = false;
    state().changed.notify_all();
  }
}

// If *memory is null, allocates it.
int allocate(const char* call, void** memory, std::size_t bytes, bool on_device) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail(call)) return code_to_fail_with();
  if (this_threads_device < 0) violate(std::string(call) + ": this thread has selected no device");
  auto block = std::make_unique<Block>();
  if (*memory == nullptr) {
    block->memory = std::make_unique<std::byte[]>(bytes);
    *memory = block->memory.get();
  }
  block->begin = static_cast<std::byte*>(*memory);
  block->bytes = bytes;
  block->on_device = on_device;
  state().blocks.push_back(std::move(block));
  return kOk;
}

int release(const char* call, void* memory, bool on_device) {
  const Lock lock(state().mutex);
  const bool fails = stand_in::has_to_fail(call);
  Block* block = stand_in::find_block(call, memory, 1, on_device);
  if (block == nullptr) return kInvalid;
  if (block->users > 0) violate(std::string(call) + ": a stream still uses it");
  block->freed = true;
  std::memset(block->memory.get(), 0xdd, block->bytes);
  return fails ? code_to_fail_with() : kOk;
}

CUevent_st* check_event(const char* call, CUevent_st* event) {
  for (const auto& known : state().events)
    if (known.get() == event && !event->destroyed) return event;
  violate(std::string(call) + ": no event");
  return nullptr;
}

}  // namespace

int stand_in::selected_device() { return this_threads_device; }

extern "C" {

int cudaGetDeviceCount(int* count) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("cudaGetDeviceCount")) return code_to_fail_with();
  *count = state().behaviour.devices;
  return kOk;
}

int cudaSetDevice(int device) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("cudaSetDevice")) return code_to_fail_with();
  if (device < 0 || device >= state().behaviour.devices) return kInvalid;
  this_threads_device = device;
  return kOk;
}

int cudaDeviceGetPCIBusId(char* text, int length, int device) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("cudaDeviceGetPCIBusId")) return code_to_fail_with();
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", state().behaviour.one_gpu ? 1 : device + 1);
  return kOk;
}

int cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = nullptr;
  return allocate("cudaHostAlloc", memory, bytes, false);
}
int cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  return allocate("cudaHostRegister", &memory, bytes, false);
}
int cudaHostUnregister(void* memory) {
  const Lock lock(state().mutex);
  const bool fails = stand_in::has_to_fail("cudaHostUnregister");
  auto& blocks = state().blocks;
  const auto found = std::find_if(blocks.begin(), blocks.end(),
                                  [&](const auto& block) { return block->begin == memory && !block->memory; });
  if (found == blocks.end()) {
    violate("cudaHostUnregister: no pinned memory");
    return kInvalid;
  }
  static_cast<void>(*static_cast<const volatile std::byte*>(memory));  // its owner must not have freed it
  if ((*found)->users > 0) violate("cudaHostUnregister: a stream still uses it");
  else blocks.erase(found);
  return fails ? code_to_fail_with() : kOk;
}
int cudaMalloc(void** memory, std::size_t bytes) {
  *memory = nullptr;
  return allocate("cudaMalloc", memory, bytes, true);
}
int cudaFreeHost(void* memory) { return release("cudaFreeHost", memory, false); }
int cudaFree(void* memory) { return release("cudaFree", memory, true); }

int cudaStreamCreateWithFlags(CUstream_st** stream, unsigned) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("cudaStreamCreateWithFlags")) return code_to_fail_with();
  if (this_threads_device < 0) violate("cudaStreamCreateWithFlags: this thread has selected no device");
  auto made = std::make_unique<CUstream_st>();
  made->device = this_threads_device;
  made->thread = std::thread(run, made.get());
  *stream = made.get();
  state().streams.push_back(std::move(made));
  return kOk;
}

int cudaStreamSynchronize(CUstream_st* stream) {
  Lock lock(state().mutex);
  const bool fails = stand_in::has_to_fail("cudaStreamSynchronize");
  if (stream->awaits_sum) violate("cudaStreamSynchronize: before NCCL has put the sum on the stream");
  state().changed.wait(lock, [&] { return stand_in::idle(*stream); });
  return fails ? code_to_fail_with() : kOk;
}

int cudaStreamDestroy(CUstream_st* stream) {
  bool fails = false;
  {
    const Lock lock(state().mutex);
    fails = stand_in::has_to_fail("cudaStreamDestroy");
    if (stream->destroyed) violate("cudaStreamDestroy: no stream");
    if (!stand_in::idle(*stream)) violate("cudaStreamDestroy: the stream is busy");
    stream->destroyed = true;
    state().changed.notify_all();
  }
  stream->thread.join();
  const Lock lock(state().mutex);
  stream->ended = true;
  return fails ? code_to_fail_with() : kOk;
}

int cudaEventCreateWithFlags(CUevent_st** event, unsigned) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("cudaEventCreateWithFlags")) return code_to_fail_with();
  if (this_threads_device < 0) violate("cudaEventCreateWithFlags: this thread has selected no device");
  state().events.push_back(std::make_unique<CUevent_st>());
  *event = state().events.back().get();
  return kOk;
}

int cudaEventRecord(CUevent_st* event, CUstream_st* stream) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("cudaEventRecord")) return code_to_fail_with();
  if (check_event("cudaEventRecord", event) == nullptr || !stand_in::usable("cudaEventRecord", stream)) return kInvalid;
  if (event->completed != event->recorded) violate("cudaEventRecord: the event is still waited for");
  stand_in::enqueue(stream, [event, number = ++event->recorded] {
    const Lock inner(state().mutex);
    event->completed = number;
    state().changed.notify_all();
  });
  return kOk;
}

int cudaStreamWaitEvent(CUstream_st* stream, CUevent_st* event, unsigned) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("cudaStreamWaitEvent")) return code_to_fail_with();
  if (check_event("cudaStreamWaitEvent", event) == nullptr) return kInvalid;
  if (!stand_in::usable("cudaStreamWaitEvent", stream)) return kInvalid;
  if (event->recorded == 0) violate("cudaStreamWaitEvent: the event was never recorded");
  stand_in::enqueue(stream, [event, number = event->recorded] {
    Lock inner(state().mutex);
    state().changed.wait(inner, [&] { return event->completed >= number; });
  });
  return kOk;
}

int cudaEventQuery(CUevent_st* event) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("cudaEventQuery")) return code_to_fail_with();
  if (check_event("cudaEventQuery", event) == nullptr) return kInvalid;
  if (event->recorded == 0) violate("cudaEventQuery: the event was never recorded");
  return event->completed == event->recorded ? kOk : kNotReady;
}

int cudaEventDestroy(CUevent_st* event) {
  const Lock lock(state().mutex);
  const bool fails = stand_in::has_to_fail("cudaEventDestroy");
  if (check_event("cudaEventDestroy", event) == nullptr) return kInvalid;
  if (event->completed != event->recorded) violate("cudaEventDestroy: the event is still waited for");
  event->destroyed = true;
  return fails ? code_to_fail_with() : kOk;
}

int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int direction, CUstream_st* stream) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("cudaMemcpyAsync")) return code_to_fail_with();
  const bool to_device = direction == 1;
  Block* a = stand_in::find_block("cudaMemcpyAsync", to, bytes, to_device);
  Block* b = stand_in::find_block("cudaMemcpyAsync", from, bytes, !to_device);
  if (a == nullptr || b == nullptr || !stand_in::usable("cudaMemcpyAsync", stream)) return kInvalid;
  if (!(to_device ? b : a)->memory) ++state().calls[stand_in::kCopyOfRegistered];
  ++a->users;
  ++b->users;
  stand_in::enqueue(stream, [=] {
    std::memcpy(to, from, bytes);
    const Lock inner(state().mutex);
    --a->users;
    --b->users;
  });
  return kOk;
}

const char* cudaGetErrorName(int code) { return code == kOk ? "cudaSuccess" : "cudaErrorOfTheStandIn"; }
const char* cudaGetErrorString(int code) { return code == kOk ? "no error" : "the stand-in was told to fail"; }

}  // extern "C"

#define SAME_INTERFACE(name) \
  static_assert(std::is_same_v<decltype(&::name), decltype(syncline::comm::NcclLibrary::name)>)
SAME_INTERFACE(cudaGetDeviceCount);
SAME_INTERFACE(cudaSetDevice);
SAME_INTERFACE(cudaDeviceGetPCIBusId);
SAME_INTERFACE(cudaHostAlloc);
SAME_INTERFACE(cudaFreeHost);
SAME_INTERFACE(cudaHostRegister);
SAME_INTERFACE(cudaHostUnregister);
SAME_INTERFACE(cudaMalloc);
SAME_INTERFACE(cudaFree);
SAME_INTERFACE(cudaStreamCreateWithFlags);
SAME_INTERFACE(cudaStreamSynchronize);
SAME_INTERFACE(cudaStreamWaitEvent);
SAME_INTERFACE(cudaStreamDestroy);
SAME_INTERFACE(cudaEventCreateWithFlags);
SAME_INTERFACE(cudaEventRecord);
SAME_INTERFACE(cudaEventQuery);
SAME_INTERFACE(cudaEventDestroy);
SAME_INTERFACE(cudaMemcpyAsync);
SAME_INTERFACE(cudaGetErrorName);
SAME_INTERFACE(cudaGetErrorString);
