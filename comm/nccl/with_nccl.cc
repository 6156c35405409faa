#include "comm/nccl/with_nccl.h"

#include <algorithm>
#include <array>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "comm/nccl/nccl_choice.h"
#include "comm/nccl/nccl_device.h"
#include "comm/nccl/nccl_wire.h"

namespace syncline::comm {
namespace {

// A rank's progress with one step of the start, as sent to the others.
struct Outcome {
  std::uint32_t done = 0, stalled = 0;
  std::array<char, 640> error{};  // "": no error
  NcclUniqueId id{};              // rank 0's
};

class Start {
 public:
  Start(Wire& wire, const NcclOptions& options) : wire_(wire), options_(options) {}

  // The connected device.
  std::shared_ptr<NcclDevice> run();
  // "NCCL 2.28.9, one GPU per rank"
  const std::string& what() const { return what_; }

 private:
  // Every rank's value, in rank order.
  template <class T>
  std::vector<T> exchange(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(wire_.size()));
    const std::vector<std::int64_t> bytes(all.size(), sizeof(T));
    const Collective collective = make_all_gather({.names = remember_names("the start of NCCL")}, &mine, all.data(),
                                                  bytes, wire_.rank(), wire_.size());
    try {
      run_alone(collective);
    } catch (...) {
      wire_.cancel();
      try {
        wire_.poll(collective);  // throws after cancel(): then the wire no longer writes to `all`
      } catch (const std::exception&) {
      }
      throw;
    }
    return all;
  }

  void run_alone(const Collective& collective) {
    Deadline deadline(options_.limit);
    wire_.begin(collective);
    while (true) {
      const Wire::Progress progress = wire_.poll(collective);
      if (progress == Wire::Progress::kDone) return;
      if (progress == Wire::Progress::kMoving) continue;
      if (deadline.pause() == Deadline::End::kNotYet) continue;
      const std::string missing = wire_.missing().text;
      fail<StallError>(wire_.name(), " has waited ", deadline.seconds(), " s for ", describe(collective.header), ": ",
                       missing.empty() ? "at least one other rank has not arrived" : missing);
    }
  }

  // Repeats the step until it is done on all ranks. The ranks exchange outcomes after each call, so that all learn of a
  // failure at once. The first failed rank's error becomes the error of all.
  bool do_everywhere(const std::function<bool(NcclUniqueId&)>& step) {
    while (true) {
      const std::vector<Outcome> all = exchange(attempt(step));
      id_ = all.front().id;
      bool done = true;
      for (const Outcome& outcome : all) {
        done = done && outcome.done != 0;
        if (outcome.error.front() == '\0') continue;
        why_ = outcome.error.data();
        stalled_ = outcome.stalled != 0;
        return false;
      }
      if (done) return true;
    }
  }

  Outcome attempt(const std::function<bool(NcclUniqueId&)>& step) {
    Outcome outcome{.id = id_};
    try {
      outcome.done = step(outcome.id) ? 1 : 0;
    } catch (const CommError& error) {
      const std::string text = error.what();
      std::copy_n(text.begin(), std::min(text.size(), outcome.error.size() - 1), outcome.error.begin());
      outcome.stalled = dynamic_cast<const StallError*>(&error) != nullptr ? 1 : 0;
    }
    return outcome;
  }

  bool connect(NcclDevice& device);

  Wire& wire_;
  const NcclOptions& options_;
  NcclUniqueId id_{};
  std::string what_, why_;  // why_: the error of a failed start
  bool stalled_ = false;
};

bool Start::connect(NcclDevice& device) {
  const auto open = [&](NcclUniqueId& id) {
    device.open(options_.piece_bytes, options_.slots);
    if (wire_.rank() == 0) id = device.make_id();
    return true;
  };
  if (!do_everywhere(open)) return false;
  Deadline deadline(options_.limit);
  bool begun = false;
  return do_everywhere([&](NcclUniqueId&) {
    if (!std::exchange(begun, true)) device.connect(id_);
    return device.connected(deadline);
  });
}

std::shared_ptr<NcclDevice> Start::run() {
  NcclLibrary library{};
  const NcclAvailability mine = look_for_gpus(options_, library);
  what_ = check_nccl(exchange(mine));
  auto device = std::make_shared<NcclDevice>(library, mine, wire_);
  try {
    if (connect(*device)) return device;
  } catch (const CommError&) {
    NcclDevice::end(std::move(device), /*clean=*/false, options_.limit, options_.abort_limit);
    throw;
  }
  const std::string problem = NcclDevice::end(std::move(device), /*clean=*/false, options_.limit, options_.abort_limit);
  if (!problem.empty()) why_ += "; aborted, with an error: " + problem;
  if (stalled_) fail<StallError>(why_);
  fail<CommError>(why_);
}

void check_options(const NcclOptions& options) {
  if (options.piece_bytes < 8 || options.slots < 1 || options.smallest_bytes <= kSmallBytes)
    fail("with_nccl: piece_bytes=", options.piece_bytes, ", slots=", options.slots,
         ", smallest_bytes=", options.smallest_bytes, "; they must be at least 8, 1 and ", kSmallBytes + 1);
}

}  // namespace

std::unique_ptr<Wire> with_nccl(std::unique_ptr<Wire> inner, const NcclOptions& options) {
  check_options(options);
  Start start(*inner, options);
  std::shared_ptr<NcclDevice> device;
  try {
    device = start.run();
  } catch (...) {
    if (!inner->close(/*clean=*/false)) static_cast<void>(inner.release());
    throw;
  }
  if (options.tell && options.tells_choice) options.tell("large all-reduces use " + start.what());
  return std::make_unique<NcclWire>(std::move(inner), std::move(device), options);
}

}  // namespace syncline::comm
