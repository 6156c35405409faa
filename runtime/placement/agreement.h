// What ranks must have in common: the graph of a function and all that decides its bits, compared before the first step
// of a plan, and the values of variables, compared every so many steps. The first difference is named on every rank.
//
// All calls are collective, in the order in which every rank makes them, and throw DisagreementError on every rank.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "syncline/backend/variable.h"
#include "syncline/expr.h"

namespace syncline {

class Distributor;
class Session;
struct RandomOp;

// Operations, attributes, shapes, dtypes and names, in order, a line a node. The last roots are the updates' values.
std::string describe_graph(const std::string& name, std::span<const Expr> roots, std::span<const Update> updates);

// Before a plan's first step. Compares, beside the graph, the library's version, the instruction sets of the kernels,
// the calling thread's floating-point mode, seeds and the options of the session. Returns a fingerprint of the graph.
std::uint64_t agree_on_graph(const Session& session, Distributor& ranks, const std::string& graph);

// The seeds that each rank has drawn for itself become rank 0's: what a script draws is what rank 0 draws.
void agree_on_seeds(Distributor& ranks, std::span<RandomOp* const> random_ops);

// Under feeds that each rank brings for itself: the values that have not the batch's rows are the same on every rank.
// `names` are for the error.
void agree_on_values(Distributor& ranks, const std::string& function, std::span<const std::string> names,
                     std::span<const std::uint64_t> digests);

// What decides the bits of a step beside its graph, the seeds and where ranks are: the library's version, instruction
// sets, floating-point modes, options. A line each, in words that follow "one run has". `ranks` may be null.
std::string describe_arithmetic(const Session& session, const Distributor* ranks);

// The variables that steps have used since the ranks last compared them. They live on until then: ranks need not free
// them at one time.
class UsedVariables {
 public:
  // Counts up with each comparison: a plan's variables need adding once a round.
  std::uint64_t round() const { return round_; }
  void add(std::span<const std::shared_ptr<VariableState>> variables);
  void clear();

  // Between two steps. One message of 8 bytes if all is well. Otherwise the error names the first variable that
  // differs, the first element, its values and the ranks that have them. What was set by hand is not compared: it
  // becomes rank 0's at the next step. Nor are partial variables, of which each rank has its own part.
  void compare(const Session& session, Distributor& ranks);

 private:
  std::uint64_t round_ = 1;
  std::vector<std::shared_ptr<VariableState>> variables_;  // in the order of their use, the same on every rank
  std::unordered_set<const VariableState*> known_;
};

}  // namespace syncline
