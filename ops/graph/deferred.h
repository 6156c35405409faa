// Expressions that are built when the shapes and sizes are known that they depend on: while the graph is built if they
// are known by then, otherwise when a plan makes the graph concrete. Until then one node, `deferred`, stands for the
// expression. Differentiable with respect to the operands, as often as what the rule builds.
//
// A rule must build nothing that depends on more than its arguments.
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

// rule(operands, numbers of dims) as soon as the numbers are known. `unknown` is what is known of the result before.
// `random_op`: of a rule that draws.
using NumbersRule = std::function<Expr(std::span<const Expr> operands, const Shape& numbers)>;
Expr with_numbers(std::string name, std::vector<Expr> operands, const Dims& dims, Meta unknown, NumbersRule rule,
                  std::shared_ptr<RandomOp> random_op = nullptr);

// rule(operands) as soon as their shapes are known: for a rule that checks or chooses by sizes.
using OperandsRule = std::function<Expr(std::span<const Expr> operands)>;
Expr once_known(std::string name, std::vector<Expr> operands, Meta unknown, OperandsRule rule);

// rule(operands, shapes of `likes`) as soon as these shapes and those of the operands are known. The result has the
// shape of the last of `likes`, and does not depend on their values.
using ShapesRule = std::function<Expr(std::span<const Expr> operands, std::span<const Shape> shapes)>;
Expr once_known_like(std::string name, std::vector<Expr> operands, std::vector<Expr> likes, DType dtype,
                     ShapesRule rule);

bool is_deferred(const Node& node);
// The name of a deferred expression; "" for other nodes.
std::string_view deferred_name(const Node& node);
// The inputs of a deferred expression that are numbers: what a plan has to know. Nothing for other nodes.
std::span<const Expr> numbers_of(const Node& node);
// Appends the elements of a constant; false if e is none.
bool read_numbers(const Expr& e, std::vector<std::int64_t>& numbers);

}  // namespace syncline
