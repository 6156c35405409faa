// NCCL's part of the stand-in.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "comm/nccl/nccl_library.h"
#include "tests/comm/nccl_stand_in/rendezvous.h"
#include "tests/comm/nccl_stand_in/state.h"

using stand_in::Lock;
using stand_in::state;
using stand_in::violate;
using syncline::comm::NcclConfig;
using syncline::comm::NcclUniqueId;

namespace {

constexpr int kOk = 0;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kRemoteError = 6;
constexpr int kInProgress = 7;

int code_to_fail_with() { return state().behaviour.fail_code; }

}  // namespace

struct ncclComm {
  std::string name;  // in stand_in::alive()
  int rank = 0, size = 0, device = 0;
  std::unique_ptr<stand_in::Rendezvous> rendezvous;
  bool joined = false;                // all ranks have come
  bool hangs = false;                 // the call in progress never ends
  int polls_left = 0;                 // until the call in progress ends
  int polls = 0;                      // in total
  std::function<void()> in_progress;  // the effect of the call in progress
  CUstream_st* stream = nullptr;      // of the last sum
  int outstanding = 0;                // unfinished sums on streams
  int state = kOk;
  bool finalized = false, gone = false;
  std::atomic<bool> aborted = false;
};

namespace {

// All communicators ever made, so that a late use is reported and harmless. Guarded by the state's lock.
std::vector<std::unique_ptr<ncclComm>>& comms() {
  static auto* const all = new std::vector<std::unique_ptr<ncclComm>>;
  return *all;
}

bool check_comm(const char* call, ncclComm* comm) {
  const bool known = std::any_of(comms().begin(), comms().end(), [&](const auto& c) { return c.get() == comm; });
  if (known && !comm->gone) return true;
  violate(std::string(call) + ": the communicator has ended, or never was");
  return false;
}

bool busy(const ncclComm& comm) { return comm.hangs || comm.polls_left > 0 || !comm.joined; }

void set_in_progress(const char* call, ncclComm& comm, std::function<void()> effect) {
  comm.hangs = stand_in::has_to_hang(call);
  comm.polls_left = state().behaviour.in_progress;
  comm.in_progress = std::move(effect);
}

void settle(ncclComm& comm) {
  if (comm.in_progress) std::exchange(comm.in_progress, nullptr)();
}

void put_sum_on_stream(ncclComm* comm, CUstream_st* stream, void* data, const stand_in::Sum& sum) {
  stream->awaits_sum = false;
  stand_in::Block* block = stand_in::find_block("ncclAllReduce", data, sum.count * stand_in::width_of(sum.dtype), true);
  if (block == nullptr) return;
  ++block->users;
  ++comm->outstanding;
  const bool stuck = state().behaviour.stuck;
  stand_in::enqueue(stream, [=] {
    const auto stop = [comm] { return comm->aborted.load(); };
    while (stuck && !stop()) std::this_thread::sleep_for(std::chrono::microseconds(100));
    const std::string problem = comm->rendezvous->all_reduce(sum, data, stop);
    const Lock lock(state().mutex);
    if (!problem.empty()) violate(problem);
    --block->users;
    --comm->outstanding;
    state().changed.notify_all();
  });
}

void leave(ncclComm& comm) {
  comm.gone = true;
  comm.rendezvous = nullptr;
  auto& live = state().live_comms;
  live.erase(std::find(live.begin(), live.end(), comm.name));
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("ncclGetVersion")) return code_to_fail_with();
  *version = state().behaviour.version;
  return kOk;
}

int ncclGetUniqueId(NcclUniqueId* id) {
  static std::atomic<int> count = 0;
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("ncclGetUniqueId")) return code_to_fail_with();
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::snprintf(id->internal, sizeof id->internal, "/syncline-stand-in-%d-%d-%lld", getpid(), ++count,
                static_cast<long long>(now));
  return kOk;
}

int ncclCommInitRankConfig(ncclComm** comm, int size, NcclUniqueId id, int rank, NcclConfig* config) {
  const Lock lock(state().mutex);
  *comm = nullptr;
  if (stand_in::has_to_fail("ncclCommInitRankConfig")) return code_to_fail_with();
  if (config->magic != 0xcafebeef || config->size < 20 || config->version > 22809u) return kInvalidArgument;
  if (config->blocking != 0) violate("ncclCommInitRankConfig: the communicator is a blocking one");
  if (size > stand_in::kMostRanks || rank < 0 || rank >= size) return kInvalidArgument;
  if (stand_in::selected_device() < 0) violate("ncclCommInitRankConfig: this thread has selected no device");
  auto made = std::make_unique<ncclComm>();
  made->rank = rank;
  made->size = size;
  made->device = stand_in::selected_device();
  made->name = "communicator of rank " + std::to_string(rank) + id.internal;
  const int gpu = state().behaviour.one_gpu ? 0 : made->device;
  made->rendezvous = std::make_unique<stand_in::Rendezvous>(id.internal, rank, size, gpu);
  state().live_comms.push_back(made->name);
  set_in_progress("ncclCommInitRankConfig", *made, nullptr);
  *comm = made.get();
  comms().push_back(std::move(made));
  return kInProgress;
}

int ncclCommGetAsyncError(ncclComm* comm, int* code) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("ncclCommGetAsyncError")) return code_to_fail_with();
  if (!check_comm("ncclCommGetAsyncError", comm)) return kInvalidArgument;
  if (++comm->polls == state().behaviour.remote_error_at) comm->state = kRemoteError;
  *code = comm->state;
  if (comm->state != kOk) return kOk;
  *code = kInProgress;
  if (comm->hangs || (comm->polls_left > 0 && --comm->polls_left >= 0)) return kOk;
  if (!comm->joined) {
    if (!comm->rendezvous->all_have_come()) return kOk;
    const char* flag = std::getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    const bool may_share = state().behaviour.version >= 23000 && flag != nullptr && std::strcmp(flag, "1") == 0;
    comm->joined = true;
    if (comm->rendezvous->gpu_is_shared() && !may_share) comm->state = kInvalidUsage;
  }
  if (comm->finalized && comm->outstanding > 0) return kOk;
  settle(*comm);
  *code = comm->state;
  return kOk;
}

int ncclAllReduce(const void* send, void* receive, std::size_t count, int dtype, int reduction, ncclComm* comm,
                  CUstream_st* stream) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("ncclAllReduce")) return code_to_fail_with();
  if (!check_comm("ncclAllReduce", comm)) return kInvalidArgument;
  if (busy(*comm) || comm->in_progress) violate("ncclAllReduce: the communicator is busy");
  if (comm->finalized) violate("ncclAllReduce: the communicator is being ended");
  if (!stand_in::usable("ncclAllReduce", stream)) return kInvalidArgument;
  if (stream->device != comm->device) violate("ncclAllReduce: the stream belongs to another GPU");
  if (send != receive || stand_in::width_of(dtype) == 0) return kInvalidArgument;
  stream->awaits_sum = true;
  comm->stream = stream;
  const stand_in::Sum sum{count, dtype, reduction};
  set_in_progress("ncclAllReduce", *comm, [=] { put_sum_on_stream(comm, stream, receive, sum); });
  if (busy(*comm)) return kInProgress;
  settle(*comm);
  return kOk;
}

int ncclCommFinalize(ncclComm* comm) {
  const Lock lock(state().mutex);
  if (stand_in::has_to_fail("ncclCommFinalize")) return code_to_fail_with();
  if (!check_comm("ncclCommFinalize", comm)) return kInvalidArgument;
  if (busy(*comm) || comm->in_progress) violate("ncclCommFinalize: the communicator is busy");
  comm->finalized = true;
  set_in_progress("ncclCommFinalize", *comm, nullptr);
  return kInProgress;
}

int ncclCommDestroy(ncclComm* comm) {
  const Lock lock(state().mutex);
  const bool fails = stand_in::has_to_fail("ncclCommDestroy");
  if (!check_comm("ncclCommDestroy", comm)) return kInvalidArgument;
  if (!comm->finalized || busy(*comm) || comm->outstanding > 0) violate("ncclCommDestroy: before it was finalized");
  leave(*comm);
  return fails ? code_to_fail_with() : kOk;
}

int ncclCommAbort(ncclComm* comm) {
  Lock lock(state().mutex);
  const bool fails = stand_in::has_to_fail("ncclCommAbort");
  if (!check_comm("ncclCommAbort", comm)) return kInvalidArgument;
  const bool hangs = state().behaviour.abort_hangs;
  state().changed.wait(lock, [&] { return !hangs || state().aborts_may_end; });
  comm->aborted = true;
  comm->in_progress = nullptr;
  if (comm->stream != nullptr) comm->stream->awaits_sum = false;
  state().changed.wait(lock, [&] { return comm->outstanding == 0; });
  leave(*comm);
  return fails ? code_to_fail_with() : kOk;
}

const char* ncclGetErrorString(int code) { return code == kRemoteError ? "remote error" : "an error of the stand-in"; }
const char* ncclGetLastError(ncclComm*) { return "last words"; }

}  // extern "C"

#define SAME_INTERFACE(name) \
  static_assert(std::is_same_v<decltype(&::name), decltype(syncline::comm::NcclLibrary::name)>)
SAME_INTERFACE(ncclGetVersion);
SAME_INTERFACE(ncclGetUniqueId);
SAME_INTERFACE(ncclCommInitRankConfig);
SAME_INTERFACE(ncclCommGetAsyncError);
SAME_INTERFACE(ncclAllReduce);
SAME_INTERFACE(ncclCommFinalize);
SAME_INTERFACE(ncclCommDestroy);
SAME_INTERFACE(ncclCommAbort);
SAME_INTERFACE(ncclGetErrorString);
SAME_INTERFACE(ncclGetLastError);
