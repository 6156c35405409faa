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
    inner_->begin(collective);
    return;
  }
  agreement_ = collective;
  agreement_.count = agreement_.bytes = 0;
  inner_->begin(agreement_);
}

Wire::Progress NcclWire::poll(const Collective& collective) {
  if (phase_ == Phase::kOther) return inner_->poll(collective);
  if (phase_ == Phase::kAgreeing) {
    const Progress progress = inner_->poll(agreement_);
    if (progress == Progress::kWaiting) return progress;
    agreement_moves_ = progress == Progress::kReady;
    phase_ = Phase::kAgreed;
  }
  return Progress::kReady;
}

void NcclWire::transfer(const Collective& collective) {
  if (phase_ == Phase::kOther) {
    inner_->transfer(collective);
    return;
  }
  if (agreement_moves_) inner_->transfer(agreement_);
  if (device_ == nullptr)
    fail<CommError>("NCCL: ", comm::describe(collective.header), " was called after the communicator was aborted");
  const auto with_end = [&](const CommError& error) {
    const std::string problem = end_device(/*clean=*/false);
    return join_text(error.what(), "; aborted", problem.empty() ? "" : ", with an error: ", problem);
  };
  try {
    all_reduce(collective);
  } catch (const StallError& error) {
    throw StallError(with_end(error));
  } catch (const CommError& error) {
    throw CommError(with_end(error));
  }
}

void NcclWire::all_reduce(const Collective& collective) {
  Deadline deadline(options_.limit, &withdrawn_);
  device_->begin(collective.header);
  auto* data = static_cast<std::byte*>(collective.data);
  const auto width = static_cast<std::int64_t>(size_of(collective.dtype));
  const std::int64_t piece = options_.piece_bytes / width, pieces = (collective.count + piece - 1) / piece;
  const auto count_of = [&](std::int64_t index) { return std::min(piece, collective.count - index * piece); };
  for (std::int64_t step = 0; step < pieces + options_.slots; ++step) {
    const int slot = static_cast<int>(step % options_.slots);
    if (const std::int64_t last = step - options_.slots; last >= 0 && last < pieces) {
      device_->finish(slot, deadline);
      copy(data + last * piece * width, device_->staging(slot), count_of(last) * width);
      ++pieces_;
    }
    if (step < pieces) {
      copy(device_->staging(slot), data + step * piece * width, count_of(step) * width);
      device_->start(slot, count_of(step), collective.dtype, collective.reduce, deadline);
    }
  }
}

void NcclWire::copy(void* to, const void* from, std::int64_t bytes) {
  const std::lock_guard hold(buffers_);
  if (withdrawn_) fail<CommError>("NCCL: rank ", rank(), ": cancelled");
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
  return NcclDevice::end(std::exchange(device_, nullptr), clean, options_.limit, options_.abort_limit);
}

bool NcclWire::close(bool clean) noexcept {
  const std::string problem = end_device(clean);
  if (!problem.empty() && options_.tell) options_.tell(problem);
  return inner_->close(clean);
}

}  // namespace syncline::comm
