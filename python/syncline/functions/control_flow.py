"""Control flow: choice, recurrence, folds; and print_tensor. Functions given as arguments are called with tensors while the
graph is built."""

from __future__ import annotations

from syncline import _core
from syncline.functions.session import learning_phase
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
    """Iterates over the time axis of inputs and passes states from each iteration to the next.

    Args:
        step_function: function of (input, states) that returns (output, new states): `input` is a tensor (samples,
            ...), `states` a list of the state tensors and then the constants; the new states have the shapes and dtypes
            of the old ones. It is called while the graph is built.
        inputs: tensor (samples, time, ...) of at least three axes; any dtype.
        initial_states: list of tensors (samples, ...); any dtype.
        go_backwards: bool: whether to iterate from the last input to the first; the outputs are in that order.
        mask: tensor (samples, time) or (samples, time, 1) of any dtype, or None: 0 for an ignored input, which keeps the
            states and repeats the output of the previous iteration (0 in the first).
        constants: list of tensors of any shape and dtype, given to every iteration; or None.
        unroll: bool: whether every iteration becomes part of the graph; for few iterations of known number.
        input_length: int: the number of iterations for `unroll`, if the shape of inputs does not have it; or None.
    Returns:
        Tuple: the last output, a tensor (samples, ...); all outputs, a tensor (samples, time, ...); the list of the
        last states.
    Raises:
        TypeError: step_function is not a function, states are not a list of tensors, or input_length is not an int.
        ValueError: inputs have fewer than three axes; a mask, input_length or new state does not fit; there is a mask but
            no state; `unroll` with an unknown number of iterations.
    See: ops/control/rnn.cc
    Example:
        >>> def running_sum(x, states):
        ...     total = states[0] + x
        ...     return total, [total]
        >>> last, outputs, states = K.rnn(running_sum, [[[1.], [2.], [3.]]], [K.zeros((1, 1))])
        >>> K.eval(outputs)[0, :, 0]
        array([1., 3., 6.], dtype=float32)
    """

    def iteration(x, states):
        output, new_states = step_function(x, states)
        return output, list(new_states)

    last_output, outputs, new_states = _core.rnn(
        iteration, inputs, list(initial_states), bool(go_backwards), mask, constants, bool(unroll), input_length
    )
    last_output._uses_learning_phase = _core.depends_on_phase(last_output)
    return last_output, outputs, new_states


def switch(condition: TensorLike, then_expression: Side, else_expression: Side) -> Tensor:
    """then_expression where the condition is not 0, else_expression elsewhere.

    A scalar condition selects one side, and a step computes only that side. The sides may then be lists, or functions
    that return lists; the result is a list too. A condition with axes selects element by element; its axes are the
    first axes of the expressions.

    Args:
        condition: tensor of shape () or of the first axes of the expressions; any dtype.
        then_expression: tensor of any shape and dtype, or a function without arguments that makes one.
        else_expression: tensor of then_expression's shape and dtype, or a function without arguments that makes one.
    Returns:
        Tensor of the expressions' shape and dtype.
    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes differ, the condition does not fit them, or a tensor is sparse.
    See: ops/control/switch.cc
    Example:
        >>> K.eval(K.switch([True, False], [[1, 1], [2, 2]], [[8, 8], [9, 9]]))
        array([[1, 1],
               [9, 9]], dtype=int32)
    """
    return _core.switch(condition, then_expression, else_expression)


def in_train_phase(x: Side, alt: Side, training: Optional[TensorLike] = None) -> Tensor:
    """x while training, alt while testing.

    Args:
        x: tensor of any shape and dtype, or a function without arguments that makes one.
        alt: tensor of x's shape and dtype, or a function without arguments that makes one.
        training: bool, int or any object with a truth value, or a tensor of any dtype: whether the model is being trained;
            a tensor with axes chooses element by element, as in switch; None: learning_phase().
    Returns:
        Tensor of x's shape and dtype. If the phase is known, it is the side itself, and only that side's function is called.
    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes differ, a tensor `training` does not fit them, or it is an array of several elements.
    See: ops/control/switch.cc
    Example:
        >>> K.eval(K.in_train_phase(K.constant([1.]), K.constant([2.]), training=True))
        array([1.], dtype=float32)
    """
    from_phase = training is None
    if from_phase:
        training = learning_phase()
    if not isinstance(training, _core.Tensor):
        side = x if training else alt
        return side() if callable(side) and not isinstance(side, _core.Tensor) else side
    chosen = switch(training, x, alt)
    if from_phase:
        for one in chosen if isinstance(chosen, (list, tuple)) else [chosen]:
            one._uses_learning_phase = True
    return chosen


def in_test_phase(x: Side, alt: Side, training: Optional[TensorLike] = None) -> Tensor:
    """x while testing, alt while training.

    Args:
        x: tensor of any shape and dtype, or a function without arguments that makes one.
        alt: tensor of x's shape and dtype, or a function without arguments that makes one.
        training: bool, int or any object with a truth value, or a tensor of any dtype: whether the model is being trained;
            a tensor with axes chooses element by element, as in switch; None: learning_phase().
    Returns:
        Tensor of x's shape and dtype. If the phase is known, it is the side itself, and only that side's function is called.
    Raises:
        TypeError: the dtypes differ.
        ValueError: the shapes differ, a tensor `training` does not fit them, or it is an array of several elements.
    See: ops/control/switch.cc
    """
    return in_train_phase(alt, x, training=training)


def map_fn(fn: Callable[..., Any], elems: TensorLike, name: Optional[str] = None, dtype: Optional[DType] = None) -> Any:
    """Calls a function with each element along the first axis, and stacks the results.

    Args:
        fn: function of one element, a tensor of elems' dtype without the first axis, that returns a tensor or a list of
            tensors; if `elems` is a list, a function of a list of tensors. It is called while the graph is built.
        elems: tensor of at least one axis and any dtype, or a list of such tensors with first axes of equal length.
        name: str, or None; ignored.
        dtype: str or NumPy dtype to cast the result to, or None.
    Returns:
        Tensor (elements, ...): the results of fn. If fn returns a list: a list of such tensors.
    Raises:
        TypeError: fn is not a function, or the dtype is unknown.
        ValueError: a tensor is a scalar or sparse, the lengths differ, or `elems` is empty.
    See: ops/control/fold.cc
    Example:
        >>> K.eval(K.map_fn(lambda row: K.sum(row * row), K.constant([[1., 2.], [3., 4.]])))
        array([ 5., 25.], dtype=float32)
    """
    return _core.map_fn(fn, elems, dtype)


def foldl(
    fn: Callable[..., Any], elems: TensorLike, initializer: Optional[TensorLike] = None, name: Optional[str] = None
) -> Any:
    """Combines the elements along the first axis, from the first to the last: fn(... fn(fn(initializer, e0), e1) ...,
    en).

    Args:
        fn: function of (accumulator, element), two tensors, that returns the new accumulator, of the same shape and
            dtype. It is called while the graph is built.
        elems: tensor of at least one axis and any dtype, or a list of such tensors with first axes of equal length:
            fn then gets a list of elements.
        initializer: tensor of any shape and dtype: the first accumulator; None: the first element.
        name: str, or None; ignored.
    Returns:
        Tensor: the last accumulator, of the first one's shape and dtype; with several initializers a list of tensors.
    Raises:
        TypeError: fn is not a function, or its result is not numeric.
        ValueError: the accumulator changes its shape or dtype, a tensor is a scalar or sparse, or there are neither elements nor
            an initializer.
    See: ops/control/fold.cc
    Example:
        >>> K.eval(K.foldl(lambda total, row: 10 * total + row, K.constant([[1.], [2.], [3.]])))
        array([123.], dtype=float32)
    """
    return _core.fold(fn, elems, initializer, False)


def foldr(
    fn: Callable[..., Any], elems: TensorLike, initializer: Optional[TensorLike] = None, name: Optional[str] = None
) -> Any:
    """Combines the elements along the first axis, from the last to the first: fn(... fn(fn(initializer, en), ...) ...,
    e0).

    Args:
        fn: function of (accumulator, element), two tensors, that returns the new accumulator, of the same shape and
            dtype. It is called while the graph is built.
        elems: tensor of at least one axis and any dtype, or a list of such tensors with first axes of equal length:
            fn then gets a list of elements.
        initializer: tensor of any shape and dtype: the first accumulator; None: the last element.
        name: str, or None; ignored.
    Returns:
        Tensor: the last accumulator, of the first one's shape and dtype; with several initializers a list of tensors.
    Raises:
        TypeError: fn is not a function, or its result is not numeric.
        ValueError: the accumulator changes its shape or dtype, a tensor is a scalar or sparse, or there are neither elements nor
            an initializer.
    See: ops/control/fold.cc
    Example:
        >>> K.eval(K.foldr(lambda total, row: 10 * total + row, K.constant([[1.], [2.], [3.]])))
        array([321.], dtype=float32)
    """
    return _core.fold(fn, elems, initializer, True)


def print_tensor(x: TensorLike, message: str = "") -> Tensor:
    """Prints a tensor's value to sys.stdout after each step that uses the result, once for all ranks.

    Args:
        x: tensor of any shape and dtype.
        message: str: printed before the value.
    Returns:
        Tensor of the shape, dtype and value of x.
    Raises:
        TypeError: x is not numeric, or the message is not a str.
        ValueError: x is sparse.
    See: ops/control/print.cc
    Example:
        >>> y = K.eval(2 * K.print_tensor(K.constant([1., 2.]), message='x is'))
        x is [1. 2.]
    """
    return _core.print_tensor(x, message)
