#include "syncline/session.h"

#include <algorithm>

#include "ops/graph/leaf.h"
#include "ops/kernels/instruction_sets.h"
#include "runtime/placement/agreement.h"
#include "runtime/placement/faults.h"
#include "runtime/placement/strategy.h"
#include "syncline/backend/core.h"
#include "syncline/distributed/keras_json.h"

namespace syncline {
namespace {

thread_local Session* current_session = nullptr;

constexpr std::uint64_t kPhaseKey = ~std::uint64_t{0};  // of the learning phase only

[[maybe_unused]] const bool gives_config = set_config_source([]() -> Config& { return Session::current().config(); });

// Called once, by the first session of a process. Kernels that need no session may have run before.
bool limit_kernels(const std::string& simd) {
  const std::int64_t allowed = kernels::instruction_sets_of(simd);
  if (allowed != kernels::instruction_sets_of("best")) kernels::limit_instruction_sets(allowed);
  return true;
}

// The runs of operation `number`; empty if it precedes all entries.
std::optional<std::uint64_t> runs_of(const Session::RandomRuns& runs, std::uint64_t number) {
  std::optional<std::uint64_t> found;
  for (const auto& [from, count] : runs)
    if (number >= from) found = count;
  return found;
}

}  // namespace

Session::Session(std::uint64_t seed)
    : seed_(seed),
      config_(keras_json().config),
      used_variables_(std::make_unique<UsedVariables>()),
      arena_(DType::kUint8, Shape{64}) {
  [[maybe_unused]] static const bool limited = limit_kernels(keras_json().simd);
  if (!keras_json().faults.empty()) faults_ = std::make_unique<Faults>(parse_faults(keras_json().faults));
}

Session::~Session() = default;

void DeleteStrategy::operator()(Strategy* strategy) const { delete strategy; }

Session& Session::current() {
  static Session process_session;
  return current_session != nullptr ? *current_session : process_session;
}

std::uint64_t Session::next_generation() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void Session::distribute(OwnedStrategy strategy) {
  std::unique_ptr<Faults> faults = std::move(faults_);  // undistribute() would clear the new rank's faults
  undistribute();
  faults_ = std::move(faults);
  strategy_ = std::move(strategy);
  distribution_ = generation_;
  if (faults_) strategy_->inject(*faults_);
  agree_on_instruction_sets(*strategy_, keras_json().simd == "common");
  strategy_->broadcast("the seed", &seed_, sizeof seed_);
}

void Session::undistribute() {
  distribution_ = 0;
  generation_ = next_generation();
  strategy_.reset();
  faults_.reset();  // they name a rank
  used_variables_->clear();
  shared_ = nullptr;
  shared_bytes_ = 0;
  ++arena_moves_;
}

RandomKey Session::next_random_key(std::optional<std::uint64_t> seed) {
  const RandomKey key = seed ? RandomKey(*seed) : RandomKey(seed_, ++unseeded_ops_);
  key.op()->number = ++random_ops_;
  key.op()->runs = runs_of(set_runs_, random_ops_).value_or(0);
  if (known_random_ops_.size() >= look_for_gone_at_) {
    std::erase_if(known_random_ops_, [](const auto& op) { return op.expired(); });
    look_for_gone_at_ = 2 * std::max<std::size_t>(32, known_random_ops_.size());
  }
  known_random_ops_.push_back(key.op());
  return key;
}

void Session::set_random_step(std::uint64_t step) {
  random_step_ = step;
  set_random_runs({{0, step}});
}

Session::RandomRuns Session::random_runs() const {
  RandomRuns runs;
  const auto add = [&](std::uint64_t number, std::uint64_t count) {
    if (runs.empty() || runs.back().second != count) runs.emplace_back(number, count);
  };
  for (const auto& known : known_random_ops_)
    if (const auto op = known.lock()) add(op->number, op->runs);
  if (random_ops_ == 0 && set_runs_.empty()) return runs;
  add(random_ops_ + 1, runs_of(set_runs_, random_ops_ + 1).value_or(0));
  for (const auto& [number, count] : set_runs_)
    if (number > random_ops_ + 1) add(number, count);
  return runs;
}

void Session::set_random_runs(const RandomRuns& runs) {
  if (!runs.empty()) set_runs_ = runs;
  for (const auto& known : known_random_ops_)
    if (const auto op = known.lock()) op->runs = runs_of(runs, op->number).value_or(op->runs);
}

std::string Session::unique_name(const std::string& prefix) {
  std::string name = prefix;
  for (int n = names_[prefix]++; n > 0; n = names_[prefix]++) {
    name = prefix + '_' + std::to_string(n);
    if (names_.try_emplace(name, 1).second) break;
  }
  return name;
}

Expr Session::learning_phase() {
  if (!learning_phase_) learning_phase_ = apply<Placeholder>({}, {DType::kBool, Shape{}, kPhaseKey}, "learning_phase");
  return learning_phase_;
}

bool Session::is_learning_phase(const Expr& x) {
  return x.is<Placeholder>() && x.attrs<Placeholder::Attrs>().key == kPhaseKey;
}

void Session::set_learning_phase(bool training) { learning_phase_ = fill(Shape{}, training ? 1 : 0, DType::kBool); }

void Session::clear() {
  names_.clear();
  uids_.clear();
  learning_phase_ = Expr{};
  unseeded_ops_ = random_ops_ = 0;
  known_random_ops_.clear();
  set_runs_.clear();
  used_variables_->clear();
}

std::byte* Session::arena(std::size_t bytes) {
  if (bytes > arena_.bytes()) {
    arena_ = Array();  // free the old arena first, to limit peak memory
    arena_ = Array(DType::kUint8, Shape{static_cast<std::int64_t>(bytes)});
    ++arena_moves_;
  }
  return arena_.raw();
}

std::byte* Session::shared_memory(std::size_t bytes) {
  if (bytes == 0) return arena_.raw();  // values without elements need an address too
  if (bytes <= shared_bytes_) return shared_;
  ++arena_moves_;
  shared_bytes_ = 0;  // in case the request throws
  buckets_ = Array();
  shared_ = strategy_->shared_memory(bytes);
  if (shared_ == nullptr) {
    buckets_ = Array(DType::kUint8, Shape{static_cast<std::int64_t>(bytes)});
    shared_ = buckets_.raw();
  }
  shared_bytes_ = bytes;
  return shared_;
}

SessionScope::SessionScope(Session& session) : previous_(current_session) { current_session = &session; }
SessionScope::~SessionScope() { current_session = previous_; }

}  // namespace syncline
