#include "comm/nccl/nccl_wire.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace syncline::comm {

NcclWire::NcclWire(std::unique_ptr<Wire> inner, std::shared_ptr<NcclDevice> device, const NcclOptions& options)
    : inner_(std::move(inner)), options_(options), device_(std::move(device)) {}

NcclWire::~NcclWire() { end_device(/*clean=*/false); }

bool NcclWire::takes(const Collective& collective) const {
  // NCCL's maximum and minimum drop NaN.
  const bool keeps_nan = collective.reduce == Reduce::kSum || !is_floating(collective.dtype);
  return collective.kind == Kind::kAllReduce && collective.bytes >= options_.smallest_bytes && keeps_nan &&
         nccl_takes(collective.dtype);
}

// A rank with another count may choose the other path. The inner wire then reports that the headers differ, regardless
// of the data.
void NcclWire::begin(const Collective& collective) {
  phase_ = takes(collective) ? Phase::kAgreeing : Phase::kOther;
  if (phase_ == Phase::kOther) {
    if (collective.kind == Kind::kSharedMemory) pin_shared_memory(0);  // the inner wire frees what is pinned
    inner_->begin(collective);
    return;
  }
  agreement_ = collective;
  agreement_.count = agreement_.bytes = 0;
  inner_->begin(agreement_);
}

Wire::Progress NcclWire::poll(const Collective& collective) {
  if (phase_ == Phase::kOther) {
    const Progress progress = inner_->poll(collective);
    if (collective.kind == Kind::kSharedMemory && progress == Progress::kDone) pin_shared_memory(collective.bytes);
    return progress;
  }
  if (phase_ == Phase::kAgreeing) {
    if (const Progress progress = inner_->poll(agreement_); progress != Progress::kDone) return progress;
    start(collective);
    phase_ = Phase::kMoving;
  }
  inner_->answer();
  const std::uint64_t before = Steps::resumed();
  if (advance()) return Progress::kDone;
  return Steps::resumed() == before ? Progress::kStill : Progress::kMoving;
}

// Pins the new shared memory, or unpins the old one if `bytes` is 0. Where the inner wire has no shared memory, pinned
// memory takes its place.
void NcclWire::pin_shared_memory(std::int64_t bytes) {
  if (device_ == nullptr) return;
  try {
    if (bytes == 0) device_->unpin();
    else device_->pin(inner_->shared_memory(), bytes);
  } catch (const CommError& error) {
    if (options_.tell) options_.tell(join_text(error.what(), bytes == 0 ? "" : "; all-reduces copy their data"));
  }
}

std::byte* NcclWire::shared_memory() const {
  std::byte* inner = inner_->shared_memory();
  return inner == nullptr && device_ != nullptr ? device_->pinned() : inner;
}

void NcclWire::start(const Collective& collective) {
  if (device_ == nullptr)
    fail<CommError>("NCCL: ", comm::describe(collective.header), " was called after the communicator was aborted");
  deadline_.emplace(options_.limit, &withdrawn_);
  transfer_.emplace(all_reduce(collective));
}

// Goes on with the transfer. True at its end.
bool NcclWire::advance() {
  const auto with_end = [&](const CommError& error) {
    transfer_.reset();
    const std::string problem = end_device(/*clean=*/false);
    return join_text(error.what(), "; aborted", problem.empty() ? "" : ", with an error: ", problem);
  };
  if (!transfer_) fail<CommError>("NCCL: rank ", shown(rank()), ": cancelled");
  try {
    device_->select();
    if (!transfer_->advance()) return false;
  } catch (const StallError& error) {
    throw StallError(with_end(error));
  } catch (const CommError& error) {
    throw CommError(with_end(error));
  } catch (...) {
    transfer_.reset();
    throw;
  }
  transfer_.reset();
  return true;
}

Steps NcclWire::all_reduce(const Collective& collective) {
  device_->begin(collective.header);
  auto* data = static_cast<std::byte*>(collective.data);
  const auto width = static_cast<std::int64_t>(size_of(collective.dtype));
  const std::int64_t piece = options_.piece_bytes / width, pieces = (collective.count + piece - 1) / piece;
  const auto count_of = [&](std::int64_t index) { return std::min(piece, collective.count - index * piece); };
  const bool pinned = device_->is_pinned(data, collective.bytes);
  for (std::int64_t step = 0; step < pieces + options_.slots; ++step) {
    const int slot = static_cast<int>(step % options_.slots);
    if (const std::int64_t last = step - options_.slots; last >= 0 && last < pieces) {
      co_await until([&] { return device_->is_finished(slot, *deadline_); });
      if (!pinned) copy(data + last * piece * width, device_->staging(slot), count_of(last) * width);
      ++pieces_;
    }
    if (step < pieces) {
      std::byte* begin = data + step * piece * width;
      if (!pinned) {
        copy(device_->staging(slot), begin, count_of(step) * width);
        begin = device_->staging(slot);
      }
      device_->start(slot, begin, count_of(step), collective.dtype, collective.reduce);
      co_await until([&] { return device_->has_taken_sum(*deadline_); });
      device_->bring_back(slot);
    }
  }
}

void NcclWire::copy(void* to, const void* from, std::int64_t bytes) {
  const std::lock_guard hold(buffers_);
  if (withdrawn_) fail<CommError>("NCCL: rank ", shown(rank()), ": cancelled");
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void NcclWire::cancel() noexcept {
  {
    const std::lock_guard hold(buffers_);
    withdrawn_ = true;
  }
  inner_->cancel();
}

std::string NcclWire::end_device(bool clean) noexcept {
  if (device_ == nullptr) return {};
  const std::weak_ptr<NcclDevice> left = device_;
  std::string problem = NcclDevice::end(std::exchange(device_, nullptr), clean, options_.limit, options_.abort_limit);
  abandoned_ = !left.expired();
  return problem;
}

bool NcclWire::close(bool clean) noexcept {
  const std::string problem = end_device(clean);
  if (!problem.empty() && options_.tell) options_.tell(problem);
  const bool closed = inner_->close(clean);
  return closed && !abandoned_;
}

}  // namespace syncline::comm
