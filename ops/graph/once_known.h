// Functions that ask more of shapes than the ops they are made of.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

// rule(operands), at once if their shapes are known, otherwise when they are: for a rule that checks or chooses by
// sizes that may be unknown while the graph is built, where its ops alone would broadcast. `unknown` says what is known
// of the result beforehand. As with_numbers in syncline/dims.h otherwise.
using OperandsRule = std::function<Expr(std::span<const Expr> operands)>;
Expr once_known(std::string name, std::vector<Expr> operands, Meta unknown, OperandsRule rule);

}  // namespace syncline
