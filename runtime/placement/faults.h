// Faults that a test injects: what SYNCLINE_FAULT says, on the rank and in the step that it names. docs/faults.md lists
// them. Nothing happens unless SYNCLINE_ALLOW_FAULTS=1 is set too, and the rank says on standard error what it will do.
//
// A session owns its faults; the thread that uses the session calls them.
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
    kSleep,       // for `numbers[0]` milliseconds
    kThrow,       // an exception
    kSkip,        // the step counts, but is not run
    kSeed,        // another seed of the session
    kVersion,     // another version of the library
    kRounding,    // another rounding mode of the calling thread
    kFlip,        // element numbers[0], bit numbers[1] of `variable`
    kSwap,        // transfer numbers[0] of the step is started after numbers[1]
    kCount,       // of an all-reduce: half the elements
    kReduce,      // max for sum
    kDType,       // integers for floating numbers
    kCollective,  // a broadcast for an all-reduce
  };
  Kind kind = kKill;
  int rank = 0;
  std::uint64_t step = 0;  // the first one that it may happen in
  std::vector<std::uint64_t> numbers{};
  std::string variable{};
  std::string text{};  // as it was given
};

// "rank:step:what", several with commas between them. Throws ValueError that names what is wrong.
std::vector<Fault> parse_faults(std::string_view text);

class Faults {
 public:
  explicit Faults(std::vector<Fault> faults) : faults_(std::move(faults)) {}

  // Before a function's step is planned. Throws ValueError for a rank that the job does not have.
  void before_step(Session& session);
  // Before the step is run on these variables. True if it is to be skipped.
  bool before_run(std::uint64_t step, std::span<const std::shared_ptr<VariableState>> variables);
  // Whether the library says that it is of another version.
  bool another_version() const { return another_version_; }

  // The first of kSwap and those behind it that is due in a step, and that is done with once `spend` was called.
  const Fault* of_transfers(std::uint64_t step) const;
  void spend(const Fault& fault);

 private:
  void choose_own(const Session& session);
  Fault* due(Fault::Kind kind, std::uint64_t step);

  std::vector<Fault> faults_;  // once chosen: this rank's that are yet to come
  bool chosen_ = false;
  bool another_version_ = false;
};

}  // namespace syncline
