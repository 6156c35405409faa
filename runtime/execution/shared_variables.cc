#include "runtime/execution/shared_variables.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "runtime/placement/differing_value.h"
#include "runtime/placement/variable_rows.h"
#include "runtime/schedule/arena.h"
#include "syncline/session.h"

namespace syncline {
namespace {

const std::shared_ptr<VariableState>& state_of(const Update& update) {
  return update.target.expr().attrs<VariableLeaf::Attrs>().state;
}

// The variables to share: large ones whose new values are elementwise and read by such updates only. An output that
// reads the new value prevents it.
std::vector<std::shared_ptr<VariableState>> new_shared(std::span<const Expr> values, std::span<const Update> updates,
                                                       std::span<const Placement> wanted, std::int64_t share_from) {
  const std::size_t outputs = values.size() - updates.size();
  std::vector<Placement> tried(wanted.begin(), wanted.end());
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const VariableState& state = *state_of(updates[i]);
    const bool large =
        static_cast<std::int64_t>(state.value().bytes()) >= share_from && state.value().shape().ndim() > 0;
    if (large && !state.partial() && runs_by_rows(values[outputs + i].node()))
      tried[outputs + i] = Placement::split(0, Placement::kOnNode);
  }
  const ValueSet by_rows = values_by_rows(values, tried);
  std::vector<std::shared_ptr<VariableState>> found;
  for (std::size_t i = 0; i < updates.size(); ++i)
    if (state_of(updates[i])->shared() == nullptr && by_rows.contains(values[outputs + i]))
      found.push_back(state_of(updates[i]));
  return found;
}

void share(Session& session, std::span<const std::shared_ptr<VariableState>> variables) {
  std::size_t bytes = 0;
  for (const auto& state : variables) bytes += 2 * aligned(state->value().bytes());
  const comm::NodeBlock block = session.strategy()->variable_memory(bytes);
  if (block.begin == nullptr) return;
  std::byte* at = block.begin;
  const auto take = [&](const Array& value) {
    return Array::borrow(value.dtype(), value.shape(), std::exchange(at, at + aligned(value.bytes())));
  };
  for (const auto& state : variables) {
    const Array now = take(state->value()), next = take(state->value());
    state->share({now, next, block.memory, session.distribution()});
    state->set_changed(true);  // the next step moves it
  }
  session.renew_plans();
}

// The variables that an earlier job has shared get memory of their own.
void take_back(const Session& session, std::span<const Update> updates) {
  for (const Update& update : updates)
    if (VariableState& state = *state_of(update);
        state.shared() != nullptr && state.shared()->distribution != session.distribution())
      state.unshare();
}

}  // namespace

std::vector<Placement> place_updates(Session& session, const RowShares& shares, std::span<const Expr> values,
                                     std::span<const Update> updates) {
  take_back(session, updates);
  const std::size_t outputs = values.size() - updates.size();
  const Strategy* strategy = session.strategy();
  std::vector<Placement> wanted(values.size());
  const auto place = [&] {
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const VariableState& state = *state_of(updates[i]);
      if (state.partial() && divides_partial_variables(strategy)) wanted[outputs + i] = Placement::partial();
      else if (state.shared() != nullptr) wanted[outputs + i] = shares.of_variables();
    }
  };
  place();
  if (strategy == nullptr) return wanted;
  const auto fresh = new_shared(values, updates, wanted, strategy->share_from());
  if (fresh.empty()) return wanted;
  share(session, fresh);
  place();
  return wanted;
}

void move_to_shared(const Session& session, std::span<VariableState* const> changed, const comm::NodePlace& node) {
  std::vector<VariableState*> own;
  for (VariableState* state : changed)
    if (state->shared() != nullptr && !state->is_in_shared() && state->shared()->distribution == session.distribution())
      own.push_back(state);
  if (own.empty()) return;
  for (const VariableState* state : own) {
    const std::size_t bytes = state->value().bytes(), ranks = static_cast<std::size_t>(node.ranks);
    const std::size_t begin = bytes * static_cast<std::size_t>(node.index) / ranks;
    const std::size_t end = bytes * static_cast<std::size_t>(node.index + 1) / ranks;
    Array now = state->shared()->now;
    std::memcpy(now.raw() + begin, state->value().raw() + begin, end - begin);
  }
  gather_numbers(*session.strategy(), 0, "values moved to shared memory");
  for (VariableState* state : own) state->take_shared();
}

}  // namespace syncline
