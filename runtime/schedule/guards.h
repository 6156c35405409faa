// Which values a step needs only under conditions: those that all lead into the same side of a `choose`. The plan runs
// their tasks only if the condition says so.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

struct Guard {
  Expr condition;         // a bool scalar
  bool needed_if = true;  // the side
  friend bool operator==(const Guard&, const Guard&) = default;
};
// All must hold. An outer condition comes before one that is only computed if the outer one holds.
using Guards = std::vector<Guard>;

class GuardedNodes {
 public:
  // Looks at the nodes under `roots`, which are always needed.
  explicit GuardedNodes(const std::vector<Expr>& roots);

  // Inputs, and the conditions of a node's guards, before the node; otherwise in the order of construction.
  const std::vector<std::shared_ptr<const Node>>& in_order() const { return nodes_; }
  const Guards& of(const Node& node) const;

 private:
  void find_guards(const std::vector<Expr>& roots);
  void order();

  std::vector<std::shared_ptr<const Node>> nodes_;
  std::unordered_map<const Node*, Guards> guards_;  // of those that have any
};

}  // namespace syncline
