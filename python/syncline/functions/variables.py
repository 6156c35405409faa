"""Variables: creating, reading, setting and updating; functions and gradients."""

from __future__ import annotations

from itertools import count
from operator import itemgetter

from syncline import _core
from syncline.distribution import ranks, reads
from syncline.functions.tensors import _marked, _name, is_tensor, is_variable
from syncline.types import (
    Any,
    Callable,
    DType,
    List,
    Optional,
    Parameter,
    Sequence,
    Sizes,
    Tensor,
    TensorLike,
    Tuple,
    Update,
    Updates,
    Value,
    Variable,
)


def variable(
    value: Any,
    dtype: Optional[DType] = None,
    name: Optional[str] = None,
    constraint: Optional[Callable[[Tensor], Tensor]] = None,
) -> Variable:
    """A variable: a tensor whose value persists between calls of functions and can be set.

    Args:
        value: number, list or NumPy array of any shape; a SciPy sparse matrix, which gives a sparse variable; or a
            tensor that needs no feeds, such as random_uniform(...), which is computed immediately.
        dtype: str or NumPy dtype of the variable; None: floatx().
        name: str, or None; made unique and prefixed with the open name scopes.
        constraint: function of a tensor of the variable's shape and dtype that returns such a tensor, or None: optimizers
            apply it to new values. It is the attribute `constraint` of the result.
    Returns:
        Variable of the value's shape and this dtype. Under several ranks its value is rank 0's.
    Raises:
        TypeError: the value is not numeric, or the dtype is unknown.
        ValueError: the value is a tensor that needs feeds.
    See: runtime/execution/variable.cc; of a sparse value runtime/execution/sparse_variable.cc
    Example:
        >>> x = K.variable([[1, 2], [3, 4]], name='table')
        >>> x.shape, x.dtype
        ((2, 2), 'float32')
    """
    return _marked(_core.variable(value, dtype, _name(name, "Variable")), constraint)


def zeros(shape: Sizes, dtype: Optional[DType] = None, name: Optional[str] = None) -> Any:
    """A variable of zeros; a tensor of zeros if a size is not known yet, because the shape of a variable is fixed.

    Args:
        shape: tuple of ints >= 0 or scalar integer tensors, or an integer vector.
        dtype: str or NumPy dtype of the result; None: floatx().
        name: str, or None; made unique.
    Returns:
        Variable (or tensor) of this shape and dtype.
    Raises:
        TypeError: the shape does not consist of integers, or the dtype is unknown.
        ValueError: a size is None or negative.
    See: runtime/execution/variable.cc
    Example:
        >>> K.eval(K.zeros((2, 3)))
        array([[0., 0., 0.],
               [0., 0., 0.]], dtype=float32)
    """
    return _filled(0.0, shape, dtype, name)


def ones(shape: Sizes, dtype: Optional[DType] = None, name: Optional[str] = None) -> Any:
    """A variable of ones; a tensor of ones if a size is not known yet, because the shape of a variable is fixed.

    Args:
        shape: tuple of ints >= 0 or scalar integer tensors, or an integer vector.
        dtype: str or NumPy dtype of the result; None: floatx().
        name: str, or None; made unique.
    Returns:
        Variable (or tensor) of this shape and dtype.
    Raises:
        TypeError: the shape does not consist of integers, or the dtype is unknown.
        ValueError: a size is None or negative.
    See: runtime/execution/variable.cc
    Example:
        >>> K.eval(K.ones((3,), dtype='int32'))
        array([1, 1, 1], dtype=int32)
    """
    return _filled(1.0, shape, dtype, name)


def _filled(value, shape, dtype, name):
    made = _core.filled(value, shape, dtype, _name(name, "Variable"))
    return _marked(made) if is_variable(made) else made


def eye(size: Any, dtype: Optional[DType] = None, name: Optional[str] = None) -> Variable:
    """A variable that holds an identity matrix.

    Args:
        size: int >= 0, number of rows and columns; or a pair of ints (rows, columns).
        dtype: str or NumPy dtype of the variable; None: floatx().
        name: str, or None; made unique.
    Returns:
        Variable (rows, columns) of this dtype.
    Raises:
        TypeError: the size does not consist of integers, or the dtype is unknown.
        ValueError: the size is negative, or not one or two numbers.
    See: runtime/execution/variable.cc
    Example:
        >>> K.eval(K.eye(2))
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return _marked(_core.eye(size, dtype, _name(name, "Variable")))


def eval(x: TensorLike) -> Any:
    """The value of a tensor that needs no feeds. An update is applied, and its new value returned.

    Args:
        x: tensor of any shape and dtype.
    Returns:
        NumPy array of x's shape and dtype; a NumPy number if the shape is (). Sparse tensors are returned dense.
    Raises:
        TypeError: x is not numeric.
        ValueError: x depends on a placeholder, which needs function(); or the step rejects a value.
    See: runtime/execution/function.cc
    Example:
        >>> K.eval(K.variable([1., 2.]) * 3)
        array([3., 6.], dtype=float32)
    """
    return _core.eval(x)


def get_value(x: TensorLike) -> Any:
    """A copy of a variable's value, or the value of a tensor that needs no feeds.

    Args:
        x: Variable or tensor of any shape and dtype.
    Returns:
        NumPy array of its shape and dtype, a NumPy number if the shape is (); a scipy.sparse.csr_matrix for a sparse
        variable.
    Raises:
        ValueError: x is a placeholder or needs one.
    See: runtime/execution/variable.cc
    Example:
        >>> K.get_value(K.zeros((2,)))
        array([0., 0.], dtype=float32)
    """
    return batch_get_value([x])[0]


def batch_get_value(ops: Sequence[TensorLike]) -> List[Any]:
    """Copies of the values of several variables and tensors that need no feeds, all from the same state of variables.

    Args:
        ops: list of Variables or tensors of any shapes and dtypes.
    Returns:
        List of NumPy arrays, as get_value returns them.
    Raises:
        TypeError: `ops` is not a list.
        ValueError: an entry is a placeholder or needs one.
    See: runtime/execution/variable.cc
    Example:
        >>> K.batch_get_value([K.zeros((2,)), K.ones((1,))])
        [array([0., 0.], dtype=float32), array([1.], dtype=float32)]
    """
    values = list(ops)
    if any(is_tensor(x) and not is_variable(x) for x in values):  # one step computes the tensors and reads the variables
        chosen = [i for i, x in enumerate(values) if is_tensor(x) and not isinstance(x, _core.SparseVariable)]
        for i, value in zip(chosen, _core.Function([], [values[i] for i in chosen], [], "batch_get_value")([])):
            values[i] = value
    chosen = [i for i, x in enumerate(values) if is_variable(x)]
    for i, value in zip(chosen, reads.values_of([values[i] for i in chosen])):
        values[i] = value
    return values


def set_value(x: Variable, value: Value) -> None:
    """Sets a variable's value. After an error the old value remains.

    Args:
        x: Variable of any shape and dtype.
        value: number, list or NumPy array of x's shape, cast to its dtype; for a sparse variable a SciPy sparse matrix.
    Returns:
        None.
    Raises:
        TypeError: the value is not numeric.
        ValueError: x is not a variable, the value has another shape, or it is a tensor.
    See: runtime/execution/variable.cc
    Example:
        >>> x = K.zeros((2,))
        >>> K.set_value(x, [1, 2])
        >>> K.get_value(x)
        array([1., 2.], dtype=float32)
    """
    _core.set_value(x, value)


def batch_set_value(tuples: Sequence[Tuple[Variable, Value]]) -> None:
    """Sets the values of several variables. After an error all old values remain.

    Args:
        tuples: list of pairs (Variable, value): the value is a number, which fills the variable, or a list or NumPy
            array of its shape; it is cast to the variable's dtype.
    Returns:
        None.
    Raises:
        TypeError: `tuples` is not a list of pairs (tuples or lists), or a value is not numeric.
        ValueError: an entry is not a variable, or a value has another shape or is a tensor.
    See: runtime/execution/variable.cc
    Example:
        >>> x, y = K.zeros((2,)), K.zeros((1,))
        >>> K.batch_set_value([(x, [1, 2]), (y, [3])])
        >>> K.get_value(x), K.get_value(y)
        (array([1., 2.], dtype=float32), array([3.], dtype=float32))
    """
    _core.batch_set_value(tuples)


def update(x: Variable, new_x: TensorLike) -> Update:
    """An update that gives a variable a new value, for the `updates` of a function.

    Args:
        x: Variable of any shape and dtype.
        new_x: tensor of x's shape, or of shape () to fill it; cast to x's dtype.
    Returns:
        Update: a tensor of the new value, which function() and eval() carry out.
    Raises:
        TypeError: new_x is not numeric.
        ValueError: x is not a variable, or new_x has another shape.
    See: runtime/execution/variable.cc
    Example:
        >>> x = K.variable([1., 2.])
        >>> K.function([], [], updates=[K.update(x, 10 * x)])([])
        []
        >>> K.get_value(x)
        array([10., 20.], dtype=float32)
    """
    return _core.update(x, new_x)


def update_add(x: Variable, increment: TensorLike) -> Update:
    """An update that adds to a variable, for the `updates` of a function.

    Args:
        x: Variable of any shape and any dtype but bool.
        increment: tensor whose shape broadcasts to x's; cast to x's dtype.
    Returns:
        Update: a tensor of the new value, which function() and eval() carry out.
    Raises:
        TypeError: the increment is not numeric, or x is bool.
        ValueError: x is not a variable, or the shapes do not fit.
    See: runtime/execution/variable.cc
    Example:
        >>> K.eval(K.update_add(K.variable([1., 2.]), 10.))
        array([11., 12.], dtype=float32)
    """
    return _core.update_add(x, increment)


def update_sub(x: Variable, decrement: TensorLike) -> Update:
    """An update that subtracts from a variable, for the `updates` of a function.

    Args:
        x: Variable of any shape and any dtype but bool.
        decrement: tensor whose shape broadcasts to x's; cast to x's dtype.
    Returns:
        Update: a tensor of the new value, which function() and eval() carry out.
    Raises:
        TypeError: the decrement is not numeric, or x is bool.
        ValueError: x is not a variable, or the shapes do not fit.
    See: runtime/execution/variable.cc
    Example:
        >>> K.eval(K.update_sub(K.variable([1., 2.]), [0., 2.]))
        array([1., 0.], dtype=float32)
    """
    return _core.update_sub(x, decrement)


def moving_average_update(x: Variable, value: TensorLike, momentum: Parameter) -> Update:
    """An update of a moving average, x = momentum * x + (1 - momentum) * value, for the `updates` of a function.

    Args:
        x: Variable of any shape and any dtype but bool.
        value: tensor whose shape broadcasts to x's; cast to x's dtype.
        momentum: float, or tensor, cast to x's dtype, whose shape broadcasts to x's: the weight of the old value.
    Returns:
        Update: a tensor of the new value, which function() and eval() carry out.
    Raises:
        TypeError: x is bool; the value or the momentum is not numeric; x holds integers and the momentum is a fraction, or a
            tensor of a dtype that x's does not include (cast it).
        ValueError: x is not a variable, the momentum is beyond x's dtype, or the shapes do not fit.
    See: runtime/execution/variable.cc
    Example:
        >>> K.eval(K.moving_average_update(K.variable([1.]), [3.], 0.5))
        array([2.], dtype=float32)
    """
    return _core.moving_average_update(x, value, momentum)


def gradients(loss: Tensor, variables: Sequence[Tensor]) -> List[Optional[Tensor]]:
    """The derivatives of the sum of a loss with respect to tensors. They can be differentiated again.

    Args:
        loss: tensor of any shape and floating dtype.
        variables: list of tensors of any shapes and floating dtypes: variables, placeholders or intermediate tensors.
    Returns:
        List of tensors of their shapes and dtypes; None for a tensor that the loss does not depend on, or depends on
        only through functions without a gradient, such as round and argmax.
    Raises:
        TypeError: the loss is not floating.
        ValueError: one of the variables is not a tensor.
    See: ops/graph/gradients.cc
    Example:
        >>> x = K.variable([1., 2., 3.])
        >>> K.eval(K.gradients(K.sum(x * x), [x])[0])
        array([2., 4., 6.], dtype=float32)
    """
    return _core.gradients(loss, variables if isinstance(variables, (list, tuple)) else [variables])


def function(
    inputs: Any,
    outputs: Any,
    updates: Optional[Updates] = None,
    name: Optional[str] = None,
    **kwargs: Any,
) -> Callable[[Any], Any]:
    """A callable that computes tensors from fed values and updates variables.

    It is called with a list of values, one for each input (cast to the input's dtype), and returns a list of NumPy
    arrays, one for each output (if `outputs` is not a list: the array). Outputs are computed from the variables' values
    before the updates. All ranks call the same functions in the same order with the same (global) batch, and get the
    same results.

    Args:
        inputs: list of placeholders, or of other tensors, whose fed values replace the computed ones, of any shapes and
            dtypes; may be nested. Without learning_phase() among the inputs it is 0.
        outputs: tensor, or list of tensors, of any shapes and dtypes; nested lists, tuples and dicts give results of
            the same structure.
        updates: list of results of update(), update_add() and so on, or of pairs (Variable, new value); or None.
        name: str for messages, or None.
    Returns:
        Function: as described above. A call raises TypeError for values that are not numeric, and ValueError for tensors
        and for values that do not fit the inputs.
    Raises:
        TypeError: an input is not a tensor, or an output neither a tensor nor numeric.
        ValueError: an input is a variable, which cannot be fed, an entry of updates is not an update, or an argument is unknown.
    See: runtime/execution/function.cc
    Example:
        >>> x, total = K.placeholder((None,)), K.zeros(())
        >>> add = K.function([x], [K.sum(x)], updates=[K.update_add(total, K.sum(x))])
        >>> [float(add([[1., 2.]])[0]) for _ in range(2)], float(K.get_value(total))
        ([3.0, 3.0], 6.0)
    """
    if kwargs:
        raise ValueError(f"function: unknown arguments {sorted(kwargs)}; the arguments are inputs, outputs, updates and name")
    pack = None
    if not isinstance(outputs, list) or any(isinstance(x, _NESTS) for x in outputs):
        pack = _packer(outputs, count())
    kind = ranks.function_class()
    return kind(list(_flat(inputs)), list(_flat(outputs)), [] if updates is None else updates, name or "function", pack)


_NESTS = (list, tuple, dict)


def _entries(nest):
    return [nest[key] for key in sorted(nest)] if isinstance(nest, dict) else nest


def _flat(nest):
    # The tensors of nested lists, tuples and dicts, in TensorFlow's order.
    if not isinstance(nest, _NESTS):
        yield nest
        return
    for entry in _entries(nest):
        yield from _flat(entry)


def _packer(nest, numbers):
    # A function that arranges a list of results in the structure of `nest`.
    if not isinstance(nest, _NESTS):
        return itemgetter(next(numbers))
    parts = [_packer(entry, numbers) for entry in _entries(nest)]
    if isinstance(nest, dict):
        keys = sorted(nest)
        return lambda values: {key: part(values) for key, part in zip(keys, parts)}
    form = tuple if isinstance(nest, tuple) else list
    return lambda values: form(part(values) for part in parts)
