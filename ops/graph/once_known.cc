#include "ops/graph/once_known.h"

#include "syncline/dims.h"

namespace syncline {

Expr once_known(std::string name, std::vector<Expr> operands, Meta unknown, OperandsRule rule) {
  Dims sizes;
  for (const Expr& x : operands) sizes.append(dims_of(x));
  return with_numbers(std::move(name), std::move(operands), sizes, std::move(unknown),
                      [rule = std::move(rule)](std::span<const Expr> known, const Shape&) { return rule(known); });
}

}  // namespace syncline
