#include "ops/control/loop.h"

namespace syncline {

std::vector<Expr> Loop::grad(const Attrs&, const Expr& y, std::span<const Expr>) {
  fail<ValueError>(kName, ": the gradient of a loop with ", y.node().inputs.size(), " inputs is not written");
}

}  // namespace syncline
