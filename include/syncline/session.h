// Session: the state that one rank's functions share: names, seed and counters of random numbers, learning phase, the
// arena of a step, and (under several ranks) the strategy.
//
// One thread at a time uses a session. `Session::current()` is the calling thread's session: that of the innermost
// SessionScope, otherwise the process's default session. Ranks that are threads give each thread its own session.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "syncline/array.h"
#include "syncline/backend/random.h"
#include "syncline/config.h"
#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

class Strategy;
class Faults;
class UsedVariables;

struct DeleteStrategy {
  void operator()(Strategy* strategy) const;
};
using OwnedStrategy = std::unique_ptr<Strategy, DeleteStrategy>;

// Optimizations of a plan. Without them each operation runs as written; tests compare both.
struct Passes {
  bool simplify = true;  // cheaper forms, constants folded, equal subexpressions joined
  bool fuse = true;      // several elementwise operations in one pass over memory
};

class Session {
 public:
  // Takes the configuration of keras.json. Throws as keras_json() does (syncline/distributed/keras_json.h).
  explicit Session(std::uint64_t seed = 0);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static Session& current();

  // From now on all ranks of the strategy compute each function together; rank 0's seed replaces the others'. Call
  // this before making any function.
  void distribute(OwnedStrategy strategy);
  // Returns to one process; functions make new plans.
  void undistribute();
  Strategy* strategy() const { return strategy_.get(); }
  // Identifies the session, its strategy and its shared variables for plans. distribute(), undistribute() and
  // renew_plans() change it.
  std::uint64_t generation() const { return generation_; }

  // Functions make new plans.
  void renew_plans() { generation_ = next_generation(); }
  // Identifies the strategy; 0 without one.
  std::uint64_t distribution() const { return distribution_; }

  Config& config() { return config_; }
  const Config& config() const { return config_; }

  std::uint64_t seed() const { return seed_; }
  void set_seed(std::uint64_t seed) { seed_ = seed; }
  // The number of steps that drew random numbers.
  std::uint64_t random_step() const { return random_step_; }
  // Sets this counter, and the runs of every existing and future random operation.
  void set_random_step(std::uint64_t step);
  // Run counts of the random operations in order of creation, run-length encoded: (number of the first operation,
  // runs). The last entry also applies to operations created later. A checkpoint saves them, so a resumed run draws the
  // same numbers, also in operations that are made after resuming, for example by a callback.
  using RandomRuns = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  RandomRuns random_runs() const;
  void set_random_runs(const RandomRuns& runs);
  // The key of a new random operation. With `seed`, operations with equal seeds draw equal numbers, as in TensorFlow.
  // Without, the key is the session's seed and the operation's number among those without a seed.
  RandomKey next_random_key(std::optional<std::uint64_t> seed = {});

  // prefix, prefix_1, prefix_2, ...
  std::string unique_name(const std::string& prefix);
  // Keras's get_uid: counts up from 1 for each prefix.
  int uid(const std::string& prefix) { return ++uids_[prefix]; }
  void reset_uids() { uids_.clear(); }

  // Keras's learning phase: a placeholder (bool scalar) until it is set, then a constant. Existing graphs keep theirs.
  Expr learning_phase();
  // True for the learning-phase placeholder of any session, also after the phase was set.
  static bool is_learning_phase(const Expr& x);
  void set_learning_phase(bool training);

  bool manual_initialization() const { return manual_initialization_; }
  void set_manual_initialization(bool manual) { manual_initialization_ = manual; }

  // Forgets names, phase and counters. Existing variables and functions stay usable.
  void clear();

  // Memory for one step: at least `bytes`, 64-byte aligned. A larger request reallocates it and increments
  // `arena_moves`.
  std::byte* arena(std::size_t bytes);
  std::uint64_t arena_moves() const { return arena_moves_; }

  // Memory for the buckets of a step, at least `bytes`; the strategy's shared memory if available. A larger request
  // reallocates it and increments `arena_moves`. Collective.
  std::byte* shared_memory(std::size_t bytes);

  // While a plan has not changed a variable yet, it calls `handler` between two of its steps if `asked` is set. An
  // exception of `handler` ends the run; all variables keep their values. `asked` and what `handler` refers to must
  // outlive the session.
  void set_interruption(const std::atomic<bool>* asked, std::function<void()> handler) {
    interruption_asked_ = asked;
    interruption_ = std::move(handler);
  }
  void interrupt_if_asked() const {
    if (interruption_asked_ != nullptr && interruption_asked_->load(std::memory_order_relaxed)) interruption_();
  }

  // Apply to plans made from now on.
  const Passes& passes() const { return passes_; }
  void set_passes(const Passes& passes) { passes_ = passes; }

  // Faults that a test injects (runtime/placement/faults.h), or null.
  Faults* faults() const { return faults_.get(); }
  UsedVariables& used_variables() { return *used_variables_; }

  // Steps so far of all functions, failed ones included; part of every message's tag.
  std::uint64_t steps() const { return steps_; }
  void count_step(std::span<RandomOp* const> random_ops) {
    ++steps_;
    if (!random_ops.empty()) ++random_step_;
    for (RandomOp* op : random_ops) ++op->runs;
  }

 private:
  static std::uint64_t next_generation();

  std::uint64_t generation_ = next_generation(), distribution_ = 0;
  std::uint64_t seed_ = 0, random_step_ = 0, unseeded_ops_ = 0, random_ops_ = 0, steps_ = 0, arena_moves_ = 1;
  std::vector<std::weak_ptr<RandomOp>> known_random_ops_;  // in order of creation; may hold expired entries
  std::size_t look_for_gone_at_ = 64;                      // remove expired entries at this size
  RandomRuns set_runs_;                                    // also for operations created later
  Config config_;
  Passes passes_;
  std::unique_ptr<Faults> faults_;  // declared before the strategy, which uses them
  std::unique_ptr<UsedVariables> used_variables_;
  bool manual_initialization_ = false;
  OwnedStrategy strategy_;
  const std::atomic<bool>* interruption_asked_ = nullptr;
  std::function<void()> interruption_;
  std::unordered_map<std::string, int> names_, uids_;
  Expr learning_phase_;
  Array arena_;    // never empty: values without elements need an address
  Array buckets_;  // used if the strategy has no shared memory
  std::byte* shared_ = nullptr;
  std::size_t shared_bytes_ = 0;
};

// Makes a session the calling thread's current one during the scope's lifetime.
class SessionScope {
 public:
  explicit SessionScope(Session& session);
  ~SessionScope();
  SessionScope(const SessionScope&) = delete;
  SessionScope& operator=(const SessionScope&) = delete;

 private:
  Session* previous_;
};

}  // namespace syncline
#pragma GCC visibility pop
