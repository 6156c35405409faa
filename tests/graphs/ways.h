// The ways in which a program is computed, which must agree.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/graphs/program.h"

namespace syncline::graphs {

// How many graphs each op stood in: computed, and differentiated.
struct Coverage {
  std::map<std::string, std::pair<int, int>, std::less<>> graphs;
};

// What a loop or a branch computes within; nothing of other nodes.
std::vector<Expr> body_of(const Expr& node);
// Whether the op is infinite, or has an infinite derivative, at one value of an input: that one, or empty.
Expr pole_input(const Node& node);
// Whether there are such ops in bodies, where rounding errors are not followed.
bool have_poles_in_bodies(std::span<const Expr> roots);
// Every random operation under `roots` draws next as in its run of that number.
void set_runs(const std::vector<Expr>& roots, std::uint64_t run);
void add_coverage(const Graph& graph, Coverage& coverage);

// "" or what is wrong: the way, the call, the output, the element. Adds to `coverage`, if given. Throws Rejected for a
// program that cannot be built.
std::string run_ways(const Program& program, Coverage* coverage);

}  // namespace syncline::graphs
