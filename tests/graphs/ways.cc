#include "tests/graphs/ways.h"

#include <algorithm>
#include <memory>
#include <new>
#include <numeric>
#include <optional>

#include "comm/local/local_communicator.h"
#include "ops/graph/op.h"
#include "syncline/backend.h"
#include "syncline/distributed/data_parallel.h"
#include "syncline/session.h"
#include "tests/graphs/compare.h"
#include "tests/graphs/differences.h"
#include "tests/graphs/lagging_rank.h"
#include "tests/graphs/one_by_one.h"
#include "tests/graphs/table.h"

namespace syncline::graphs {
namespace {

template <class F>
Outcome outcome_of(F&& compute) {
  Outcome outcome;
  try {
    outcome.outputs = compute();
  } catch (const InternalError& e) {
    outcome.error = std::string("an internal error: ") + e.what();
  } catch (const Error& e) {
    outcome.error = e.what();
  } catch (const std::bad_alloc& e) {  // a loop may multiply its rows in every iteration
    outcome.error = e.what();
  }
  return outcome;
}

// Pauses take longer than the rest of a run on ranks, so only one of a program's runs on ranks has them.
bool ranks_pause(const Program& program, int ranks, bool local) {
  return program.seed % 3 == (local ? 2 : static_cast<std::uint64_t>(ranks - 2));
}

bool is_internal(const Outcome& outcome) { return outcome.error.starts_with("an internal error"); }

// Computes the program node by node, with all inputs fed.
class Base {
 public:
  Base(const Program& program, bool open) : program_(program), scope_(session_) {
    graph_ = build(program, {.open = open, .all_fed = true});
    roots_ = graph_.outputs;
    roots_.insert(roots_.end(), graph_.updates.begin(), graph_.updates.end());
    for (const auto& node : nodes_under(roots_)) exact_ = exact_ && !sums(Expr(node)) && !adds_zero(Expr(node));
    outcomes_ = run(0);
  }

  const Graph& graph() const { return graph_; }
  const std::vector<Expr>& roots() const { return roots_; }
  bool exact() const { return exact_; }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  const std::string& problem() const { return problem_; }
  Perturbed perturbed(std::size_t call) {
    return [this, call](std::uint64_t number) {
      auto found = perturbed_.find(number);
      if (found == perturbed_.end()) found = perturbed_.emplace(number, run(number)).first;
      return found->second[call];
    };
  }

 private:
  std::vector<Outcome> run(std::uint64_t noise) {
    const SessionScope scope(session_);
    std::vector<Outcome> result;
    std::map<int, Array> state;  // updated values of inputs
    for (std::size_t call = 0; call < program_.calls.size(); ++call) {
      Values leaves;
      for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
        const auto changed = state.find(static_cast<int>(i));
        leaves[graph_.inputs[i]] =
            changed != state.end() ? changed->second : value_in(program_, program_.inputs[i], call, false);
      }
      OneByOne one(std::move(leaves), call, noise);
      result.push_back(outcome_of([&] {
        one.run(roots_);
        std::vector<Array> outputs;
        for (const Expr& root : roots_) outputs.push_back(one.of(root));
        return outputs;
      }));
      result.back().finite = one.finite();
      result.back().poles_in_bodies = have_poles_in_bodies(roots_);
      if (result.back().error.empty())
        for (std::size_t u = 0; u < program_.updates.size(); ++u)
          state[program_.updates[u].input] = one.of(graph_.updates[u]);
      if (noise == 0 && problem_.empty()) find_problem(call, one);
    }
    return result;
  }

  void find_problem(std::size_t call, const OneByOne& one) {
    problem_ = one.problem();
    for (std::size_t i = 0; i < program_.lines.size() && problem_.empty(); ++i) {
      if (graph_.checks[i] == nullptr) continue;
      std::vector<Array> in;
      try {
        for (const Ref& ref : program_.lines[i].operands)
          in.push_back(
              one.of(ref.scope == Ref::kInput
                         ? graph_.inputs[static_cast<std::size_t>(ref.line)]
                         : graph_.lines[static_cast<std::size_t>(ref.line)][static_cast<std::size_t>(ref.output)]));
        const std::string wrong = graph_.checks[i](program_.lines[i].tape, in, one.of(graph_.lines[i][0]));
        if (!wrong.empty()) problem_ = join_text("line ", i, ": ", wrong);
      } catch (const std::out_of_range&) {  // not computed, because no root needs it
      }
    }
    if (!problem_.empty()) problem_ = join_text("op by op, call ", call, ": ", problem_);
  }

  const Program& program_;
  Session session_{3};
  SessionScope scope_;
  Graph graph_;
  std::vector<Expr> roots_;
  bool exact_ = true;
  std::vector<Outcome> outcomes_;
  std::map<std::uint64_t, std::vector<Outcome>> perturbed_;
  std::string problem_;
};

void prepare(const Call& call, std::size_t number, const Graph& graph) {
  if (call.before == Call::kClear) clear_session();
  if (call.before == Call::kTrain || call.before == Call::kTest)
    set_learning_phase(call.before == Call::kTrain ? 1 : 0);
  set_runs(graph.outputs, number);
  set_runs(graph.updates, number);
}

std::vector<Array> variables_of(const std::vector<Update>& updates) {
  std::vector<Array> values;
  for (const Update& u : updates) values.push_back(u.target.state().value().copy());
  return values;
}

// Runs the program as one Function in the current session. `feed` returns an input's value in a call.
using FeedOf = std::function<Array(const Input& input, std::size_t call)>;
std::vector<Outcome> run_function(const Program& program, bool open, const FeedOf& feed,
                                  const std::vector<bool>& skipped = {}) {
  const Graph graph = build(program, {.open = open});
  std::vector<Expr> fed;
  std::vector<Update> updates;
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    if (program.inputs[i].kind == Input::kFed) fed.push_back(graph.inputs[i]);
  for (std::size_t u = 0; u < program.updates.size(); ++u)
    updates.push_back(update_of(program.updates[u],
                                Variable(graph.inputs[static_cast<std::size_t>(program.updates[u].input)]),
                                graph.operands[u]));
  Function f(fed, graph.outputs, updates);
  std::vector<Outcome> result;
  for (std::size_t call = 0; call < program.calls.size(); ++call) {
    result.emplace_back();
    if (!skipped.empty() && skipped[call]) continue;
    prepare(program.calls[call], call, graph);
    std::vector<Array> feeds;
    for (const Input& input : program.inputs)
      if (input.kind == Input::kFed) feeds.push_back(feed(input, call));
    const std::vector<Array> before = variables_of(updates);
    result.back() = outcome_of([&] {
      std::vector<Array> outputs = f(feeds);
      for (Array& output : outputs) output = output.copy();
      for (const Update& u : updates) outputs.push_back(get_value(u.target));
      return outputs;
    });
    const std::vector<Array> after = variables_of(updates);
    const bool kept = std::ranges::equal(before, after, [](const Array& a, const Array& b) { return same_bits(a, b); });
    if (!result.back().error.empty() && !kept)
      result.back().error = "an internal error: a variable was written before: " + result.back().error;
  }
  return result;
}

// If only the computation node by node rejects a call, later calls are not compared: the variables differ.
std::string compare_all(const Program& program, Base& base, const std::vector<Outcome>& got, const std::string& way,
                        bool on_ranks = false) {
  for (std::size_t call = 0; call < got.size(); ++call) {
    if (is_internal(got[call])) return join_text(way, ", call ", call, ": throws ", got[call].error);
    const std::string found =
        difference(base.outcomes()[call], got[call], base.exact(), on_ranks, base.perturbed(call));
    if (!found.empty()) return join_text(way, ", call ", call, ": ", found);
    const bool passed = !base.outcomes()[call].error.empty() && !got[call].outputs.empty();
    if (!program.updates.empty() && passed) break;
  }
  return {};
}

std::vector<Outcome> run_with(const Program& program, bool open, const Passes& passes) {
  Session session(3);
  const SessionScope scope(session);
  session.set_passes(passes);
  const FeedOf feed = [&](const Input& input, std::size_t call) { return value_in(program, input, call, false); };
  return run_function(program, open, feed);
}

// ", call 1: output 2" if this output is the first one with other bits, otherwise "".
std::string other_bits(const std::vector<Outcome>& wanted, const std::vector<Outcome>& got) {
  for (std::size_t call = 0; call < got.size(); ++call)
    for (std::size_t i = 0; i < std::min(got[call].outputs.size(), wanted[call].outputs.size()); ++i)
      if (!same_bits(wanted[call].outputs[i], got[call].outputs[i])) return join_text(", call ", call, ": output ", i);
  return {};
}

// Both fusion and simplification, and none of them; for two of three programs also one of them. Fusion changes no bit.
std::string run_on_one(const Program& program, Base& base, bool open) {
  const std::vector<Outcome> whole = run_with(program, open, {});
  std::string found = compare_all(program, base, whole, "whole");
  if (!found.empty()) return found;
  const std::vector<Outcome> plain = run_with(program, open, {.simplify = false, .fuse = false});
  found = compare_all(program, base, plain, "whole without simplify and fusion");
  if (!found.empty() || program.seed % 3 == 2) return found;
  const bool simplify = program.seed % 3 == 0;
  const std::vector<Outcome> got = run_with(program, open, {.simplify = simplify, .fuse = !simplify});
  const std::vector<Outcome>& alike = simplify ? whole : plain;
  const std::string way = simplify ? "whole without fusion" : "whole without simplify";
  found = other_bits(alike, got);
  return found.empty() ? compare_all(program, base, got, way) : way + found + " has other bits than with fusion";
}

// Runs the program on ranks (threads). Skips calls that one process rejects: one rank might reject them alone.
std::string run_on_ranks(const Program& program, Base& base, bool open, int ranks, bool local,
                         const std::function<FeedOf(int rank)>& feed_of, int parts = 0,
                         std::vector<Outcome>* first = nullptr) {
  std::vector<bool> skipped;
  for (const Outcome& outcome : base.outcomes()) skipped.push_back(!outcome.error.empty());
  if (std::find(skipped.begin(), skipped.end(), false) == skipped.end()) return {};
  std::vector<std::vector<Outcome>> got(static_cast<std::size_t>(ranks));
  const std::string way = join_text(ranks, " ranks", local ? " with their own rows" : parts > 0 ? " with parts" : "");
  DataParallelOptions options{.local_feeds = local, .first_bucket = 64, .later_buckets = 256, .parts = parts};
  options.by_rows_from = program.seed % 2 == 0 ? 64 : options.by_rows_from;
  options.share_from = program.seed % 4 < 2 ? 16 : options.share_from;
  std::vector<int> node_of_rank;
  for (int r = 0; r < ranks && program.seed % 3 == 0; ++r) node_of_rank.push_back(r / 2);
  if (!node_of_rank.empty()) options.optimizer_state = OptimizerState::kSplit;
  const auto run_rank = [&](comm::Communicator& communicator) {
    LaggingRank lagging(communicator, program.seed);
    Session session(3);
    const SessionScope scope(session);
    session.distribute(make_data_parallel(ranks_pause(program, ranks, local) ? lagging : communicator, options));
    auto& own = got[static_cast<std::size_t>(communicator.rank())];
    own = run_function(program, open, feed_of(communicator.rank()), skipped);
    for (const Outcome& outcome : own)
      if (!outcome.error.empty()) fail<Error>(outcome.error);  // so that the others do not wait
  };
  try {
    comm::spawn_ranks(ranks, run_rank, {.node_of_rank = node_of_rank});
  } catch (const Error& e) {
    return way + ": throws " + e.what();
  }
  for (const std::vector<Outcome>& own : got)
    if (const std::string found = other_bits(got[0], own); !found.empty())
      return way + found + " differs between ranks";
  if (first != nullptr) *first = got[0];
  return compare_all(program, base, got[0], way, true);
}

// With parts of the batch, several ranks have the bits of one.
std::string run_by_parts(const Program& program, Base& base, bool open, const FeedOf& feed) {
  const auto of_rank = [&](int) { return feed; };
  std::vector<Outcome> one, several;
  std::string found;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    if (!found.empty()) break;
    found = run_on_ranks(program, base, open, ranks, false, of_rank, 8, ranks == 1 ? &one : &several);
    const std::string other = ranks == 1 || !found.empty() ? "" : other_bits(one, several);
    if (!other.empty()) found = join_text("parts", other, " has other bits on ", ranks, " ranks than on one");
  }
  return found;
}

// Runs a program with updates up to the first call that one process rejects. If a single rank rejects it, the others
// get an error when that rank leaves. All ranks must reject it, or none (if nothing needs the failing part).
std::string refuse_on_ranks(Program program, const Base& base, bool open, int ranks, const FeedOf& feed) {
  const auto refused = std::find_if(base.outcomes().begin(), base.outcomes().end(),
                                    [](const Outcome& outcome) { return !outcome.error.empty(); });
  if (refused == base.outcomes().end() || program.updates.empty()) return {};
  program.calls.resize(static_cast<std::size_t>(refused - base.outcomes().begin()) + 1);
  std::vector<Outcome> got(static_cast<std::size_t>(ranks));
  comm::spawn_ranks(ranks, [&](comm::Communicator& communicator) {
    Session session(3);
    const SessionScope scope(session);
    session.distribute(make_data_parallel(communicator));
    got[static_cast<std::size_t>(communicator.rank())] = run_function(program, open, feed).back();
  });
  for (const Outcome& outcome : got) {
    if (is_internal(outcome)) return join_text(ranks, " ranks, a refused call: throws ", outcome.error);
    if (outcome.error.empty() != got[0].error.empty())
      return join_text(ranks, " ranks, a refused call: not all ranks refuse it: ", got[0].error, outcome.error);
  }
  return {};
}

// ---- local feeds: each rank feeds its own rows ----

// The split inputs, by the ranks' rule: the largest set of fed inputs with equal leading dimensions on every rank.
std::vector<bool> split_inputs(const Program& program, const Call& call) {
  auto rows_on = [&](const Input& input, std::size_t rank) {
    if (input.group >= 0) return call.ranks[static_cast<std::size_t>(input.group)][rank];
    return input.shape.ndim() > 0 ? input.shape[0] : std::int64_t{-1};
  };
  const std::size_t ranks = call.ranks[0].size(), inputs = program.inputs.size();
  std::vector<bool> best(inputs, false);
  for (std::size_t i = 0; i < inputs; ++i) {
    std::vector<bool> same(inputs, false);
    for (std::size_t j = 0; j < inputs; ++j) {
      same[j] = program.inputs[i].kind == Input::kFed && program.inputs[j].kind == Input::kFed;
      for (std::size_t r = 0; r < ranks && same[j]; ++r)
        same[j] = rows_on(program.inputs[i], r) == rows_on(program.inputs[j], r) && rows_on(program.inputs[i], r) >= 0;
    }
    if (std::count(same.begin(), same.end(), true) > std::count(best.begin(), best.end(), true)) best = same;
  }
  return best;
}

// The call with the rows of all ranks; empty if a rank cannot tell which inputs are split.
std::optional<Call> joined_call(const Program& program, Call call) {
  const std::vector<bool> split = split_inputs(program, call);
  std::vector<int> of_group(call.ranks.size(), -1);
  for (std::size_t i = 0; i < split.size(); ++i) {
    const Input& input = program.inputs[i];
    if (input.group < 0 && split[i]) return {};
    if (input.group >= 0) of_group[static_cast<std::size_t>(input.group)] = split[i] ? 1 : 0;
  }
  for (std::size_t g = 0; g < call.ranks.size(); ++g) {
    const auto& ranks = call.ranks[g];
    const bool alike = std::all_of(ranks.begin(), ranks.end(), [&](std::int64_t n) { return n == ranks[0]; });
    if (of_group[g] == 0 && !alike) return {};
    call.rows[g] = ranks[0];
    if (of_group[g] == 1) call.rows[g] = std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0});
  }
  return call;
}

std::string run_on_own_rows(Program program, int ranks) {
  std::vector<Call> calls;
  for (Call call : program.calls) {
    for (auto& rows : call.ranks) rows.resize(static_cast<std::size_t>(ranks));
    if (auto joined = joined_call(program, std::move(call))) calls.push_back(*joined);
  }
  program.calls = calls;
  if (calls.empty() || std::ranges::none_of(program.inputs, [](const Input& i) { return i.group >= 0; })) return {};
  std::optional<Base> base;
  base.emplace(program, true);
  return run_on_ranks(program, *base, true, ranks, true, [&](int rank) -> FeedOf {
    return [&program, rank](const Input& input, std::size_t call) {
      const Array all = value_in(program, input, call, false);
      const Call& now = program.calls[call];
      const auto number = static_cast<std::size_t>(&input - program.inputs.data());
      if (!split_inputs(program, now)[number]) return all;
      std::int64_t begin = 0;
      const auto& rows = now.ranks[static_cast<std::size_t>(input.group)];
      for (int r = 0; r < rank; ++r) begin += rows[static_cast<std::size_t>(r)];
      return all.rows(begin, begin + rows[static_cast<std::size_t>(rank)]).copy();
    };
  });
}

}  // namespace

std::string run_ways(const Program& drawn, Coverage* coverage) {
  print_to([](const std::string&) {});
  Program program = drawn;
  bool open = true;
  std::unique_ptr<Base> base;
  try {
    base = std::make_unique<Base>(program, true);
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {  // the program needs known sizes
    open = false;
    for (Call& call : program.calls) call.rows = program.rows;
    base = std::make_unique<Base>(program, false);
  }
  if (coverage != nullptr) add_coverage(base->graph(), *coverage);
  for (const Outcome& outcome : base->outcomes())
    if (is_internal(outcome)) return "op by op: throws " + outcome.error;
  if (!base->problem().empty()) return base->problem();
  std::string found = run_on_one(program, *base, open);
  if (found.empty() && program.gradient) found = compare_with_differences(program);
  const FeedOf feed = [&program](const Input& input, std::size_t call) {
    return value_in(program, input, call, false);
  };
  if (found.empty() && runs_by_parts(program)) found = run_by_parts(program, *base, open, feed);
  for (const int ranks : program.ranks) {
    if (found.empty()) found = run_on_ranks(program, *base, open, ranks, false, [&](int) { return feed; });
    if (found.empty()) found = refuse_on_ranks(program, *base, open, ranks, feed);
  }
  // Each number of ranks has calls of its own, which one process computes op by op first, so only one number runs.
  if (found.empty() && open && !program.ranks.empty())
    found = run_on_own_rows(program, program.ranks[program.seed / 2 % program.ranks.size()]);
  return found;
}

}  // namespace syncline::graphs
