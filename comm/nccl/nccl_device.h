// NcclDevice: one rank's GPU and NCCL communicator, with the streams, events and buffers that pieces of data go
// through.
//
// A piece goes: staging buffer (pinned host memory) -> GPU -> ncclAllReduce -> staging buffer, on a stream each, tied
// together by events; several pieces are under way at once, each in a slot of its own. All is allocated by open().
//
// The communicator is non-blocking: NCCL's own calls return at once and are polled, so a deadline holds for all but the
// calls that end it, and those run in a thread of their own.
//
// Threads: one at a time, any. What fails throws CommError, or StallError past the deadline; then end() is the only
// call left. Nothing is freed but by end().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/nccl/nccl_choice.h"
#include "comm/nccl/nccl_library.h"
#include "comm/worker/job.h"
#include "comm/worker/pauses.h"

namespace syncline::comm {

// How long something may take. Made for one task, used by one thread.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  // `withdrawn` may be null; when it becomes true, patience ends too.
  explicit Patience(std::chrono::duration<double> limit, const std::atomic<bool>* withdrawn = nullptr);

  enum class End { kNotYet, kPast, kWithdrawn };
  // Waits for a moment, longer ones the longer it has lasted.
  End pause();
  double seconds() const { return limit_.count(); }

 private:
  const std::chrono::duration<double> limit_;
  const Clock::time_point begin_ = Clock::now();
  const std::atomic<bool>* const withdrawn_;
  Pauses pauses_;
};

class NcclDevice {
 public:
  NcclDevice(const NcclLibrary& library, const NcclAvailability& found, int rank, int size);
  NcclDevice(const NcclDevice&) = delete;
  NcclDevice& operator=(const NcclDevice&) = delete;

  void open(std::int64_t piece_bytes, int slots);
  NcclUniqueId make_id();
  // Collective, with one id of one rank: begins; then connected() is called until it is true.
  void connect(const NcclUniqueId& id);
  bool connected(Patience& patience);

  // Before the first piece of a job: on this thread. `header` stays alive until the next begin() or end().
  void begin(const Header& header);
  std::byte* staging(int slot) { return static_cast<std::byte*>(slots_[slot].staging); }
  // Sends the first `count` elements of a slot's staging buffer on their way.
  void start(int slot, std::int64_t count, DType dtype, Reduce reduce, Patience& patience);
  // Returns when the slot's staging buffer holds the result.
  void finish(int slot, Patience& patience);

  // Ends the communicator, in good order if `clean` and within `limit`, else by an abort that is waited for as long as
  // `abort_limit`, and frees everything. Returns "", or what went wrong. If the abort hangs, a thread and all that it
  // still uses are left behind.
  static std::string end(std::shared_ptr<NcclDevice> device, bool clean, std::chrono::duration<double> limit,
                         std::chrono::duration<double> abort_limit) noexcept;

 private:
  struct Slot {
    void* staging = nullptr;
    void* buffer = nullptr;
    CUevent_st *arrived = nullptr, *reduced = nullptr, *returned = nullptr;
  };

  struct Problem;

  void select();
  void poll(int code, const char* call, Patience& patience);
  void check_state();
  void pause(const char* call, Patience& patience) const;
  void check_cuda(int code, const char* call) const;
  void check_nccl(int code, const char* call) const;
  std::string doing() const;
  std::string shut_down(bool clean, std::chrono::duration<double> limit);
  void end_communicator(bool clean, std::chrono::duration<double> limit, Problem& problem);
  void free_all(Problem& problem);

  const NcclLibrary library_;
  const int device_, rank_, size_;
  const std::string gpu_;
  ncclComm* comm_ = nullptr;
  CUstream_st *arriving_ = nullptr, *reducing_ = nullptr, *returning_ = nullptr;
  std::vector<Slot> slots_;
  const Header* header_ = nullptr;
};

// Whether NCCL has this dtype. It has no int16.
bool nccl_takes(DType dtype);

}  // namespace syncline::comm
