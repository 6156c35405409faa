// Checks that ranks agree: on a function's graph and everything else that determines its bits, before the first step of
// a plan; on the values of variables, every Strategy::check_steps() steps.
//
// Functions that take a `Strategy&` are collective: all ranks call them in the same order. On disagreement they
// throw DisagreementError on every rank; the message names the first difference.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "syncline/backend/variable.h"
#include "syncline/expr.h"

namespace syncline {

namespace comm {
class Communicator;
}

class Strategy;
class Session;
struct RandomOp;

// One line per node, in order: operation, attributes, shapes, dtypes, name. The last roots are the updates' values.
std::string describe_graph(const std::string& name, std::span<const Expr> roots, std::span<const Update> updates);

// Before a plan's first step, compares the graph, the library's version, the kernels' instruction sets, the calling
// thread's floating-point mode, the seed and the session's options. Returns a fingerprint of the graph.
std::uint64_t agree_on_graph(const Session& session, Strategy& ranks, const std::string& graph);

// If a rank wants the instruction sets that all ranks have in `common`, limits this process to these. Call it
// between steps: kernels that ran before may have used wider sets.
void agree_on_instruction_sets(Strategy& ranks, bool common);

// Replaces seeds that each rank drew for itself (RandomOp::seed_of_rank) with rank 0's.
void agree_on_seeds(Strategy& ranks, std::span<RandomOp* const> random_ops);

// Under local feeds: requires equal values on all ranks for the inputs without the batch's rows. `names` and `digests`
// have one entry per such input; the error names the input.
void agree_on_values(Strategy& ranks, const std::string& function, std::span<const std::string> names,
                     std::span<const std::uint64_t> digests);

// Throws std::bad_alloc on all ranks if one has not `enough` memory for a collective: without it, that rank would leave
// the others waiting. `ranks`: null for one process. Error messages name `purpose`.
void require_memory(Strategy* ranks, std::string_view purpose, bool enough);

// What determines a step's bits besides its graph, the seeds and the ranks: library version, instruction sets,
// floating-point modes, options. One line each, phrased to follow "rank 0 has" and "was saved with". `ranks` may be
// null. Not collective.
std::string describe_arithmetic(const Session& session, const Strategy* ranks);

// What determines the bits of a training besides its program: the ranks, and describe_arithmetic. Not
// collective. `communicator`: null for one process.
std::string describe_setting(const Session& session, const comm::Communicator* communicator);

// For a training that was saved under one setting and resumes under another: says so in one line. Empty if no line that
// determines bits differs.
std::string change_of_setting(const std::string& saved, const std::string& now);

// What to do about a line of describe_arithmetic that differs between ranks.
const char* advice_on_difference(std::string_view line);

// The variables that steps used since the last comparison. Keeps them alive until the next comparison, because ranks
// may free them at different times.
class UsedVariables {
 public:
  // Counts comparisons and clears. Add a plan's variables once per round.
  std::uint64_t round() const { return round_; }
  void add(std::span<const std::shared_ptr<VariableState>> variables);
  void clear();

  // Call between steps. Sends 8 bytes per rank if all variables agree. Otherwise the error names the first differing
  // variable and element, its values and the ranks that have them. Skips values set by hand, which become rank 0's at
  // the next step, and partial variables, which differ between ranks.
  void compare(const Session& session, Strategy& ranks);

 private:
  std::uint64_t round_ = 1;
  std::vector<std::shared_ptr<VariableState>> variables_;  // in order of first use, equal on all ranks
  std::unordered_set<const VariableState*> known_;
};

}  // namespace syncline
