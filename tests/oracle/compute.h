// Computes oracle cases with our functions and compares the results with the oracle's.
#pragma once

#include <string>
#include <vector>

#include "syncline/array.h"
#include "tests/oracle/oracle_case.h"

namespace syncline::testing {

// How an operand is passed to the function.
struct Operand {
  enum Kind { kFed, kOpenBatch, kVariable, kSplit };
  Kind kind = kFed;
  int axis = 0;  // kSplit: fed with this axis first and permuted back, so several ranks split it there
};
using Operands = std::vector<Operand>;

// The same `operand` for all inputs.
Operands alike(const OracleCase& row, Operand operand);

// A case as a graph: the adapter's operands and results.
struct CaseGraph {
  std::vector<Expr> values;  // one per input; empty if the argument is absent
  std::vector<Expr> placeholders;
  std::vector<Array> feeds;  // of the placeholders
  std::vector<Expr> outputs;
};
CaseGraph graph_of(const OracleCase& row, const Operands& operands);
// The weighted sum of all floating outputs; empty if there is none.
Expr loss_of(const OracleCase& row, const std::vector<Expr>& outputs);

// The outputs in the order of the case and, with `gradients`, one gradient per input for which the case has one.
struct Computed {
  std::vector<Array> outputs;
  std::vector<std::optional<Array>> gradients;
};
Computed compute(const OracleCase& row, const Operands& operands, bool gradients);

// Empty if everything agrees within the tolerances; otherwise the first difference.
std::string difference(const OracleCase& row, const Computed& got);

// The tested placements of operands on several ranks: all replicated; all split, along each axis; one split along axis
// 0 and the others replicated.
std::vector<Operands> ways_of(const OracleCase& row);
std::string name_of(const Operands& operands);

}  // namespace syncline::testing
