// NcclDevice: one rank's GPU and NCCL communicator, with the streams, events and buffers for transfers.
//
// A piece moves from pinned host memory to the GPU, through ncclAllReduce, and back. Each stage has its own stream;
// events order the stages. Several pieces are in flight, each in its own slot, which has a staging buffer for data that
// are not pinned. open() allocates everything.
//
// The communicator is non-blocking: NCCL's calls return at once and are polled, so deadlines hold. The calls that end
// the communicator can block; they run in a thread of their own.
//
// Threads: any thread, one at a time. A failure throws CommError, or StallError past the deadline; afterwards only
// end() may be called. Only end() frees resources.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/nccl/nccl_choice.h"
#include "comm/nccl/nccl_library.h"
#include "comm/worker/backoff.h"
#include "comm/worker/collective.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

// A deadline for one task, used by one thread.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // `withdrawn` may be null. When it becomes true, the end is kWithdrawn.
  explicit Deadline(std::chrono::duration<double> limit, const std::atomic<bool>* withdrawn = nullptr);

  enum class End { kNotYet, kPast, kWithdrawn };
  End look() const;
  // Waits briefly, unless the end has come; later pauses are longer (see Backoff).
  End pause();
  double seconds() const { return limit_.count(); }

 private:
  const std::chrono::duration<double> limit_;
  const Clock::time_point begin_ = Clock::now();
  const std::atomic<bool>* const withdrawn_;
  Backoff backoff_;
};

class NcclDevice {
 public:
  NcclDevice(const NcclLibrary& library, const NcclAvailability& found, const Wire& wire);
  NcclDevice(const NcclDevice&) = delete;
  NcclDevice& operator=(const NcclDevice&) = delete;

  void open(std::int64_t piece_bytes, int slots);
  NcclUniqueId make_id();
  // Collective: all ranks pass the id that one rank made. Call connected() until it returns true.
  void connect(const NcclUniqueId& id);
  bool connected(Deadline& deadline);

  // CUDA selects the GPU per thread: call it on each thread that makes the calls below.
  void select();
  // Call it before the first piece of a collective. `header` must live until the next begin() or end().
  void begin(const Header& header);
  // Pins the caller's memory or, if it is null, allocates pinned memory; until unpin() or end(), one block at a time.
  void pin(std::byte* memory, std::int64_t bytes);
  void unpin();
  std::byte* pinned() const { return pinned_; }
  bool is_pinned(const std::byte* data, std::int64_t bytes) const;
  // Three calls for `count` elements at `data`, pinned memory or the slot's staging buffer, none of which waits.
  // start() copies and reduces them. Once has_taken_sum() is true, bring_back() lets the result come. is_finished()
  // tells whether it has.
  std::byte* staging(int slot) { return static_cast<std::byte*>(slots_[slot].staging); }
  void start(int slot, std::byte* data, std::int64_t count, DType dtype, Reduce reduce);
  bool has_taken_sum(const Deadline& deadline);
  void bring_back(int slot);
  bool is_finished(int slot, const Deadline& deadline);

  // Ends the communicator and frees everything. If `clean`, finalizes within `limit`; otherwise aborts. Waits at most
  // `abort_limit` for the abort. Returns "", or the first error. If the abort hangs, its thread and everything that the
  // thread uses leak.
  static std::string end(std::shared_ptr<NcclDevice> device, bool clean, std::chrono::duration<double> limit,
                         std::chrono::duration<double> abort_limit) noexcept;

 private:
  struct Slot {
    void* staging = nullptr;
    void* buffer = nullptr;
    CUevent_st *arrived = nullptr, *reduced = nullptr, *returned = nullptr;
    std::byte* data = nullptr;  // the piece under way
    std::size_t bytes = 0;
  };

  struct Problem;

  bool is_done(int& code, const char* call, const Deadline& deadline);
  void check_state();
  void check_end(Deadline::End end, const char* call, const Deadline& deadline) const;
  void check_cuda(int code, const char* call) const;
  void check_nccl(int code, const char* call) const;
  std::string doing() const;
  std::string shut_down(bool clean, std::chrono::duration<double> limit);
  void end_communicator(bool clean, std::chrono::duration<double> limit, Problem& problem);
  void free_all(Problem& problem);

  const NcclLibrary library_;
  const int device_, rank_, size_;
  const std::string name_;  // "rank 1 of 3"
  const std::string gpu_;
  ncclComm* comm_ = nullptr;
  CUstream_st *arriving_ = nullptr, *reducing_ = nullptr, *returning_ = nullptr;
  std::vector<Slot> slots_;
  std::byte* pinned_ = nullptr;
  std::int64_t pinned_bytes_ = 0;
  bool owns_pinned_ = false;
  int sum_ = 0;  // what the last ncclAllReduce has returned
  const Header* header_ = nullptr;
};

// Whether NcclDevice reduces this dtype: all but bool, int16 (which NCCL lacks) and float16.
bool nccl_takes(DType dtype);

}  // namespace syncline::comm
