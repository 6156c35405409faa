#include <algorithm>

#include "ops/control/branch.h"
#include "ops/control/loop_build.h"
#include "ops/graph/deferred.h"
#include "syncline/backend/control.h"
#include "syncline/backend/core.h"
#include "syncline/backend/math.h"
#include "syncline/backend/shape.h"

namespace syncline {
namespace {

// Swaps the axes of samples and time.
Expr time_and_samples(const Expr& x) {
  std::vector<int> pattern{1, 0};
  for (int axis = 2; axis < x.ndim(); ++axis) pattern.push_back(axis);
  return permute_dimensions(x, pattern);
}

// The values at time t of x (samples, time, ...).
Expr at_time(const Expr& x, std::int64_t t) { return squeeze(slice_axis(x, 1, t, 1), 1); }

// The first input, or zeros of its shape if the sequence is empty.
Expr first_input(const Expr& inputs) {
  if (inputs.shape()[1] > 0) return at_time(inputs, 0);
  std::vector<std::int64_t> none(static_cast<std::size_t>(inputs.ndim()), 0), one = none;
  one[1] = 1;
  return at_time(pad(inputs, none, one), 0);
}

// Returns the mask as bool of shape (samples, time).
Expr checked_mask(const Expr& mask, const Expr& inputs) {
  const Shape& shape = mask.shape();
  const bool column = shape.ndim() == 3 && shape[2] == 1;
  bool fits = shape.ndim() == 2 || column;
  for (int axis = 0; fits && axis < 2; ++axis)
    fits = shape[axis] < 0 || inputs.shape()[axis] < 0 || shape[axis] == inputs.shape()[axis];
  if (!fits)
    fail<ShapeError>("rnn: the mask ", shape, " does not fit inputs ", inputs.shape(),
                     "; it must be (samples, time) or (samples, time, 1)");
  const Expr flat = column ? squeeze(mask, 2) : mask;
  return flat.dtype() == DType::kBool ? flat : cast(flat, DType::kBool);
}

// The same for sizes that come with the feeds: a mask of one sample must not be broadcast over many.
Expr checked_mask_of_feeds(const Expr& mask, const Expr& inputs) {
  Meta of_mask = checked_mask(mask, inputs).meta();
  for (const int axis : {0, 1})
    if (of_mask.shape[axis] < 0) of_mask.shape[axis] = inputs.shape()[axis];
  return once_known("rnn", {mask, inputs}, of_mask,
                    [](auto operands) { return checked_mask(operands[0], operands[1]); });
}

// `inputs` with this number of time steps, which are checked when they are fed.
Expr of_length(const Expr& inputs, std::int64_t time) {
  Meta known = inputs.meta();
  if (known.shape[1] >= 0) return inputs;
  known.shape[1] = time;
  return once_known("rnn", {inputs}, known, [time](auto operands) {
    if (operands[0].shape()[1] != time)
      fail<ShapeError>("rnn: input_length is ", time, ", but inputs are ", operands[0].shape(),
                       "; it must be the length of their second axis");
    return operands[0];
  });
}

// a where the mask (samples) is true, otherwise b.
Expr choose(Expr mask, const Expr& a, const Expr& b) {
  while (mask.ndim() < a.ndim()) mask = expand_dims(mask, -1);
  return select(mask, a, b);
}

class Recurrence {
 public:
  Recurrence(const RnnStep& step, const Expr& inputs, const std::vector<Expr>& states, const RnnOptions& options)
      : step_(step), inputs_(inputs), initial_(states), options_(options) {
    if (inputs.ndim() < 3)
      fail<ShapeError>("rnn: inputs ", inputs.shape(), " have fewer than 3 axes; they must be (samples, time, ...)");
    const std::int64_t time = inputs.shape()[1], promised = options.input_length.value_or(time);
    if (promised < 0 ? options.input_length.has_value() : time >= 0 && promised != time)
      fail<ShapeError>("rnn: input_length is ", promised, ", but inputs are ", inputs.shape(),
                       "; it must be the length of their second axis");
    if (options.unroll && options.input_length) inputs_ = of_length(inputs, *options.input_length);
    if (!options.mask) return;
    if (states.empty())
      fail<ValueError>(
          "rnn: a mask is given without initial states; a masked time step keeps the previous states, so give initial "
          "states");
    mask_ = checked_mask_of_feeds(options.mask, inputs_);
  }

  RnnResult unrolled() {
    const std::int64_t time = inputs_.shape()[1];
    if (time == 0) return looped();
    if (time < 0)
      fail<ValueError>("rnn: unroll needs a known number of time steps, but inputs are ", inputs_.shape(),
                       "; give that dimension, or do not unroll");
    std::vector<Expr> states = initial_, outputs;
    Expr output;
    for (std::int64_t iteration = 0; iteration < time; ++iteration) {
      const std::int64_t t = options_.go_backwards ? time - 1 - iteration : iteration;
      const auto old_states = states;
      const Expr before = output;
      output = step(at_time(inputs_, t), states);
      if (mask_) hold(at_time(mask_, t), before ? before : zeros_like(output), output, old_states, states);
      outputs.push_back(output);
    }
    return {output, stack(outputs, 1), states};
  }

  RnnResult looped() {
    std::vector<Expr> states = initial_;
    const Expr sample = step(first_input(inputs_), states);
    LoopParts parts;
    parts.reverse = options_.go_backwards;
    auto element = [&](const Expr& x) {
      parts.sequences.push_back(time_and_samples(x));
      parts.elements.push_back(element_of(parts.sequences.back()));
      return parts.elements.back();
    };
    const Expr x = element(inputs_);
    const Expr mask = mask_ ? element(mask_) : Expr{};
    for (const Expr& state : initial_) parts.states.push_back(stand_in(state));
    const Expr before = stand_in(sample);
    states = parts.states;
    Expr output = step(x, states);
    if (mask) hold(mask, before, output, parts.states, states);
    parts.initial_states = initial_;
    parts.next_states = states;
    // The last output is a state too; often it is already one of the given states.
    const auto same = std::find(states.begin(), states.end(), output);
    const int last = static_cast<int>(same - states.begin());
    if (same == states.end()) {
      parts.states.push_back(before);
      parts.initial_states.push_back(zeros_like(sample));
      parts.next_states.push_back(output);
    }
    parts.residuals = {{output, false}};
    const int first_residual = static_cast<int>(parts.next_states.size());
    const bool is_a_state = same != states.end();
    const Expr loop = make_loop(std::move(parts));
    Expr last_output(loop.handle(), last);
    if (is_a_state) last_output = zeros_without_iterations(last_output);
    RnnResult result{last_output, time_and_samples(Expr(loop.handle(), first_residual)), {}};
    if (options_.go_backwards) result.outputs = reverse(result.outputs, {1});
    for (int i = 0; i < static_cast<int>(initial_.size()); ++i) result.new_states.push_back(Expr(loop.handle(), i));
    return result;
  }

 private:
  // Calls the step function and replaces `states`. Returns the output.
  Expr step(const Expr& x, std::vector<Expr>& states) const {
    std::vector<Expr> given = states;
    given.insert(given.end(), options_.constants.begin(), options_.constants.end());
    auto [output, next] = step_(x, given);
    if (!output) fail<ValueError>("rnn: the step function returns no output");
    if (output.ndim() == 0) fail<ShapeError>("rnn: the step function returns a scalar; return (samples, ...)");
    if (next.size() != initial_.size())
      fail<ValueError>("rnn: the step function takes ", initial_.size(), " states, but returns ", next.size(),
                       "; it must return as many as it takes");
    states = std::move(next);
    return output;
  }

  // Without iterations there is no output: the last output is zero, while states keep their initial values. The number
  // of iterations may be known only to the plan.
  Expr zeros_without_iterations(const Expr& state) const {
    if (inputs_.shape()[1] > 0) return state;
    return apply<Choose>({state, zeros_like(state), apply<Condition>({count(inputs_, {1}, DType::kInt32)})});
  }

  // Restores the values before the iteration where the mask is false.
  static void hold(const Expr& mask, const Expr& before, Expr& output, const std::vector<Expr>& old_states,
                   std::vector<Expr>& states) {
    output = choose(mask, output, before);
    for (std::size_t i = 0; i < states.size(); ++i) states[i] = choose(mask, states[i], old_states[i]);
  }

  const RnnStep& step_;
  Expr inputs_;
  const std::vector<Expr>& initial_;
  const RnnOptions& options_;
  Expr mask_;
};

}  // namespace

RnnResult rnn(const RnnStep& step_function, const Expr& inputs, const std::vector<Expr>& initial_states,
              const RnnOptions& options) {
  Recurrence recurrence(step_function, inputs, initial_states, options);
  return options.unroll ? recurrence.unrolled() : recurrence.looped();
}

}  // namespace syncline
