#include "comm/nccl/nccl_device.h"

#include <functional>
#include <future>
#include <utility>

#include "base/block_signals.h"

namespace syncline::comm {
namespace {

constexpr const char* kAdvice = "; NCCL_DEBUG=WARN makes NCCL print details, SYNCLINE_TRANSPORT=mpi avoids NCCL";

int nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kUint8: return kNcclUint8;
    case DType::kInt8: return kNcclInt8;
    case DType::kInt32: return kNcclInt32;
    case DType::kInt64: return kNcclInt64;
    case DType::kFloat32: return kNcclFloat32;
    case DType::kFloat64: return kNcclFloat64;
    case DType::kBool:
    case DType::kInt16:
    case DType::kFloat16: break;
  }
  fail<InternalError>("NCCL does not support ", dtype);
}

int nccl_reduction(Reduce reduce) {
  switch (reduce) {
    case Reduce::kSum: return kNcclSum;
    case Reduce::kMax: return kNcclMax;
    case Reduce::kMin: return kNcclMin;
  }
  fail<InternalError>("unknown reduction ", static_cast<int>(reduce));
}

}  // namespace

// Runs the steps of a shutdown, each regardless of earlier failures. Keeps the first error.
struct NcclDevice::Problem {
  std::string text;

  bool attempt(const std::function<void()>& step) {
    try {
      step();
      return true;
    } catch (const CommError& error) {
      if (text.empty()) text = error.what();
      return false;
    }
  }
};

bool nccl_takes(DType dtype) { return dtype != DType::kBool && dtype != DType::kInt16 && dtype != DType::kFloat16; }

Deadline::Deadline(std::chrono::duration<double> limit, const std::atomic<bool>* withdrawn)
    : limit_(limit), withdrawn_(withdrawn) {}

Deadline::End Deadline::look() const {
  if (withdrawn_ != nullptr && *withdrawn_) return End::kWithdrawn;
  return Clock::now() - begin_ >= limit_ ? End::kPast : End::kNotYet;
}

Deadline::End Deadline::pause() {
  const End end = look();
  if (end == End::kNotYet) backoff_.next();
  return end;
}

NcclDevice::NcclDevice(const NcclLibrary& library, const NcclAvailability& found, const Wire& wire)
    : library_(library),
      device_(found.device),
      rank_(wire.rank()),
      size_(wire.size()),
      name_(wire.name()),
      gpu_(found.gpu.data()) {}

void NcclDevice::select() { check_cuda(library_.cudaSetDevice(device_), "cudaSetDevice"); }

void NcclDevice::open(std::int64_t piece_bytes, int slots) {
  select();
  const auto bytes = static_cast<std::size_t>(piece_bytes);
  for (CUstream_st** stream : {&arriving_, &reducing_, &returning_})
    check_cuda(library_.cudaStreamCreateWithFlags(stream, kCudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  slots_.resize(static_cast<std::size_t>(slots));
  for (Slot& slot : slots_) {
    check_cuda(library_.cudaHostAlloc(&slot.staging, bytes, kCudaHostAllocDefault), "cudaHostAlloc");
    check_cuda(library_.cudaMalloc(&slot.buffer, bytes), "cudaMalloc");
    for (CUevent_st** event : {&slot.arrived, &slot.reduced, &slot.returned})
      check_cuda(library_.cudaEventCreateWithFlags(event, kCudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
}

NcclUniqueId NcclDevice::make_id() {
  NcclUniqueId id{};
  check_nccl(library_.ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

void NcclDevice::connect(const NcclUniqueId& id) {
  select();
  NcclConfig config;
  const int code = library_.ncclCommInitRankConfig(&comm_, size_, id, rank_, &config);
  if (code != kNcclInProgress) check_nccl(code, "ncclCommInitRankConfig");
}

bool NcclDevice::connected(Deadline& deadline) {
  int state = kNcclSuccess;
  check_nccl(library_.ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
  if (state == kNcclInProgress) check_end(deadline.pause(), "ncclCommInitRankConfig", deadline);
  else check_nccl(state, "ncclCommInitRankConfig");
  return state == kNcclSuccess;
}

void NcclDevice::begin(const Header& header) { header_ = &header; }

void NcclDevice::pin(std::byte* memory, std::int64_t bytes) {
  select();
  const auto size = static_cast<std::size_t>(bytes);
  owns_pinned_ = memory == nullptr;
  if (owns_pinned_) {
    void* allocated = nullptr;
    check_cuda(library_.cudaHostAlloc(&allocated, size, kCudaHostAllocDefault), "cudaHostAlloc");
    memory = static_cast<std::byte*>(allocated);
  } else {
    check_cuda(library_.cudaHostRegister(memory, size, kCudaHostRegisterDefault), "cudaHostRegister");
  }
  pinned_ = memory;
  pinned_bytes_ = bytes;
}

void NcclDevice::unpin() {
  std::byte* memory = std::exchange(pinned_, nullptr);
  if (memory == nullptr) return;
  select();
  if (owns_pinned_) check_cuda(library_.cudaFreeHost(memory), "cudaFreeHost");
  else check_cuda(library_.cudaHostUnregister(memory), "cudaHostUnregister");
}

bool NcclDevice::is_pinned(const std::byte* data, std::int64_t bytes) const {
  return pinned_ != nullptr && data >= pinned_ && data + bytes <= pinned_ + pinned_bytes_;
}

void NcclDevice::start(int slot, std::byte* data, std::int64_t count, DType dtype, Reduce reduce) {
  Slot& s = slots_[static_cast<std::size_t>(slot)];
  const auto elements = static_cast<std::size_t>(count);
  s.data = data;
  s.bytes = elements * size_of(dtype);
  check_cuda(library_.cudaMemcpyAsync(s.buffer, s.data, s.bytes, kCudaHostToDevice, arriving_), "cudaMemcpyAsync");
  check_cuda(library_.cudaEventRecord(s.arrived, arriving_), "cudaEventRecord");
  check_cuda(library_.cudaStreamWaitEvent(reducing_, s.arrived, 0), "cudaStreamWaitEvent");
  sum_ =
      library_.ncclAllReduce(s.buffer, s.buffer, elements, nccl_type(dtype), nccl_reduction(reduce), comm_, reducing_);
}

// While ncclAllReduce is in progress the sum may not be on its stream yet; an event recorded now would precede it.
bool NcclDevice::has_taken_sum(const Deadline& deadline) { return is_done(sum_, "ncclAllReduce", deadline); }

void NcclDevice::bring_back(int slot) {
  Slot& s = slots_[static_cast<std::size_t>(slot)];
  check_cuda(library_.cudaEventRecord(s.reduced, reducing_), "cudaEventRecord");
  check_cuda(library_.cudaStreamWaitEvent(returning_, s.reduced, 0), "cudaStreamWaitEvent");
  check_cuda(library_.cudaMemcpyAsync(s.data, s.buffer, s.bytes, kCudaDeviceToHost, returning_), "cudaMemcpyAsync");
  check_cuda(library_.cudaEventRecord(s.returned, returning_), "cudaEventRecord");
}

bool NcclDevice::is_finished(int slot, const Deadline& deadline) {
  const int code = library_.cudaEventQuery(slots_[static_cast<std::size_t>(slot)].returned);
  if (code == kCudaSuccess) return true;
  if (code != kCudaNotReady) check_cuda(code, "cudaEventQuery");
  check_state();
  check_end(deadline.look(), "ncclAllReduce", deadline);
  return false;
}

// Whether the communicator has finished the call that returned `code`, which becomes the call's result.
bool NcclDevice::is_done(int& code, const char* call, const Deadline& deadline) {
  if (code == kNcclInProgress) check_nccl(library_.ncclCommGetAsyncError(comm_, &code), "ncclCommGetAsyncError");
  if (code != kNcclInProgress) {
    check_nccl(code, call);
    return true;
  }
  check_end(deadline.look(), call, deadline);
  return false;
}

// Throws errors that appear while the GPU works, such as another rank's.
void NcclDevice::check_state() {
  int state = kNcclSuccess;
  check_nccl(library_.ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
  if (state != kNcclInProgress) check_nccl(state, "ncclAllReduce");
}

void NcclDevice::check_end(Deadline::End end, const char* call, const Deadline& deadline) const {
  switch (end) {
    case Deadline::End::kNotYet: return;
    case Deadline::End::kPast:
      fail<StallError>("NCCL: ", name_, ", ", doing(), ": ", call, " is not done after ", deadline.seconds(),
                       " s on the GPU ", gpu_, ": another rank died, or its GPU or the network between them hangs",
                       kAdvice);
    case Deadline::End::kWithdrawn: fail<CommError>("NCCL: ", name_, ", ", doing(), ": cancelled during ", call);
  }
}

void NcclDevice::check_cuda(int code, const char* call) const {
  if (code == kCudaSuccess) return;
  fail<CommError>("NCCL: ", name_, ", ", doing(), ": ", call, " failed on the GPU ", gpu_, ": ",
                  library_.cudaGetErrorName(code), ", ", library_.cudaGetErrorString(code), " (code ", code, ")",
                  kAdvice);
}

void NcclDevice::check_nccl(int code, const char* call) const {
  if (code == kNcclSuccess) return;
  const char* more = library_.ncclGetLastError(comm_);
  fail<CommError>("NCCL: ", name_, ", ", doing(), ": ", call, " failed on the GPU ", gpu_, ": ",
                  library_.ncclGetErrorString(code), " (code ", code, ")", more == nullptr || *more == '\0' ? "" : ": ",
                  more == nullptr ? "" : more, kAdvice);
}

std::string NcclDevice::doing() const { return header_ == nullptr ? "starting or ending" : describe(*header_); }

std::string NcclDevice::end(std::shared_ptr<NcclDevice> device, bool clean, std::chrono::duration<double> limit,
                            std::chrono::duration<double> abort_limit) noexcept {
  try {
    device->header_ = nullptr;
    std::promise<std::string> promise;
    std::future<std::string> ended = promise.get_future();
    std::thread helper;
    {
      const BlockSignals block;
      helper = std::thread([device = std::move(device), clean, limit, ended = std::move(promise)]() mutable {
        std::string problem = device->shut_down(clean, limit);
        device.reset();
        ended.set_value(std::move(problem));
      });
    }
    if (ended.wait_for((clean ? limit : std::chrono::duration<double>{0}) + abort_limit) == std::future_status::ready) {
      helper.join();
      return ended.get();
    }
    helper.detach();
    return join_text("ncclCommAbort has not returned after ", abort_limit.count(), " s, and is abandoned");
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string NcclDevice::shut_down(bool clean, std::chrono::duration<double> limit) {
  Problem problem;
  problem.attempt([&] { select(); });
  if (comm_ != nullptr) end_communicator(clean, limit, problem);
  free_all(problem);
  return problem.text;
}

void NcclDevice::end_communicator(bool clean, std::chrono::duration<double> limit, Problem& problem) {
  const bool finalized = clean && problem.attempt([&] {
    Deadline deadline(limit);
    for (int code = library_.ncclCommFinalize(comm_); !is_done(code, "ncclCommFinalize", deadline);) deadline.pause();
  });
  ncclComm* comm = std::exchange(comm_, nullptr);
  // Either call may leave work to a thread of NCCL's, which ends the streams' work; free_all() waits for the streams.
  problem.attempt([&] {
    const int code = finalized ? library_.ncclCommDestroy(comm) : library_.ncclCommAbort(comm);
    if (code != kNcclInProgress) check_nccl(code, finalized ? "ncclCommDestroy" : "ncclCommAbort");
  });
}

void NcclDevice::free_all(Problem& problem) {
  const auto release = [&](auto free, auto*& what, const char* call) {
    if (what != nullptr) problem.attempt([&] { check_cuda(free(std::exchange(what, nullptr)), call); });
  };
  for (CUstream_st* stream : {arriving_, reducing_, returning_})
    if (stream != nullptr)
      problem.attempt([&] { check_cuda(library_.cudaStreamSynchronize(stream), "cudaStreamSynchronize"); });
  problem.attempt([&] { unpin(); });
  for (Slot& slot : slots_) {
    for (CUevent_st** event : {&slot.arrived, &slot.reduced, &slot.returned})
      release(library_.cudaEventDestroy, *event, "cudaEventDestroy");
    release(library_.cudaFreeHost, slot.staging, "cudaFreeHost");
    release(library_.cudaFree, slot.buffer, "cudaFree");
  }
  for (CUstream_st** stream : {&arriving_, &reducing_, &returning_})
    release(library_.cudaStreamDestroy, *stream, "cudaStreamDestroy");
}

}  // namespace syncline::comm
