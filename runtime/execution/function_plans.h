// FunctionPlans: the plans of one function. A call finds the plan for its feeds or compiles one.
//
// Sizes that depend on values (syncline/dims.h) are computed first, by a separate plan; its results select the next
// plan. Not thread-safe. With a strategy, every call is collective.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/execution/feeds.h"
#include "runtime/graph/concretize.h"
#include "runtime/plan/plan.h"
#include "syncline/backend/variable.h"

namespace syncline {

class Session;
struct CompileRequest;
struct RandomOp;

class FunctionPlans {
 public:
  // A plan is reused for calls with an equal key; with equal row shares too, if each rank feeds its own rows or an
  // input is sparse.
  struct Key {
    std::vector<Meta> metas;             // of this rank's feeds
    std::vector<bool> static_arguments;  // values of the boolean scalar feeds, in order
    std::uint64_t generation = 0;        // of the session; a new one ends all plans
    bool own_rows = false;               // each rank feeds its own rows
    std::vector<SizeValues> sizes;       // computed so far, by successive plans
  };
  struct Planned {
    Key key;
    std::vector<Meta> global;  // of the feeds over all ranks
    std::vector<bool> split;
    bool local = false;
    RowShares shares;
    Plan plan;
    // A plan that computes sizes has one successor for each result.
    bool computes_sizes = false;
    std::vector<std::unique_ptr<Planned>> next;
    std::vector<RandomOp*> random_ops;    // of this plan and its predecessors
    std::uint64_t first_fingerprint = 0;  // of the first plan in this chain
    std::uint64_t arena_moves = 0;        // of the session, when the plan was bound
    std::uint64_t compared_in = 0;        // the comparison round (UsedVariables) that has its variables
  };

  // Throws ValueError if an input is not a placeholder.
  FunctionPlans(std::string name, std::vector<Expr> inputs, std::vector<Expr> outputs, std::vector<Update> updates);

  const std::string& name() const { return name_; }

  // Returns the plan for these feeds, which must live until the next call. Throws what FedInputs::take, compile and
  // the runs of plans of sizes throw.
  template <class Value>
  Planned& find(std::span<const Value> feeds, Session& session) {
    fed_.take(feeds);
    return find_for_fed(session);
  }
  const Plan* last() const { return last_; }

  // Runs a plan that `find` returned, on the same feeds. `results` must have the dtypes and shapes of its outputs.
  void run(Planned& planned, Session& session, std::span<Array> results);

 private:
  using Plans = std::vector<std::unique_ptr<Planned>>;  // most recently used first

  void find_static_arguments();
  Planned& find_for_fed(Session& session);
  Planned& first_plan(Session& session);
  Planned& plan_after(Planned& before, Session& session);
  bool fits(const Key& key, const Session& session, bool own_rows) const;
  Planned& add(Plans& list, std::unique_ptr<Planned> fresh, Session& session) const;
  Planned& use(Plans& list, Plans::iterator found, Session& session) const;
  void make_plan(Planned& planned, Session& session) const;
  Bindings bind_feeds(const Planned& planned, CompileRequest& request) const;

  std::string name_;
  FedInputs fed_;
  std::vector<Expr> outputs_;
  std::vector<Update> updates_;
  std::vector<bool> is_static_;  // leaves whose values select the plan
  std::vector<Expr> phases_;     // learning-phase placeholders in the graph
  Plans plans_;
  const Plan* last_ = nullptr;
  std::vector<const void*> pointers_;  // to feeds, then results; reused by each run
};

// Allocates uninitialized arrays for a plan's outputs.
std::vector<Array> results_for(const Plan& plan);

}  // namespace syncline
