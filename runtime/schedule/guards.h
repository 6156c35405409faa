// GuardedNodes: the values that a step needs only under a condition, because they are used only by one side of a
// `choose`. The plan runs their tasks only if the condition selects that side.
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
// A conjunction. A condition comes after the conditions that guard it.
using Guards = std::vector<Guard>;

class GuardedNodes {
 public:
  // Analyzes the nodes under `roots`. Roots are always needed.
  explicit GuardedNodes(const std::vector<Expr>& roots);

  // Inputs and guard conditions precede their node; otherwise in construction order.
  const std::vector<std::shared_ptr<const Node>>& in_order() const { return nodes_; }
  const Guards& of(const Node& node) const;

 private:
  void find_guards(const std::vector<Expr>& roots);
  void order();

  std::vector<std::shared_ptr<const Node>> nodes_;
  std::unordered_map<const Node*, Guards> guards_;  // nodes without guards are absent
};

}  // namespace syncline
