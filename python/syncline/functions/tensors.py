"""Tensors without storage (placeholders, constants, copies), and what is known of any tensor while the graph is built."""

from __future__ import annotations

import numpy as np

from syncline import _core
from syncline.functions.session import name_scope
from syncline.types import Any, DType, Optional, Sequence, Size, Tensor, TensorLike, Tuple, Value, Variable


def _name(name, default):
    return name_scope.scoped(name or default)


def _marked(x, constraint=None):
    """x with the attributes that Keras expects on variables and placeholders."""
    x._keras_shape = tuple(x.shape)
    x._uses_learning_phase = False
    if is_variable(x):
        x.constraint = constraint
    return x


def constant(
    value: Value, dtype: Optional[DType] = None, shape: Optional[Sequence[int]] = None, name: Optional[str] = None
) -> Tensor:
    """A tensor that never changes.

    Args:
        value: number, list or NumPy array of any shape; no tensor.
        dtype: str or NumPy dtype of the tensor; None: floatx().
        shape: tuple of ints >= 0: the tensor's shape, which `value` has the elements for, or one that fills it; None:
            value's.
        name: str, or None.
    Returns:
        Tensor of this shape and dtype.
    Raises:
        TypeError: the value holds no numbers, or the dtype is unknown.
        ValueError: the value does not fill the shape, or is a tensor.
    See: runtime/execution/function.cc
    Example:
        >>> K.eval(K.constant(7, dtype='int32', shape=(2, 2)))
        array([[7, 7],
               [7, 7]], dtype=int32)
    """
    return _core.constant(value, dtype, shape, name or "")


def placeholder(
    shape: Optional[Sequence[Size]] = None,
    ndim: Optional[int] = None,
    dtype: Optional[DType] = None,
    sparse: bool = False,
    name: Optional[str] = None,
) -> Tensor:
    """A tensor whose value comes with each call of a function.

    Args:
        shape: tuple of ints >= 0 or None for sizes that come with the value; without shape and ndim: ().
        ndim: int >= 0: the number of axes, all of open size, where no shape is given; or None.
        dtype: str or NumPy dtype: values are cast to it; None: floatx().
        sparse: bool: a sparse matrix, which has two axes.
        name: str, or None; made unique, and put into the open name scopes.
    Returns:
        Tensor of this shape and dtype.
    Raises:
        TypeError: the shape holds no integers, or the dtype is unknown.
        ValueError: ndim is negative, or a sparse tensor has not two axes.
    See: runtime/execution/function.cc
    Example:
        >>> x = K.placeholder((None, 2))
        >>> double = K.function([x], [2 * x])
        >>> double([[[1., 2.], [3., 4.]]])
        [array([[2., 4.],
               [6., 8.]], dtype=float32)]
    """
    return _marked(_core.placeholder(shape, ndim, dtype, bool(sparse), _name(name, "Placeholder")))


def is_placeholder(x: Any) -> bool:
    """Whether x is a placeholder.

    Args:
        x: any object.
    Returns:
        bool.
    See: runtime/execution/function.cc
    """
    return _core.is_placeholder(x)


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor or a variable.

    Args:
        x: any object.
    Returns:
        bool: False for numbers and arrays.
    See: python/syncline/functions/tensors.py
    """
    return isinstance(x, Tensor)


def is_variable(x: Any) -> bool:
    """Whether x is a variable. Any Python object may be asked."""
    return isinstance(x, (Variable, _core.SparseVariable))


def is_keras_tensor(x: Any) -> bool:
    """Whether x is the output of a Keras layer or of Input().

    Args:
        x: tensor of any shape and dtype.
    Returns:
        bool.
    Raises:
        ValueError: x is no tensor.
    See: python/syncline/functions/tensors.py
    Example:
        >>> K.is_keras_tensor(K.placeholder((2,)))
        False
    """
    if not is_tensor(x):
        raise ValueError(
            f"is_keras_tensor: {type(x).__name__} is no tensor; give a placeholder, a variable, or what a function of "
            "the backend returned"
        )
    return hasattr(x, "_keras_history")


def is_sparse(tensor: Tensor) -> bool:
    """Whether a tensor is sparse.

    Args:
        tensor: tensor of any shape and dtype; any other object is not sparse.
    Returns:
        bool.
    See: ops/sparse/tensor.cc
    Example:
        >>> K.is_sparse(K.placeholder((2, 3), sparse=True))
        True
    """
    return is_tensor(tensor) and _core.is_sparse(tensor)


def to_dense(tensor: Tensor) -> Tensor:
    """A sparse tensor with its zeros.

    Args:
        tensor: tensor of any shape and dtype; what is not sparse is returned as it is.
    Returns:
        Tensor of the same shape and dtype. Entries that name one place several times are summed.
    See: ops/sparse/tensor.cc
    Example:
        >>> K.is_sparse(K.to_dense(K.placeholder((2, 3), sparse=True)))
        False
    """
    return _core.to_dense(tensor) if is_sparse(tensor) else tensor


def shape(x: TensorLike) -> Tensor:
    """The shape as a tensor, whose values are known where feeds are.

    Args:
        x: tensor of any shape and dtype.
    Returns:
        int32 tensor (number of axes,).
    Raises:
        TypeError: x holds no numbers.
    See: ops/core/core.cc
    Example:
        >>> K.eval(K.shape(K.zeros((2, 3))))
        array([2, 3], dtype=int32)
    """
    return _core.shape(x)


def size(x: TensorLike, name: Optional[str] = None) -> Tensor:
    """The number of elements as a tensor: an int32 scalar."""
    return _core.size(x)


def int_shape(x: TensorLike) -> Tuple[Optional[int], ...]:
    """The shape as it is known while the graph is built. What a Keras layer says (`_keras_shape`) counts more.

    Args:
        x: tensor of any shape and dtype, or any value that NumPy takes.
    Returns:
        Tuple of ints, and of None for sizes that come with the feeds.
    See: python/syncline/functions/tensors.py
    Example:
        >>> K.int_shape(K.placeholder((None, 3)))
        (None, 3)
    """
    if hasattr(x, "_keras_shape"):
        return x._keras_shape
    return tuple(x.shape if isinstance(x, Tensor) else np.shape(x))


def get_variable_shape(x: TensorLike) -> Tuple[Optional[int], ...]:
    """int_shape by its old name.

    Args:
        x: tensor of any shape and dtype, or any value that NumPy takes.
    Returns:
        Tuple of ints, and of None for sizes that come with the feeds.
    See: python/syncline/functions/tensors.py
    """
    return int_shape(x)


def ndim(x: TensorLike) -> int:
    """The number of axes.

    Args:
        x: tensor of any shape and dtype, or any value that NumPy takes.
    Returns:
        int.
    See: python/syncline/functions/tensors.py
    Example:
        >>> K.ndim(K.placeholder((None, 3)))
        2
    """
    return x.ndim if isinstance(x, Tensor) else np.ndim(x)


def dtype(x: TensorLike) -> str:
    """The name of the dtype.

    Args:
        x: tensor of any shape and dtype, or any value that NumPy takes.
    Returns:
        str: 'float32' for example.
    See: python/syncline/functions/tensors.py
    Example:
        >>> K.dtype(K.placeholder((2,), dtype='int64'))
        'int64'
    """
    return x.dtype if isinstance(x, Tensor) else str(np.asarray(x).dtype)


def count_params(x: TensorLike) -> int:
    """The number of elements.

    Args:
        x: tensor of known shape and any dtype.
    Returns:
        int.
    Raises:
        TypeError: x holds no numbers.
        ValueError: a size is not known while the graph is built.
    See: ops/core/core.cc
    Example:
        >>> K.count_params(K.zeros((2, 3)))
        6
    """
    return _core.count_params(x)


def zeros_like(x: TensorLike, dtype: Optional[DType] = None, name: Optional[str] = None) -> Tensor:
    """Zeros in the shape of x.

    Args:
        x: tensor of any shape and dtype.
        dtype: str or NumPy dtype of the result; None: x's.
        name: str, or None.
    Returns:
        Tensor of x's shape and this dtype.
    Raises:
        TypeError: x holds no numbers, or the dtype is unknown.
    See: ops/core/core.cc
    Example:
        >>> K.eval(K.zeros_like([[5., 6.]]))
        array([[0., 0.]], dtype=float32)
    """
    return _core.zeros_like(x, dtype, name or "")


def ones_like(x: TensorLike, dtype: Optional[DType] = None, name: Optional[str] = None) -> Tensor:
    """Ones in the shape of x.

    Args:
        x: tensor of any shape and dtype.
        dtype: str or NumPy dtype of the result; None: x's.
        name: str, or None.
    Returns:
        Tensor of x's shape and this dtype.
    Raises:
        TypeError: x holds no numbers, or the dtype is unknown.
    See: ops/core/core.cc
    Example:
        >>> K.eval(K.ones_like([[5., 6.]], dtype='int32'))
        array([[1, 1]], dtype=int32)
    """
    return _core.ones_like(x, dtype, name or "")


def identity(x: TensorLike, name: Optional[str] = None) -> Tensor:
    """A tensor of the same value.

    Args:
        x: tensor of any shape and dtype.
        name: str, or None: the new tensor's name.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x holds no numbers.
    See: ops/core/core.cc
    """
    return _core.identity(x, name or "")


def cast(x: TensorLike, dtype: DType) -> Tensor:
    """x in another dtype. Fractions are cut towards zero, bool becomes 0 and 1, what is not 0 becomes True;
    docs/dtypes.md says what becomes of numbers that do not fit.

    Args:
        x: tensor of any shape and dtype; a sparse one stays sparse.
        dtype: str or NumPy dtype of the result.
    Returns:
        Tensor of x's shape and this dtype.
    Raises:
        TypeError: x holds no numbers, or the dtype is unknown.
    See: ops/math/cast.cc
    Example:
        >>> K.eval(K.cast([1.7, -1.7], 'int32'))
        array([ 1, -1], dtype=int32)
    """
    return _core.cast(x, dtype)


def stop_gradient(variables: Any) -> Any:
    """The same tensors, which gradients() takes for constants.

    Args:
        variables: tensor of any shape and dtype, or a list of tensors.
    Returns:
        Tensor of the same shape, dtype and value; of a list, a list.
    Raises:
        TypeError: an argument holds no numbers.
        ValueError: a tensor is sparse.
    See: ops/core/core.cc
    Example:
        >>> x = K.variable([3.])
        >>> K.eval(K.gradients(K.sum(x * K.stop_gradient(x)), [x])[0])
        array([3.], dtype=float32)
    """
    if isinstance(variables, (list, tuple)):
        return [_core.stop_gradient(x) for x in variables]
    return _core.stop_gradient(variables)
