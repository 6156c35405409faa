// The plans of one function: found by what it is fed, or made.
//
// Sizes that follow from values (syncline/dims.h) are computed by a plan of their own first: what it computes decides
// which plan comes after it. Not thread-safe; on ranks each call is collective.
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
  // What a plan is made for.
  struct Key {
    std::vector<Meta> metas;        // of the feeds as handed over
    std::vector<bool> steering;     // values of the feeds that steer, in order
    std::uint64_t generation = 0;   // of the session
    bool own_rows = false;          // of each rank
    std::vector<SizeValues> sizes;  // that have been computed, by one plan after the other
  };
  struct Planned {
    Key key;
    std::vector<Meta> global;  // of the feeds under all ranks
    std::vector<bool> split;
    bool local = false;
    RowShares shares;
    Plan plan;
    // Of a plan that computes sizes: those that come after it, one for each of their values.
    bool computes_sizes = false;
    std::vector<std::unique_ptr<Planned>> next;
    std::vector<RandomOp*> random_ops;    // of this plan and of those before it
    std::uint64_t first_fingerprint = 0;  // of the first of those
    std::uint64_t arena_moves = 0;        // when the plan was bound
    std::uint64_t compared_in = 0;        // the round of comparing variables that has the plan's
  };

  // Throws ValueError if one of `inputs` is no placeholder.
  FunctionPlans(std::string name, std::vector<Expr> inputs, std::vector<Expr> outputs, std::vector<Update> updates);

  const std::string& name() const { return name_; }

  // The plan for these feeds, which are read until the next call. Throws what FedInputs::take and compile throw, and
  // what a plan of sizes throws when it runs.
  template <class Value>
  Planned& find(std::span<const Value> feeds, Session& session) {
    fed_.take(feeds);
    return find_for_fed(session);
  }
  const Plan* last() const { return last_; }

  // Runs a plan that `find` gave, on the same feeds, into the caller's arrays, which fit its outputs.
  void run(Planned& planned, Session& session, std::span<Array> results);

 private:
  using Plans = std::vector<std::unique_ptr<Planned>>;  // the one used last comes first

  void find_steering();
  Planned& find_for_fed(Session& session);
  Planned& first_plan(Session& session);
  Planned& plan_after(Planned& before, Session& session);
  bool fits(const Key& key, const Session& session, bool own_rows) const;
  Planned& add(Plans& list, std::unique_ptr<Planned> fresh, Session& session) const;
  Planned& use(Plans& list, Plans::iterator found, Session& session) const;
  void make_plan(Planned& planned, Session& session) const;
  Bindings bind_feeds(const Planned& planned, CompileRequest& request) const;
  std::vector<Placement> wanted_placements() const;

  std::string name_;
  FedInputs fed_;
  std::vector<Expr> outputs_;
  std::vector<Update> updates_;
  std::vector<bool> steers_;  // leaves whose values are known when the plan is made
  std::vector<Expr> phases_;  // the learning phases that the graph was made with
  Plans plans_;
  const Plan* last_ = nullptr;
  std::vector<const void*> pointers_;  // to feeds and results, in a run
};

// Arrays for a plan's outputs.
std::vector<Array> results_for(const Plan& plan);

}  // namespace syncline
