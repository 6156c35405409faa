// A rewrite of a whole graph, for the gradients of normalizations that a program composes of mean and square:
// sum(dy * scale + (x - mean(x)) * k) becomes sum(dy) * scale if the graph has sum(dy) in any case, as the gradient of
// beta. x - mean(x) sums to 0; scale and k are constant along the summed axes. This saves a pass over the activation,
// and a sum over ranks.
//
// Other sums stay: the sums of two large terms lose the digits of their difference.
#pragma once

#include <span>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

std::vector<Expr> share_sums(std::span<const Expr> roots);

}  // namespace syncline
