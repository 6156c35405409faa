#include "tests/oracle/properties.h"

#include <algorithm>
#include <map>
#include <set>

#include "comm/local/local_communicator.h"
#include "ops/graph/op.h"
#include "runtime/graph/concretize.h"
#include "runtime/placement/collectives.h"
#include "runtime/placement/strategy.h"
#include "syncline/backend/gradients.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "tests/oracle/compute.h"

namespace syncline::testing {
namespace {

constexpr std::int64_t kRanks = 2;

// ---- gradient ----

struct Slope {
  bool depends = false;  // an output depends on an operand
  bool exists = false;
  std::set<std::string> reasons;
};

bool depends_on_operands(const CaseGraph& graph) {
  std::set<const Node*> operands;
  for (const Expr& value : graph.values)
    if (value) operands.insert(&value.node());
  return std::ranges::any_of(nodes_under(graph.outputs),
                             [&](const auto& node) { return operands.contains(node.get()); });
}

void look_at_slope(const OracleCase& row, Slope& slope) {
  const CaseGraph graph = graph_of(row, alike(row, {Operand::kFed}));
  std::vector<Expr> wrt;
  for (const Expr& value : graph.values)
    if (value && is_floating(value.dtype())) wrt.push_back(value);
  slope.depends |= depends_on_operands(graph);
  for (const auto& node : nodes_under(graph.outputs))
    if (!node->inputs.empty() && node->op->grad == nullptr) slope.reasons.insert(std::string(node->op->no_gradient));
  const Expr loss = loss_of(row, graph.outputs);
  if (!loss || wrt.empty()) return;
  for (const Expr& dx : gradients(loss, wrt)) slope.exists |= static_cast<bool>(dx);
}

// ---- placement ----

bool has_rows(const std::optional<Array>& input, std::int64_t rows) {
  return input && input->shape().ndim() > 0 && input->shape()[0] == rows;
}

// The first operand with axes; -1 if there is none or if it has too few rows for the ranks.
int first_with_rows(const OracleCase& row) {
  for (std::size_t i = 0; i < row.inputs.size(); ++i)
    if (row.inputs[i] && row.inputs[i]->shape().ndim() > 0)
      return row.inputs[i]->shape()[0] >= kRanks ? static_cast<int>(i) : -1;
  return -1;
}

// The operands that hold rows of the batch: in all cases they have as many rows as the first operand with axes.
std::vector<bool> batch_operands(const std::vector<OracleCase>& rows) {
  std::size_t inputs = 0;
  for (const OracleCase& row : rows) inputs = std::max(inputs, row.inputs.size());
  std::vector<bool> batch(inputs, true);
  for (const OracleCase& row : rows) {
    const int first = first_with_rows(row);
    if (first < 0) continue;
    const std::int64_t count = row.inputs[static_cast<std::size_t>(first)]->shape()[0];
    for (std::size_t i = 0; i < row.inputs.size(); ++i)
      if (row.inputs[i] && row.inputs[i]->shape().ndim() > 0 && !has_rows(row.inputs[i], count)) batch[i] = false;
  }
  return batch;
}

Expr without_collective(Expr root, bool& split, bool& reduced) {
  if (root.is<Interleave>()) root = root.input(0);
  if (root.is<AllGather>()) {
    split = true;
    return root.input(0);
  }
  if (!root.is<AllReduce>()) return root;
  reduced = true;
  return root.input(0);
}

// The placement of one case with operand `first` and the operands of the batch split along axis 0. Empty if no result
// depends on an operand.
std::string placement_of_case(const OracleCase& row, const std::vector<bool>& batch, std::size_t first) {
  const std::int64_t rows = row.inputs[first]->shape()[0];
  const CaseGraph graph = graph_of(row, alike(row, {Operand::kFed}));
  if (!depends_on_operands(graph)) return {};
  PlacementMap leaves;
  for (std::size_t i = 0; i < graph.values.size(); ++i)
    if ((batch[i] || i == first) && has_rows(row.inputs[i], rows)) leaves[graph.values[i]] = Placement::split(0);
  RowShares shares;
  for (std::int64_t r = 0; r <= kRanks; ++r) shares.begin.push_back(rows * r / kRanks);
  const auto communicators = comm::make_local_communicators(1);
  const PlacedGraph placed =
      make_data_parallel(*communicators[0])->place(concretize(graph.outputs, {}), leaves, shares);
  bool split = false, reduced = false, gathered = false;
  std::vector<Expr> roots;
  for (const Expr& root : placed.roots) roots.push_back(without_collective(root, split, reduced));
  for (const auto& node : nodes_under(roots)) {
    gathered |= Expr(node).is<AllGather>();
    reduced |= Expr(node).is<AllReduce>();
  }
  if (gathered) return "gathers";
  if (reduced) return split ? "row by row, with reductions over ranks" : "reductions over ranks";
  return split ? "row by row" : "independent of rows";
}

using Kinds = std::map<std::string, std::pair<int, std::string>>;  // the number of cases, and the first case as text

Kinds kinds_of(const std::vector<OracleCase>& rows, const std::vector<bool>& batch,
               int (*first_of)(const OracleCase&)) {
  Kinds kinds;
  for (const OracleCase& row : rows) {
    const int first = first_of(row);
    if (!row.ranks || first < 0) continue;
    Session session(3);
    SessionScope scope(session);
    const auto operand = static_cast<std::size_t>(first);
    const std::string kind = placement_of_case(row, batch, operand);
    if (kind.empty()) continue;
    auto& [cases, words] = kinds[kind];
    if (cases++ == 0) words = join_text(row.inputs[operand]->shape(), row.args.empty() ? "" : " " + row.args.dump());
  }
  return kinds;
}

std::string text_of(const Kinds& kinds) {
  if (kinds.empty()) return "–";
  if (kinds.size() == 1) return kinds.begin()->first;
  std::string text;
  for (const auto& [kind, found] : kinds) {
    text += (text.empty() ? "" : "; ") + kind + " (" + std::to_string(found.first);
    text += kind == "gathers" ? ", such as `" + found.second + "`)" : ")";
  }
  return text;
}

}  // namespace

std::string dtypes_of(const std::vector<OracleCase>& rows) {
  std::set<DType> seen;
  for (const OracleCase& row : rows) {
    for (const auto& input : row.inputs)
      if (input) seen.insert(input->dtype());
    const auto asked = row.args.find("dtype");
    if (asked != row.args.end() && asked->is_string() && row.inputs.empty()) seen.insert(argument<DType>(*asked));
  }
  std::string text;
  for (const DType dtype : seen) text += (text.empty() ? "" : ", ") + std::string(name_of(dtype));
  return text.empty() ? "–" : text;
}

std::string gradient_of(const std::vector<OracleCase>& rows) {
  Slope slope;
  for (const OracleCase& row : rows) {
    Session session(3);
    SessionScope scope(session);
    look_at_slope(row, slope);
  }
  if (slope.exists) return "yes";
  if (!slope.depends) return "–";
  std::string text = "no";
  for (const std::string& reason : slope.reasons) text += (text == "no" ? ": " : "; ") + reason;
  return text;
}

std::string placement_of(const std::vector<OracleCase>& rows) {
  const std::vector<bool> batch = batch_operands(rows);
  Kinds kinds = kinds_of(rows, batch, first_with_rows);
  if (kinds.size() != 1 || !kinds.contains("gathers")) return text_of(kinds);
  // The second operand may be the one that usually has the rows (gather: a table and indices).
  const Kinds second = kinds_of(rows, std::vector<bool>(batch.size(), false), [](const OracleCase& row) {
    return row.inputs.size() > 1 && row.inputs[1] && row.inputs[1]->shape().ndim() > 0 &&
                   row.inputs[1]->shape()[0] >= kRanks
               ? 1
               : -1;
  });
  if (second.empty() || second == kinds) return text_of(kinds);
  return "rows of the first operand: " + text_of(kinds) + "; of the second: " + text_of(second);
}

}  // namespace syncline::testing
