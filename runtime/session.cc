#include "runtime/session.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "ops/core.h"
#include "ops/leaf.h"
#include "runtime/distributor.h"

namespace syncline {
namespace {

thread_local Session* current_session = nullptr;

}  // namespace

Session::Session(std::uint64_t seed) : seed_(seed), arena_(nullptr, [](std::byte* p) { std::free(p); }) {}

Session::~Session() = default;

Session& Session::current() {
  static Session process_session;
  return current_session != nullptr ? *current_session : process_session;
}

void Session::distribute(std::unique_ptr<Distributor> distributor) {
  distributor_ = std::move(distributor);
  distributor_->broadcast(&seed_, sizeof seed_);
}

RandomKey Session::next_random_key(std::optional<std::uint64_t> seed) { return {seed.value_or(seed_), ++random_ops_}; }

std::string Session::unique_name(const std::string& prefix) {
  const int n = names_[prefix]++;
  return n == 0 ? prefix : prefix + '_' + std::to_string(n);
}

Expr Session::learning_phase() {
  if (!learning_phase_) learning_phase_ = apply<Placeholder>({}, {DType::kBool, Shape{}, 0}, "learning_phase");
  return learning_phase_;
}

void Session::set_learning_phase(bool training) { learning_phase_ = fill(Shape{}, training ? 1 : 0, DType::kBool); }

void Session::clear() {
  names_.clear();
  uids_.clear();
  learning_phase_ = Expr{};
  random_ops_ = 0;
}

std::byte* Session::arena(std::size_t bytes) {
  if (bytes > arena_bytes_ || !arena_) {  // never null: values of no elements have an address too
    constexpr std::size_t kPage = 4096;
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
    arena_.reset();  // first: the old and the new one need not exist together
    arena_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, rounded)));
    arena_bytes_ = arena_ ? rounded : 0;
    ++arena_moves_;
    if (!arena_) throw std::bad_alloc();
  }
  return arena_.get();
}

SessionScope::SessionScope(Session& session) : previous_(current_session) { current_session = &session; }
SessionScope::~SessionScope() { current_session = previous_; }

}  // namespace syncline
