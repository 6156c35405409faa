// Expressions whose construction waits for shapes or sizes. If these are known while the graph is built, the expression
// is built at once; otherwise a single `deferred` node represents it until the graph is made concrete. A deferred
// expression is differentiable with respect to its operands as often as the expression that its rule builds.
//
// The expression that a rule builds must depend only on the arguments of the rule.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syncline/dims.h"
#include "syncline/expr.h"

namespace syncline {

struct RandomOp;

// Calls rule(operands, numbers of `dims`) once the numbers are known. `unknown` is the meta of the result until then.
// `random_op` is set for a rule that draws random numbers.
using NumbersRule = std::function<Expr(std::span<const Expr> operands, const Shape& numbers)>;
Expr with_numbers(std::string name, std::vector<Expr> operands, const Dims& dims, Meta unknown, NumbersRule rule,
                  std::shared_ptr<RandomOp> random_op = nullptr);

// Calls rule(operands) once their shapes are known. For rules that check or choose by sizes.
using OperandsRule = std::function<Expr(std::span<const Expr> operands)>;
Expr once_known(std::string name, std::vector<Expr> operands, Meta unknown, OperandsRule rule);

// Calls rule(operands, shapes of `likes`) once the shapes of `operands` and `likes` are known. The result has the shape
// of the last of `likes` and does not depend on their values.
using ShapesRule = std::function<Expr(std::span<const Expr> operands, std::span<const Shape> shapes)>;
Expr once_known_like(std::string name, std::vector<Expr> operands, std::vector<Expr> likes, DType dtype,
                     ShapesRule rule);

bool is_deferred(const Node& node);
// Returns the name of a deferred expression, or "" for other nodes.
std::string_view deferred_name(const Node& node);
// Returns the inputs of a deferred expression that are numbers, which a plan must know; empty for other nodes.
std::span<const Expr> numbers_of(const Node& node);

}  // namespace syncline
