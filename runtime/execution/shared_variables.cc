#include "runtime/execution/shared_variables.h"

#include <cstring>
#include <utility>

#include "base/alignment.h"
#include "ops/graph/leaf.h"
#include "ops/graph/op.h"
#include "runtime/placement/differing_value.h"
#include "runtime/placement/variable_rows.h"
#include "syncline/session.h"

namespace syncline {
namespace {

const std::shared_ptr<VariableState>& state_of(const Update& update) {
  return update.target.expr().attrs<VariableLeaf::Attrs>().state;
}

struct NewlyShared {
  std::shared_ptr<VariableState> state;
  bool split = false;  // between nodes
};

// The variables to share: large ones whose new values are elementwise and read by such updates only. An output that
// reads the new value prevents it. Those whose old values are read by rows too can be split between nodes.
std::vector<NewlyShared> new_shared(std::span<const Expr> values, std::span<const Update> updates,
                                    std::span<const Placement> wanted, const Strategy& strategy) {
  const std::size_t outputs = values.size() - updates.size();
  std::vector<Placement> tried(wanted.begin(), wanted.end());
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const VariableState& state = *state_of(updates[i]);
    const bool large =
        static_cast<std::int64_t>(state.value().bytes()) >= strategy.share_from() && state.value().shape().ndim() > 0;
    if (large && !state.partial() && runs_by_rows(values[outputs + i].node()))
      tried[outputs + i] = Placement::split(0, Placement::kOnNode);
  }
  const RowValues by_rows = values_by_rows(values, tried);
  std::vector<NewlyShared> found;
  for (std::size_t i = 0; i < updates.size(); ++i)
    if (state_of(updates[i])->shared() == nullptr && by_rows.computed.contains(values[outputs + i]))
      found.push_back(
          {state_of(updates[i]), strategy.splits_variables() && by_rows.wanted.contains(updates[i].target.expr())});
  return found;
}

// The bytes of a row, in the shape in which the variable is divided.
std::int64_t row_bytes(const Shape& rows, DType dtype) {
  return rows.product(1, rows.ndim()) * static_cast<std::int64_t>(size_of(dtype));
}

void share(Session& session, std::span<const NewlyShared> variables, const RowShares& shares) {
  // A split variable gets equal memory on all nodes, enough for the node with the most ranks.
  const auto bytes_of = [&](const NewlyShared& v) {
    const Array& value = v.state->value();
    if (!v.split) return aligned(value.bytes());
    const Shape rows = rows_of(value.shape());
    return aligned(
        static_cast<std::size_t>((rows[0] * shares.node.most / shares.ranks() + 1) * row_bytes(rows, value.dtype())));
  };
  std::size_t bytes = 0;
  for (const NewlyShared& v : variables) bytes += 2 * bytes_of(v);
  const comm::NodeBlock block = session.strategy()->variable_memory(bytes);
  if (block.begin == nullptr) return;
  std::byte* at = block.begin;
  for (const NewlyShared& v : variables) {
    const Array& value = v.state->value();
    Shape shape = value.shape();
    std::int64_t before = 0;
    if (v.split) {
      shape = rows_of(shape);
      const std::int64_t begin = shares.node_begin(shape[0]);
      before = begin * row_bytes(shape, value.dtype());
      shape[0] = shares.node_end(shape[0]) - begin;
    }
    const auto take = [&] { return Array::borrow(value.dtype(), shape, std::exchange(at, at + bytes_of(v))); };
    const Array now = take(), next = take();
    v.state->share({now, next, block.memory, session.distribution(), v.split, before});
    v.state->set_agreed(false);  // so that the next step moves it to the shared memory
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
      else if (state.shared() != nullptr && shares.variables_split && !state.shared()->split)
        wanted[outputs + i] = Placement::gathered_rows();
      else if (state.shared() != nullptr) wanted[outputs + i] = shares.of_variables();
    }
  };
  place();
  if (strategy == nullptr) return wanted;
  const auto fresh = new_shared(values, updates, wanted, *strategy);
  if (fresh.empty()) return wanted;
  share(session, fresh, shares);
  place();
  return wanted;
}

void move_to_shared(const Session& session, std::span<VariableState* const> changed, const RowShares& shares) {
  std::vector<VariableState*> own;
  for (VariableState* state : changed)
    if (state->shared() != nullptr && !state->is_in_shared() && state->shared()->distribution == session.distribution())
      own.push_back(state);
  if (own.empty()) return;
  for (const VariableState* state : own) {
    const Array& value = state->value();
    const bool split = state->shared()->split;
    const Shape rows = rows_of(value.shape());
    const std::int64_t unit = split ? row_bytes(rows, value.dtype()) : 1;
    const std::int64_t units = split ? rows[0] : static_cast<std::int64_t>(value.bytes());
    const Placement::Rows among = split ? Placement::kEvenly : Placement::kOnNode;
    const std::int64_t begin = shares.own_begin(units, among) * unit;
    Array now = state->shared()->now;
    std::memcpy(now.raw() + begin - state->shared()->before, value.raw() + begin,
                static_cast<std::size_t>(shares.own_size(units, among) * unit));
  }
  gather_numbers(*session.strategy(), 0, "values moved to shared memory");
  for (VariableState* state : own) state->take_shared();
}

}  // namespace syncline
