// TransferNames: describes a plan's transfers by the user's names: "gradients of dense_1/kernel, dense_1/bias". For
// errors.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/graph/value_map.h"
#include "runtime/placement/collectives.h"
#include "syncline/backend/variable.h"
#include "syncline/expr.h"

namespace syncline {

// Why an all-reduce of `values` values starts, for plan inspection.
std::string why_reduced(Placement::Kind from, std::size_t values, bool bucketed);

class TransferNames {
 public:
  // `roots` of a placed graph: the outputs, then the updates' values. `nodes`: those under the roots.
  TransferNames(std::span<const std::shared_ptr<const Node>> nodes, std::span<const Expr> roots,
                std::span<const Update> updates);

  // Describes one message. `transfers`: its AllReduce, ReduceScatter or AllGather nodes.
  std::string of(std::span<const Expr> transfers) const;

 private:
  struct Use {
    std::string name;       // the variable or output that needs it
    bool gradient = false;  // computed from the variable, and has its shape
    bool updates = false;
  };
  void note(const Expr& root, const Use& use);

  ValueMap<Use> uses_;
};

}  // namespace syncline
