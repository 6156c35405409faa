"""Tensors and variables: making them, asking about them, setting them; functions and gradients."""

from __future__ import annotations

from itertools import count
from operator import itemgetter

import numpy as np

from syncline import _core, feeds, ranks
from syncline._core import Tensor, Variable
from syncline.session import name_scope
from syncline.types import (
    Any,
    Callable,
    DType,
    List,
    Optional,
    Parameter,
    Sequence,
    Size,
    Sizes,
    Tensor,
    TensorLike,
    Tuple,
    Update,
    Updates,
    Value,
    Variable,
)


def _name(name, default):
    return name_scope.scoped(name or default)


def _marked(x, constraint=None):
    """x with the attributes that Keras expects on variables and placeholders."""
    x._keras_shape = tuple(x.shape)
    x._uses_learning_phase = False
    if is_variable(x):
        x.constraint = constraint
    return x


def variable(
    value: Any,
    dtype: Optional[DType] = None,
    name: Optional[str] = None,
    constraint: Optional[Callable[[Tensor], Tensor]] = None,
) -> Variable:
    """A variable with this initial value.

    # Arguments
        value: number, list, NumPy array, SciPy sparse matrix, or a tensor that needs no feeds (an initializer such as
            random_uniform(...)), which is computed at once.
        dtype: of the variable; floatx() unless given.
        name: made unique, and put into the open name scopes.
        constraint: function of the variable that optimizers project its new values with; kept as `x.constraint`.
    # Returns
        A Variable of the value's shape. Under several ranks it holds rank 0's value.
    """
    return _marked(_core.variable(value, dtype, _name(name, "Variable")), constraint)


def constant(
    value: Value, dtype: Optional[DType] = None, shape: Optional[Sequence[int]] = None, name: Optional[str] = None
) -> Tensor:
    """A tensor that never changes, of dtype floatx() unless given. With a shape, `value` holds as many elements, or one
    that fills it; otherwise ValueError."""
    return _core.constant(value, dtype, shape, name or "")


def placeholder(
    shape: Optional[Sequence[Size]] = None,
    ndim: Optional[int] = None,
    dtype: Optional[DType] = None,
    sparse: bool = False,
    name: Optional[str] = None,
) -> Tensor:
    """A tensor whose value is fed to a function.

    # Arguments
        shape: tuple; None for dimensions that come with the feeds.
        ndim: number of axes, all unknown, instead of a shape.
        dtype: floatx() unless given.
        sparse: a sparse matrix; then of two axes.
    """
    return _marked(_core.placeholder(shape, ndim, dtype, bool(sparse), _name(name, "Placeholder")))


def is_placeholder(x: Any) -> bool:
    """Whether x is a placeholder. Any Python object may be asked."""
    return _core.is_placeholder(x)


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor or a variable. Any Python object may be asked."""
    return isinstance(x, Tensor)


def is_variable(x: Any) -> bool:
    """Whether x is a variable. Any Python object may be asked."""
    return isinstance(x, (Variable, _core.SparseVariable))


def is_keras_tensor(x: Any) -> bool:
    """Whether x is the output of a Keras layer or of Input(). Raises ValueError if it is no tensor at all."""
    if not is_tensor(x):
        raise ValueError(
            f"is_keras_tensor: {type(x).__name__} is no tensor; give a placeholder, a variable, or what a function of "
            "the backend returned"
        )
    return hasattr(x, "_keras_history")


def is_sparse(tensor: Tensor) -> bool:
    """Whether the tensor is sparse."""
    return is_tensor(tensor) and _core.is_sparse(tensor)


def to_dense(tensor: Tensor) -> Tensor:
    """A sparse tensor with its zeros; a dense one is returned as it is."""
    return _core.to_dense(tensor) if is_sparse(tensor) else tensor


def shape(x: TensorLike) -> Tensor:
    """The shape as a tensor: int32 of ndim(x) elements."""
    return _core.shape(x)


def size(x: TensorLike, name: Optional[str] = None) -> Tensor:
    """The number of elements as a tensor: an int32 scalar."""
    return _core.size(x)


def int_shape(x: TensorLike) -> Tuple[Optional[int], ...]:
    """The shape as a tuple, None where a dimension comes with the feeds. A Keras layer's word (`_keras_shape`) counts
    more than what the graph knows."""
    if hasattr(x, "_keras_shape"):
        return x._keras_shape
    return tuple(x.shape if isinstance(x, Tensor) else np.shape(x))


def get_variable_shape(x: TensorLike) -> Tuple[Optional[int], ...]:
    """int_shape by its old name."""
    return int_shape(x)


def ndim(x: TensorLike) -> int:
    """The number of axes."""
    return x.ndim if isinstance(x, Tensor) else np.ndim(x)


def dtype(x: TensorLike) -> str:
    """The dtype's name, as 'float32'."""
    return x.dtype if isinstance(x, Tensor) else str(np.asarray(x).dtype)


def count_params(x: TensorLike) -> int:
    """The number of elements of a variable or of a tensor of known shape. Raises ValueError if it is not known."""
    return _core.count_params(x)


def zeros(shape: Sizes, dtype: Optional[DType] = None, name: Optional[str] = None) -> Any:
    """A variable of zeros, of dtype floatx() unless given; with a tensor among the sizes a tensor."""
    return _filled(0.0, shape, dtype, name)


def ones(shape: Sizes, dtype: Optional[DType] = None, name: Optional[str] = None) -> Any:
    """A variable of ones, of dtype floatx() unless given; with a tensor among the sizes a tensor."""
    return _filled(1.0, shape, dtype, name)


def _filled(value, shape, dtype, name):
    made = _core.filled(value, shape, dtype, _name(name, "Variable"))
    return _marked(made) if is_variable(made) else made


def eye(size: Any, dtype: Optional[DType] = None, name: Optional[str] = None) -> Variable:
    """A variable: the identity matrix of `size` rows, or (rows, columns)."""
    return _marked(_core.eye(size, dtype, _name(name, "Variable")))


def zeros_like(x: TensorLike, dtype: Optional[DType] = None, name: Optional[str] = None) -> Tensor:
    """Zeros of x's shape, and dtype unless one is given."""
    return _core.zeros_like(x, dtype, name or "")


def ones_like(x: TensorLike, dtype: Optional[DType] = None, name: Optional[str] = None) -> Tensor:
    """Ones of x's shape, and dtype unless one is given."""
    return _core.ones_like(x, dtype, name or "")


def identity(x: TensorLike, name: Optional[str] = None) -> Tensor:
    """A tensor of the same value."""
    return _core.identity(x, name or "")


def cast(x: TensorLike, dtype: DType) -> Tensor:
    """x in another dtype. bool becomes 0 and 1, fractions are cut towards zero."""
    return _core.cast(x, dtype)


def stop_gradient(variables: Any) -> Any:
    """The same tensor, or list of tensors, that gradients() does not look through."""
    if isinstance(variables, (list, tuple)):
        return [_core.stop_gradient(x) for x in variables]
    return _core.stop_gradient(variables)


def eval(x: TensorLike) -> Any:
    """The value of a tensor that needs no feeds, as a NumPy array; sparse ones with their zeros. An update is carried
    out."""
    return _core.eval(x)


def get_value(x: TensorLike) -> Any:
    """A copy of a variable's value, as a NumPy array (a sparse one: scipy.sparse.csr_matrix)."""
    return batch_get_value([x])[0]


def batch_get_value(ops: Sequence[TensorLike]) -> List[Any]:
    """The values of a list of variables."""
    values = [_core.get_value(x) if is_variable(x) else x for x in ops]
    computed = [i for i, x in enumerate(values) if is_tensor(x)]
    if computed:
        for i, value in zip(computed, _core.Function([], [values[i] for i in computed], [], "batch_get_value")([])):
            values[i] = value
    return values


def set_value(x: Variable, value: Value) -> None:
    """Sets a variable's value. Raises ValueError if the shape does not fit; nothing is changed then."""
    _core.set_value(x, value)


def batch_set_value(tuples: Sequence[Tuple[Variable, Value]]) -> None:
    """Sets several variables, given as pairs (variable, value): all, or none if a value does not fit (ValueError)."""
    _core.batch_set_value(tuples)


def update(x: Variable, new_x: TensorLike) -> Update:
    """The update that gives the variable x the value new_x, for the `updates` of a function."""
    return _core.update(x, new_x)


def update_add(x: Variable, increment: TensorLike) -> Update:
    """The update that adds `increment` to the variable x."""
    return _core.update_add(x, increment)


def update_sub(x: Variable, decrement: TensorLike) -> Update:
    """The update that subtracts `decrement` from the variable x."""
    return _core.update_sub(x, decrement)


def moving_average_update(x: Variable, value: TensorLike, momentum: Parameter) -> Update:
    """The update x = momentum * x + (1 - momentum) * value."""
    return _core.moving_average_update(x, value, momentum)


def gradients(loss: Tensor, variables: Sequence[Tensor]) -> List[Optional[Tensor]]:
    """The derivatives of sum(loss) with respect to a list of tensors, as a list of tensors; None where the loss does
    not depend on one. They may be differentiated again."""
    return _core.gradients(loss, variables if isinstance(variables, (list, tuple)) else [variables])


def function(
    inputs: Any,
    outputs: Any,
    updates: Optional[Updates] = None,
    name: Optional[str] = None,
    **kwargs: Any,
) -> Callable[[Any], Any]:
    """A callable that computes tensors from placeholders and updates variables on the way.

    # Arguments
        inputs: list of placeholders. learning_phase() counts as 0 where it is not among them.
        outputs: list of tensors, computed with the variables' values from before the updates.
        updates: list of updates, or of pairs (variable, new value).
        name: for messages.
    # Returns
        A Function: called with a list of values it returns a list of NumPy values. Under several ranks all ranks call
        the same functions in the same order with the same (global) batch, and get the same results.
    # Raises
        ValueError: for an input that is no placeholder and for unknown arguments.
    """
    if kwargs:
        raise ValueError(f"function: unknown arguments {sorted(kwargs)}; inputs, outputs, updates and name are known")
    pack = None
    if not isinstance(outputs, list) or any(isinstance(x, _NESTS) for x in outputs):
        pack = _packer(outputs, count())
    kind = feeds.Function if ranks.is_rank() else _core.Function
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
    # What gives a list of results the form of `nest`.
    if not isinstance(nest, _NESTS):
        return itemgetter(next(numbers))
    parts = [_packer(entry, numbers) for entry in _entries(nest)]
    if isinstance(nest, dict):
        keys = sorted(nest)
        return lambda values: {key: part(values) for key, part in zip(keys, parts)}
    form = tuple if isinstance(nest, tuple) else list
    return lambda values: form(part(values) for part in parts)
