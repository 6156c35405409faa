// Session: what one rank's program shares between its functions: names, the seed and the counters of random numbers,
// the learning phase, the arena that steps compute in, and (under several ranks) the distributor.
//
// One thread at a time uses a session. `Session::current()` is the calling thread's: the one a SessionScope made
// current, or else the process's default session. Ranks as threads give each thread its own.
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

namespace syncline {

class Distributor;
class Faults;
class UsedVariables;

struct DeleteDistributor {
  void operator()(Distributor* distributor) const;
};
using OwnedDistributor = std::unique_ptr<Distributor, DeleteDistributor>;

// What a plan does only to save time. Without them each operation runs as it was written: tests compare both.
struct Passes {
  bool simplify = true;  // cheaper forms, constants folded, equal subexpressions joined
  bool fuse = true;      // several elementwise operations in one pass over memory
};

class Session {
 public:
  // Begins with the configuration of keras.json. Throws what reading that throws (syncline/distributed/keras_json.h).
  explicit Session(std::uint64_t seed = 0);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static Session& current();

  // From now on functions are computed by all ranks of the distributor together; the seed becomes rank 0's. Before any
  // function is made.
  void distribute(OwnedDistributor distributor);
  // One process again: functions make new plans.
  void undistribute();
  Distributor* distributor() const { return distributor_.get(); }
  // Another number for each session, and from each distribute() or undistribute() on: what a plan was made for.
  std::uint64_t generation() const { return generation_; }

  Config& config() { return config_; }
  const Config& config() const { return config_; }

  std::uint64_t seed() const { return seed_; }
  void set_seed(std::uint64_t seed) { seed_ = seed; }
  // How many steps drew random numbers.
  std::uint64_t random_step() const { return random_step_; }
  // Each operation, also one that is made later, goes on as if it had run in all of them.
  void set_random_step(std::uint64_t step);
  // How often each operation has run, in the order of creation: (its number, runs), an entry where the runs change.
  // The last entry is for those that are still to be made. Saved with a checkpoint, so that a resumed run goes on with
  // the same numbers, also in operations that it makes after it was resumed, as a callback may.
  using RandomRuns = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  RandomRuns random_runs() const;
  void set_random_runs(const RandomRuns& runs);
  // A new random operation's key: its own seed, so that operations with equal seeds draw equal numbers, as in
  // TensorFlow; or else the session's, and its number among the operations without a seed.
  RandomKey next_random_key(std::optional<std::uint64_t> seed = {});

  // prefix, prefix_1, prefix_2, ...
  std::string unique_name(const std::string& prefix);
  // Keras's get_uid: counts up from 1 for each prefix.
  int uid(const std::string& prefix) { return ++uids_[prefix]; }
  void reset_uids() { uids_.clear(); }

  // Keras's learning phase: a placeholder (bool scalar) until it is set, then a constant. A graph keeps the one that it
  // was made with.
  Expr learning_phase();
  // Whether it is such a placeholder, of this session's present or of its past.
  static bool is_learning_phase(const Expr& x);
  void set_learning_phase(bool training);

  bool manual_initialization() const { return manual_initialization_; }
  void set_manual_initialization(bool manual) { manual_initialization_ = manual; }

  // Forgets names, phase and counters; variables and functions that somebody holds stay usable.
  void clear();

  // Memory for one step, at least `bytes`, 64-byte aligned. Grows; a larger request moves it, and `arena_moves` counts
  // that.
  std::byte* arena(std::size_t bytes);
  std::uint64_t arena_moves() const { return arena_moves_; }

  // Memory for the buckets of a step, at least `bytes`: the distributor's, where it has such memory. Grows; a larger
  // request moves it, which counts as a move of the arena. All ranks ask for it together.
  std::byte* shared_memory(std::size_t bytes);

  // Between two steps of a plan, as long as it has changed no variable, `handler` is called if `asked` is set. What it
  // throws ends the run, and every variable has its value from before. Both must outlive the session.
  void set_interruption(const std::atomic<bool>* asked, std::function<void()> handler) {
    interruption_asked_ = asked;
    interruption_ = std::move(handler);
  }
  void interrupt_if_asked() const {
    if (interruption_asked_ != nullptr && interruption_asked_->load(std::memory_order_relaxed)) interruption_();
  }

  // Of plans that are made from now on.
  const Passes& passes() const { return passes_; }
  void set_passes(const Passes& passes) { passes_ = passes; }

  // Those that a test injects (runtime/placement/faults.h), or null.
  Faults* faults() const { return faults_.get(); }
  UsedVariables& used_variables() { return *used_variables_; }

  // Steps so far, over all functions, with those that failed: part of every message's tag.
  std::uint64_t steps() const { return steps_; }
  void count_step(std::span<RandomOp* const> random_ops) {
    ++steps_;
    if (!random_ops.empty()) ++random_step_;
    for (RandomOp* op : random_ops) ++op->runs;
  }

 private:
  static std::uint64_t next_generation();

  std::uint64_t generation_ = next_generation();
  std::uint64_t seed_ = 0, random_step_ = 0, unseeded_ops_ = 0, random_ops_ = 0, steps_ = 0, arena_moves_ = 1;
  std::vector<std::weak_ptr<RandomOp>> known_random_ops_;  // in the order of creation, and some that are gone
  std::size_t look_for_gone_at_ = 64;                      // so many
  RandomRuns set_runs_;                                    // of operations that are still to be made
  Config config_;
  Passes passes_;
  std::unique_ptr<Faults> faults_;  // outlive the distributor
  std::unique_ptr<UsedVariables> used_variables_;
  bool manual_initialization_ = false;
  OwnedDistributor distributor_;
  const std::atomic<bool>* interruption_asked_ = nullptr;
  std::function<void()> interruption_;
  std::unordered_map<std::string, int> names_, uids_;
  Expr learning_phase_;
  Array arena_;    // never empty: values of no elements have an address too
  Array buckets_;  // where the distributor has no memory for them
  std::byte* shared_ = nullptr;
  std::size_t shared_bytes_ = 0;
};

// Makes a session the calling thread's current one for the scope's life.
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
