// Faults that tests inject: SYNCLINE_FAULT names the rank, the step and the fault (docs/faults.md). SYNCLINE_FAULT
// without SYNCLINE_ALLOW_FAULTS=1 is an error. The rank announces its faults on standard error.
//
// A session owns its faults; the session's thread calls them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncline {

class Session;
class VariableState;

struct Fault {
  enum Kind : std::uint8_t {
    kKill,        // SIGKILL
    kExit,        // exit(0)
    kStop,        // SIGSTOP
    kSleep,       // numbers[0] milliseconds
    kThrow,       // an exception
    kSkip,        // counts the step without running it
    kSeed,        // another session seed
    kVersion,     // another library version
    kRounding,    // another rounding mode in the calling thread
    kFlip,        // element numbers[0], bit numbers[1] of `variable`
    kSwap,        // starts transfer numbers[0] of the step after numbers[1]
    kCount,       // all-reduces half the elements
    kReduce,      // max instead of sum
    kDType,       // integer instead of floating dtype
    kCollective,  // a broadcast instead of an all-reduce
  };
  Kind kind = kKill;
  int rank = 0;
  std::uint64_t step = 0;  // happens in this step or the first possible later step
  std::vector<std::uint64_t> numbers{};
  std::string variable{};
  std::string text{};  // as given
};

// Parses a comma-separated list of RANK:STEP:WHAT. Throws ValueError.
std::vector<Fault> parse_faults(std::string_view text);

class Faults {
 public:
  explicit Faults(std::vector<Fault> faults) : faults_(std::move(faults)) {}

  // Call before a function's step is planned. Throws ValueError if a fault names a rank outside the job.
  void before_step(Session& session);
  // Call before a step runs on these variables. Returns true to skip the step.
  bool before_run(std::uint64_t step, std::span<const std::shared_ptr<VariableState>> variables);
  // True if this rank reports another library version.
  bool another_version() const { return another_version_; }

  // The first fault of kind kSwap or later that is due in the step, or null. Stays due until `spend`.
  const Fault* of_transfers(std::uint64_t step) const;
  void spend(const Fault& fault);

 private:
  void choose_own(const Session& session);
  Fault* due(Fault::Kind kind, std::uint64_t step);

  std::vector<Fault> faults_;  // once chosen_: this rank's pending faults
  bool chosen_ = false;
  bool another_version_ = false;
};

}  // namespace syncline
