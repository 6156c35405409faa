// Computes a program in several ways, which must agree: op by op; as one function, also without simplification and
// fusion; on 2 and on 3 ranks, which are threads, and on one of these numbers with own rows on each rank. The gradients
// must agree with differences.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/graphs/program.h"

namespace syncline::graphs {

struct Coverage {
  // Per op: the number of graphs that compute it, and that differentiate it.
  std::map<std::string, std::pair<int, int>, std::less<>> graphs;
  int by_parts = 0;  // graphs that have run with parts of the batch
};

// Whether a program also runs with parts of the batch, which sparse inputs do not have.
inline bool runs_by_parts(const Program& program) {
  return program.seed % 8 == 0 && std::ranges::none_of(program.inputs, &Input::sparse);
}

// The roots of the bodies of a loop or a branch; empty for other nodes.
std::vector<Expr> body_of(const Expr& node);
// The input at one value of which the op or its derivative is infinite, or empty.
Expr pole_input(const Node& node);
// True if bodies contain such ops. Rounding errors within bodies are not simulated.
bool have_poles_in_bodies(std::span<const Expr> roots);
// Sets the run number of each random op under `roots`, which selects its next numbers.
void set_runs(const std::vector<Expr>& roots, std::uint64_t run);
void add_coverage(const Graph& graph, Coverage& coverage);

// "" or the first disagreement: way, call, output, element. Adds to `coverage` unless it is null. Throws Rejected for a
// program that cannot be built.
std::string run_ways(const Program& program, Coverage* coverage);

}  // namespace syncline::graphs
