// Control flow of the Keras backend: choice, recurrence, folds; and print_tensor. Every error is thrown while the graph
// is built, or when the first feeds with a shape that does not fit arrive.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

// ---- choice ----

// A tensor, or a function without arguments that builds one. A function is called once, when the graph is built; what
// it builds is computed only in steps that take it.
class TensorOrFunction {
 public:
  template <class T>
  requires std::convertible_to<const T&, const Expr&> || std::is_invocable_r_v<Expr, const T&> TensorOrFunction(
      const T& value) {
    if constexpr (std::convertible_to<const T&, const Expr&>) tensor_ = value;
    else function_ = value;
  }

  bool is_function() const { return function_ != nullptr; }
  // The tensor, or what the function builds.
  Expr get() const { return function_ ? function_() : tensor_; }

 private:
  Expr tensor_;
  std::function<Expr()> function_;
};

// then_expression where the condition holds (is not 0), otherwise else_expression; both of one dtype and shape.
//
// A scalar condition takes one side as a whole: only that side is computed in a step, if nothing else needs the other
// one, and the gradient with respect to what only the other side uses is 0. If the condition is known when the plan is
// made, the other side is not part of it. A condition with axes chooses element by element: its axes are the first ones
// of the expressions (an axis of one element holds for all), and both sides are computed.
//
// Throws ShapeError if the condition has more axes than the expressions or does not fit them, or if their shapes
// differ, and DTypeError if their dtypes differ. Under several ranks a scalar condition is the same on all; the sides
// keep their rows where they are.
Expr switch_(const Expr& condition, const TensorOrFunction& then_expression, const TensorOrFunction& else_expression);

// The same for functions that build several values, as many in both; the condition is a scalar.
using SeveralValues = std::function<std::vector<Expr>()>;
std::vector<Expr> switch_(const Expr& condition, const SeveralValues& then_values, const SeveralValues& else_values);

// ---- recurrence ----

// One turn: the output for this turn's input (samples, ...), and the new states. `states` are followed by the
// constants. It is called once beforehand with the first input, to learn the output's shape, and then once for the
// loop's body (unrolled: once a turn).
using RnnStep = std::function<std::pair<Expr, std::vector<Expr>>(const Expr& x, const std::vector<Expr>& states)>;

struct RnnOptions {
  // From the last input to the first; the outputs then come in that order too.
  bool go_backwards = false;
  // (samples, time) or (samples, time, 1), any dtype; 0 where an input does not count: the states stay, and the output
  // is that of the turn before, or 0 in the first.
  Expr mask = {};
  std::vector<Expr> constants = {};
  // Every turn becomes part of the graph: for few turns. Needs a known number of them.
  bool unroll = false;
  // The number of turns; needed only if `unroll` cannot see it from inputs.
  std::optional<std::int64_t> input_length = {};
};

struct RnnResult {
  Expr last_output;              // (samples, ...); without any turn zeros
  Expr outputs;                  // (samples, time, ...)
  std::vector<Expr> new_states;  // after the last turn
};

// Goes through inputs (samples, time, ...) along time. What step_function uses beside its arguments is computed once;
// products of the inputs alone with a matrix are formed for all turns at once, and so are weights' gradients.
// Throws ShapeError if inputs have fewer than 3 axes, or the mask, input_length or a new state does not fit, and
// ValueError if the number of states changes, if there is a mask but no state, or if `unroll` meets an unknown number
// of turns.
RnnResult rnn(const RnnStep& step_function, const Expr& inputs, const std::vector<Expr>& initial_states,
              const RnnOptions& options = {});

// ---- over the first axis ----

// fn of each element elems[i], stacked along a new first axis. fn is called once, with a placeholder for the element.
// dtype: the result is cast to it; unless given, it is what fn returns. Of several tensors, which must be equally long,
// fn gets one element each, and may return any number of values. No rows give no rows. Rows that are split over ranks
// stay where they are.
using MapFunction = std::function<Expr(const Expr& element)>;
Expr map_fn(const MapFunction& fn, const Expr& elems, std::optional<DType> dtype = {});
using MapFunctionOfMany = std::function<std::vector<Expr>(const std::vector<Expr>& elements)>;
std::vector<Expr> map_fn(const MapFunctionOfMany& fn, const std::vector<Expr>& elems,
                         const std::vector<DType>& dtypes = {});

// fn(... fn(fn(initializer, elems[0]), elems[1]) ..., elems[n - 1]); the accumulator keeps its dtype and shape. Without
// an initializer the first element takes its place, so there must be one. foldr begins with the last element. The order
// matters, so rows that are split over ranks are gathered. Throws ShapeError if the accumulator changes, or there is
// neither an element nor an initializer.
using FoldFunction = std::function<Expr(const Expr& accumulator, const Expr& element)>;
Expr foldl(const FoldFunction& fn, const Expr& elems, const Expr& initializer = {});
Expr foldr(const FoldFunction& fn, const Expr& elems, const Expr& initializer = {});
// The same over several tensors, with as many accumulators as initializers (without any: as tensors).
using FoldFunctionOfMany =
    std::function<std::vector<Expr>(const std::vector<Expr>& accumulators, const std::vector<Expr>& elements)>;
std::vector<Expr> foldl(const FoldFunctionOfMany& fn, const std::vector<Expr>& elems,
                        const std::vector<Expr>& initializers = {});
std::vector<Expr> foldr(const FoldFunctionOfMany& fn, const std::vector<Expr>& elems,
                        const std::vector<Expr>& initializers = {});

// ---- watching ----

// x. In each step that uses this tensor, `message` and its global value, as NumPy writes it, appear on standard output:
// once, whatever the number of ranks.
Expr print_tensor(const Expr& x, std::string message = {});

// Where the texts of print_tensor go instead of standard output: to `write`, with the newline, one call a text, from a
// thread that runs a step. To be set before the first step.
void print_to(std::function<void(const std::string& text)> write);

}  // namespace syncline
