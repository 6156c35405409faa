#include "runtime/schedule/transfer_names.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "ops/graph/leaf.h"
#include "ops/graph/op.h"

namespace syncline {
namespace {

constexpr std::size_t kMostNames = 8;

bool is_transfer(const Expr& e) { return e.is<AllReduce>() || e.is<ReduceScatter>() || e.is<AllGather>(); }

// The transfers that a value needs directly, not through other transfers; the nearest come first.
std::vector<Expr> nearest_transfers(const Expr& root) {
  std::vector<Expr> found, open{root};
  ValueSet seen;
  for (std::size_t next = 0; next < open.size(); ++next) {
    const Expr e = open[next];
    if (!seen.insert(e.node())) continue;
    if (is_transfer(e)) found.push_back(e);
    else open.insert(open.end(), e.node().inputs.begin(), e.node().inputs.end());
  }
  return found;
}

// The variables that transferred values are computed from. Excludes optimizers' slots, which have their parameters'
// shapes but do not influence gradients; so the gathers of new values do not count.
std::unordered_set<const VariableState*> variables_before_transfers(std::span<const std::shared_ptr<const Node>> nodes,
                                                                    std::span<const Expr> new_values) {
  std::vector<Expr> before;
  for (const auto& node : nodes)
    if (is_transfer(Expr(node)) && std::ranges::count(new_values, Expr(node)) == 0) before.push_back(node->inputs[0]);
  std::unordered_set<const VariableState*> found;
  for (const auto& node : nodes_under(before))
    if (const Expr e(node); e.is<VariableLeaf>()) found.insert(e.attrs<VariableLeaf::Attrs>().state.get());
  return found;
}

}  // namespace

TransferNames::TransferNames(std::span<const std::shared_ptr<const Node>> nodes, std::span<const Expr> roots,
                             std::span<const Update> updates) {
  if (std::none_of(nodes.begin(), nodes.end(), [](const auto& node) { return is_transfer(Expr(node)); })) return;
  const std::size_t outputs = roots.size() - updates.size();
  const auto before = variables_before_transfers(nodes, roots.subspan(outputs));
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const Variable& target = updates[i].target;
    // The variable's own gradient is the nearest transfer; a norm of all gradients, for example, is farther away.
    bool may_be_gradient = before.contains(&target.state());
    Expr value = roots[outputs + i];
    if (value.is<AllGather>()) {  // the nodes exchange its rows
      note(value, {.name = target.name(), .gradient = false, .updates = true});
      value = value.input(0);
    }
    for (const Expr& transfer : nearest_transfers(value)) {
      const bool gradient = may_be_gradient && transfer.shape().size() == target.shape().size();  // may be by rows
      may_be_gradient = may_be_gradient && !gradient;
      note(transfer, {.name = target.name(), .gradient = gradient, .updates = true});
    }
  }
  for (std::size_t i = 0; i < outputs; ++i)
    for (const Expr& transfer : nearest_transfers(roots[i]))
      note(transfer, {.name = join_text("output ", roots[i].name().empty() ? join_text(i) : roots[i].name())});
}

// An optimizer's slots also need the gradient. Prefer the parameter's name, which users know.
void TransferNames::note(const Expr& transfer, const Use& use) {
  const auto [known, fresh] = uses_.try_emplace(transfer, use);
  if (!fresh && use.gradient && !known.gradient) known = use;
}

std::string TransferNames::of(std::span<const Expr> transfers) const {
  static constexpr std::array kKinds{"gradients of ", "new values of ", "", "values within the step: "};
  std::array<std::string, kKinds.size()> lists;
  std::array<std::size_t, kKinds.size()> counts{};
  for (const Expr& transfer : transfers) {
    const Use* use = uses_.find(transfer);
    const std::size_t kind = use == nullptr ? 3 : use->gradient ? 0 : use->updates ? 1 : 2;
    const std::string name = use != nullptr ? use->name : join_text(transfer.input(0).op().name);
    if (counts[kind]++ < kMostNames) lists[kind] += (lists[kind].empty() ? "" : ", ") + name;
  }
  std::string text;
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    if (counts[kind] == 0) continue;
    text += join_text(text.empty() ? "" : "; ", kKinds[kind], lists[kind]);
    if (counts[kind] > kMostNames) text += join_text(" and ", counts[kind] - kMostNames, " more");
  }
  return text;
}

std::string why_reduced(Placement::Kind from, std::size_t values, bool bucketed) {
  if (bucketed) return join_text("bucket of ", values, " sums over ranks");
  if (from == Placement::kLargest) return "a maximum over ranks";
  if (from == Placement::kSmallest) return "a minimum over ranks";
  return values > 1 ? join_text(values, " sums over ranks that are needed at once")
                    : "a sum over ranks that is needed at once";
}

}  // namespace syncline
