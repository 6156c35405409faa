// Control flow of the Keras backend (choice, recurrence, folds), and print_tensor. Errors are thrown while the graph is
// built, or at the first feeds whose shape does not fit.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

// ---- choice ----

// A tensor, or a function without arguments that builds one. The function is called once, when the graph is built; a
// step computes its tensor only if the step takes this side.
class TensorOrFunction {
 public:
  template <class T>
  requires std::convertible_to<const T&, const Expr&> || std::is_invocable_r_v<Expr, const T&> TensorOrFunction(
      const T& value) {
    if constexpr (std::convertible_to<const T&, const Expr&>) tensor_ = value;
    else function_ = value;
  }

  bool is_function() const { return function_ != nullptr; }
  // The tensor; of a function, its result.
  Expr get() const { return function_ ? function_() : tensor_; }

 private:
  Expr tensor_;
  std::function<Expr()> function_;
};

// then_expression where the condition is not 0, otherwise else_expression; both have the same dtype and shape.
//
// A scalar condition selects a whole side. A step computes only that side, unless something else needs the other side;
// the gradient of everything used only by the other side is 0. If the condition is known when the plan is made, the
// plan omits the other side. A condition with axes selects element by element: its axes are the expressions' first axes
// (an axis of size 1 broadcasts), and both sides are computed.
//
// Throws ShapeError if the condition has more axes than the expressions or does not fit them, or if their shapes
// differ, and DTypeError if their dtypes differ. Under several ranks a scalar condition is equal on all ranks; the
// sides keep their placement.
Expr switch_(const Expr& condition, const TensorOrFunction& then_expression, const TensorOrFunction& else_expression);

// switch_ for functions that build several values, equally many on both sides; the condition is a scalar.
using SeveralValues = std::function<std::vector<Expr>()>;
std::vector<Expr> switch_(const Expr& condition, const SeveralValues& then_values, const SeveralValues& else_values);

// ---- recurrence ----

// One iteration of the loop: (input of this iteration (samples, ...), states and then constants) -> (output, new
// states). Called once in advance with the first input, to learn the output's shape, then once for the loop's body
// (unrolled: once per iteration).
using RnnStep = std::function<std::pair<Expr, std::vector<Expr>>(const Expr& x, const std::vector<Expr>& states)>;

struct RnnOptions {
  // Run from the last input to the first; the outputs have that order too.
  bool go_backwards = false;
  // (samples, time) or (samples, time, 1), any dtype. Where it is 0, the iteration keeps the states and repeats the
  // previous output (0 in the first iteration).
  Expr mask = {};
  std::vector<Expr> constants = {};
  // Build every iteration into the graph. For few iterations; their number must be known.
  bool unroll = false;
  // The number of iterations; needed only if `unroll` cannot take it from the shape of the inputs.
  std::optional<std::int64_t> input_length = {};
};

struct RnnResult {
  Expr last_output;              // (samples, ...); zeros if there are no iterations
  Expr outputs;                  // (samples, time, ...)
  std::vector<Expr> new_states;  // after the last iteration
};

// Runs step_function over the time axis of inputs (samples, time, ...). Values that step_function uses beside its
// arguments are computed once. A product of the inputs alone with a matrix is one product for all iterations, as are
// weights' gradients. Throws ShapeError if inputs have fewer than 3 axes or if the mask, input_length or a new state
// does not fit; ValueError if the number of states changes, if there is a mask but no state, or if `unroll` is set and
// the number of iterations is unknown.
RnnResult rnn(const RnnStep& step_function, const Expr& inputs, const std::vector<Expr>& initial_states,
              const RnnOptions& options = {});

// ---- over the first axis ----

// fn of each element elems[i], stacked along a new first axis. fn is called once, with a placeholder for the element.
// The result is cast to `dtype` if given. With several tensors of equal length, fn gets one element of each and may
// return any number of values. Without elements the result has no rows. Rows that are split over ranks keep their
// placement.
using MapFunction = std::function<Expr(const Expr& element)>;
Expr map_fn(const MapFunction& fn, const Expr& elems, std::optional<DType> dtype = {});
using MapFunctionOfMany = std::function<std::vector<Expr>(const std::vector<Expr>& elements)>;
std::vector<Expr> map_fn(const MapFunctionOfMany& fn, const std::vector<Expr>& elems,
                         const std::vector<DType>& dtypes = {});

// fn(... fn(fn(initializer, elems[0]), elems[1]) ..., elems[n - 1]). The accumulator keeps its dtype and shape. Without
// an initializer the first element replaces it. foldr begins with the last element. The order matters, so rows that are
// split over ranks are gathered. Throws ShapeError if the accumulator's shape or dtype changes, or if there is neither
// an element nor an initializer.
using FoldFunction = std::function<Expr(const Expr& accumulator, const Expr& element)>;
Expr foldl(const FoldFunction& fn, const Expr& elems, const Expr& initializer = {});
Expr foldr(const FoldFunction& fn, const Expr& elems, const Expr& initializer = {});
// Folds over several tensors, with one accumulator per initializer (without initializers: per tensor).
using FoldFunctionOfMany =
    std::function<std::vector<Expr>(const std::vector<Expr>& accumulators, const std::vector<Expr>& elements)>;
std::vector<Expr> foldl(const FoldFunctionOfMany& fn, const std::vector<Expr>& elems,
                        const std::vector<Expr>& initializers = {});
std::vector<Expr> foldr(const FoldFunctionOfMany& fn, const std::vector<Expr>& elems,
                        const std::vector<Expr>& initializers = {});

// ---- watching ----

// Returns x. Each step that uses the result prints `message` and the global value, as NumPy formats it, to standard
// output: once, regardless of the number of ranks.
Expr print_tensor(const Expr& x, std::string message = {});

// Redirects the texts of print_tensor from standard output to `write`: one call per text, newline included, from a
// thread that runs a step. Call it before the first step.
void print_to(std::function<void(const std::string& text)> write);

}  // namespace syncline
#pragma GCC visibility pop
