"""Control flow: choice, recurrence, folds; and print_tensor. Functions that are passed in are called while the graph is
built, with tensors."""

from __future__ import annotations

from syncline import _core
from syncline.session import learning_phase
from syncline.types import Any, Callable, DType, List, Optional, Sequence, Side, StepFunction, Tensor, TensorLike, Tuple


def rnn(
    step_function: StepFunction,
    inputs: TensorLike,
    initial_states: Sequence[TensorLike],
    go_backwards: bool = False,
    mask: Optional[TensorLike] = None,
    constants: Optional[Sequence[TensorLike]] = None,
    unroll: bool = False,
    input_length: Optional[int] = None,
) -> Tuple[Tensor, Tensor, List[Tensor]]:
    """Goes through inputs along time.

    # Arguments
        step_function: of (input, states), where input is (samples, ...) and states is a list followed by the constants;
            returns (output, new states).
        inputs: (samples, time, ...), at least 3 axes.
        initial_states: list of tensors.
        go_backwards: from the last input to the first; the outputs then come in that order.
        mask: (samples, time) or (samples, time, 1): 0 where an input does not count. States then stay, and the output
            is that of the turn before, or 0.
        constants: list of tensors that every turn gets.
        unroll: makes every turn part of the graph; for few turns, whose number is known.
        input_length: the number of turns, needed only if `unroll` cannot see it.
    # Returns
        A tuple: the last output (samples, ...), all outputs (samples, time, ...), the list of the last states.
    # Raises
        ValueError: inputs of fewer than 3 axes, a mask without states, unroll with an unknown number of turns.
    """
    phase = [False]

    def turn(x, states):
        output, new_states = step_function(x, states)
        phase[0] = phase[0] or getattr(output, "_uses_learning_phase", False)
        return output, list(new_states)

    last_output, outputs, new_states = _core.rnn(
        turn, inputs, list(initial_states), bool(go_backwards), mask, constants, bool(unroll), input_length
    )
    last_output._uses_learning_phase = phase[0]
    return last_output, outputs, new_states


def switch(condition: TensorLike, then_expression: Side, else_expression: Side) -> Tensor:
    """then_expression where the condition holds, otherwise else_expression.

    A scalar condition takes one side as a whole; the sides may be functions without arguments, and only the side that
    is taken is computed in a step. A condition with axes chooses element by element. Raises ValueError if the shapes
    do not fit.
    """
    return _core.switch(condition, then_expression, else_expression)


def in_train_phase(x: Side, alt: Side, training: Optional[TensorLike] = None) -> Tensor:
    """x while training, alt otherwise. Both may be functions without arguments. training: True, False, 1, 0 or a scalar
    tensor; the learning phase unless given."""
    from_phase = training is None
    if from_phase:
        training = learning_phase()
    if not isinstance(training, _core.Tensor):
        side = x if training else alt
        return side() if callable(side) and not isinstance(side, _core.Tensor) else side
    chosen = switch(training, x, alt)
    if from_phase:
        chosen._uses_learning_phase = True
    return chosen


def in_test_phase(x: Side, alt: Side, training: Optional[TensorLike] = None) -> Tensor:
    """x while testing, alt while training; as in_train_phase."""
    return in_train_phase(alt, x, training=training)


def map_fn(fn: Callable[..., Any], elems: TensorLike, name: Optional[str] = None, dtype: Optional[DType] = None) -> Any:
    """fn of each element of `elems` along its first axis, stacked. Of a list of tensors fn gets a list. dtype: of the
    result, if fn changes it."""
    return _core.map_fn(fn, elems, dtype)


def foldl(
    fn: Callable[..., Any], elems: TensorLike, initializer: Optional[TensorLike] = None, name: Optional[str] = None
) -> Any:
    """fn(... fn(fn(initializer, elems[0]), elems[1]) ...). Without an initializer the first element takes its place."""
    return _core.fold(fn, elems, initializer, False)


def foldr(
    fn: Callable[..., Any], elems: TensorLike, initializer: Optional[TensorLike] = None, name: Optional[str] = None
) -> Any:
    """As foldl, beginning with the last element."""
    return _core.fold(fn, elems, initializer, True)


def print_tensor(x: TensorLike, message: str = "") -> Tensor:
    """x. In each step that uses the result, `message` and the value appear on standard output, once whatever the
    number of ranks."""
    return _core.print_tensor(x, message)
