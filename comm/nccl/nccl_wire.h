// NcclWire: runs large all-reduces on NCCL and passes all other collectives to an inner wire.
//
// Use it for ranks with one GPU each and an interconnect that NCCL knows best (NVLink, a network card beside the GPU).
// The data are in host memory. A piece moves directly between shared_memory(), which is pinned, and the GPU; other data
// are copied to and from pinned buffers. For a large all-reduce the inner wire still compares the headers and waits for
// late ranks: it gets the collective without its data.
//
// Results are bit-identical on all ranks. NCCL chooses the order of sums by size, topology and version; other wires sum
// along one tree (comm/rounds/sum_tree.h).
//
// node_place() is that of a rank that has no memory to share: ranks that share variables would add their gradients on
// the node, and NCCL would have nothing to do.
//
// Ownership: owns the inner wire and the device. Threads and errors: see Wire in comm/worker/worker.h. An error, a
// deadline or cancel() aborts the NCCL communicator; see NcclDevice::end.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "comm/nccl/nccl_device.h"
#include "comm/nccl/nccl_options.h"
#include "comm/shared/steps.h"
#include "comm/worker/worker.h"

namespace syncline::comm {

class NcclWire : public Wire {
 public:
  // `device` must be connected.
  NcclWire(std::unique_ptr<Wire> inner, std::shared_ptr<NcclDevice> device, const NcclOptions& options);
  ~NcclWire() override;

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  int shown(int rank) const override { return inner_->shown(rank); }
  int job_size() const override { return inner_->job_size(); }
  void begin(const Collective& collective) override;
  Progress poll(const Collective& collective) override;
  void post_note(std::uint64_t note) override { inner_->post_note(note); }
  std::optional<std::uint64_t> take_note() override { return inner_->take_note(); }
  Missing missing() const override { return inner_->missing(); }
  bool lowest_living() const override { return inner_->lowest_living(); }
  std::byte* shared_memory() const override;
  const std::byte* shared_memory_of(int rank) const override { return inner_->shared_memory_of(rank); }
  bool one_node() const override { return inner_->one_node(); }
  NodePlace node_place() const override { return {.most = 0}; }
  NodeBlock take_node_memory() override { return inner_->take_node_memory(); }
  void publish(const Position& position) noexcept override { inner_->publish(position); }
  void ask_around() noexcept override { inner_->ask_around(); }
  std::string describe() const override { return inner_->describe() + ", NCCL for large all-reduces"; }
  bool adds_along_tree() const override { return false; }
  std::string layout() const override { return inner_->layout() + ", NCCL for large all-reduces: " + nodes(); }
  std::string nodes() const override { return inner_->nodes(); }
  std::uint64_t moved() const noexcept override { return pieces_ + inner_->moved(); }
  std::optional<Arrival> last_arrival() const override { return inner_->last_arrival(); }
  void cancel() noexcept override;
  bool close(bool clean) noexcept override;

 private:
  enum class Phase { kOther, kAgreeing, kMoving };

  bool takes(const Collective& collective) const;
  void start(const Collective& collective);
  void pin_shared_memory(std::int64_t bytes);
  bool advance();
  Steps all_reduce(const Collective& collective);
  void copy(void* to, const void* from, std::int64_t bytes);
  std::string end_device(bool clean) noexcept;

  const std::unique_ptr<Wire> inner_;
  const NcclOptions options_;
  std::shared_ptr<NcclDevice> device_;  // null after its end
  Phase phase_ = Phase::kOther;
  Collective agreement_;              // the current collective without its data, for the inner wire
  std::optional<Deadline> deadline_;  // of the transfer under way
  std::optional<Steps> transfer_;

  bool abandoned_ = false;  // an abort hangs: its thread and the GPU may still use pinned memory

  std::mutex buffers_;  // held while data are copied from or to the caller's memory
  std::atomic<bool> withdrawn_ = false;
  std::atomic<std::uint64_t> pieces_ = 0;  // that NCCL has reduced
};

}  // namespace syncline::comm
