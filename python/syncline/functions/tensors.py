"""Tensors without storage (placeholders, constants, copies), and static properties of tensors (shape, dtype)."""

from __future__ import annotations

import numpy as np

from syncline import _core
from syncline.functions.session import name_scope
from syncline.types import Any, DType, Optional, Sequence, Size, Tensor, TensorLike, Tuple, Value, Variable


def _name(name, default):
    return name_scope.scoped(name or default)


def _marked(x, constraint=None):
    """Sets the attributes that Keras expects on variables and placeholders, and returns x."""
    x._keras_shape = tuple(x.shape)
    x._uses_learning_phase = False
    if is_variable(x):
        x.constraint = constraint
    return x


def constant(
    value: Value, dtype: Optional[DType] = None, shape: Optional[Sequence[int]] = None, name: Optional[str] = None
) -> Tensor:
    """A tensor with a fixed value.

    Args:
        value: number, list or NumPy array of any shape; not a tensor.
        dtype: str or NumPy dtype of the tensor; None: floatx().
        shape: tuple of ints >= 0: the tensor's shape; `value` has as many elements, or one element, which fills it;
            None: value's shape.
        name: str, or None.
    Returns:
        Tensor of this shape and dtype.
    Raises:
        TypeError: the value is not numeric, the shape does not consist of integers, or the dtype is unknown.
        ValueError: the value has another number of elements than the shape, or is a tensor; a size is negative.
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
    """A tensor whose value is fed with each call of a function.

    Args:
        shape: tuple of ints >= 0; None or -1 for sizes that are fed; without shape and ndim: ().
        ndim: int >= 0: the number of axes, all of unknown size, if no shape is given; or None.
        dtype: str or NumPy dtype: values are cast to it; None: floatx().
        sparse: bool: whether the tensor is a sparse matrix, which has two axes.
        name: str, or None; made unique and prefixed with the open name scopes.
    Returns:
        Tensor of this shape and dtype.
    Raises:
        TypeError: the shape does not consist of integers, ndim is not an int, or the dtype is unknown.
        ValueError: ndim is negative or a size is below -1, or a sparse tensor does not have two axes.
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
    """Whether x, any Python object, is a variable."""
    return isinstance(x, (Variable, _core.SparseVariable))


def is_keras_tensor(x: Any) -> bool:
    """Whether x is the output of a Keras layer or of Input().

    Args:
        x: tensor of any shape and dtype.
    Returns:
        bool.
    Raises:
        ValueError: x is not a tensor.
    See: python/syncline/functions/tensors.py
    Example:
        >>> K.is_keras_tensor(K.placeholder((2,)))
        False
    """
    if not is_tensor(x):
        raise ValueError(
            f"is_keras_tensor: x is of type {type(x).__name__}, not a tensor; give a placeholder, a variable or a result of "
            "a backend function"
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
    """Converts a sparse tensor to a dense one.

    Args:
        tensor: tensor of any shape and dtype; a dense one is returned unchanged.
    Returns:
        Tensor of the same shape and dtype. Several entries of one place are summed.
    See: ops/sparse/tensor.cc
    Example:
        >>> K.is_sparse(K.to_dense(K.placeholder((2, 3), sparse=True)))
        False
    """
    return _core.to_dense(tensor) if is_sparse(tensor) else tensor


def shape(x: TensorLike) -> Tensor:
    """The shape as a tensor; its values are known when a function is called.

    Args:
        x: tensor of any shape and dtype.
    Returns:
        int32 tensor (number of axes,).
    Raises:
        TypeError: x is not numeric.
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
    """The static shape. A shape set by a Keras layer (`_keras_shape`) takes precedence.

    Args:
        x: tensor of any shape and dtype, or any value that NumPy accepts.
    Returns:
        Tuple of ints, with None for sizes that are fed.
    See: python/syncline/functions/tensors.py
    Example:
        >>> K.int_shape(K.placeholder((None, 3)))
        (None, 3)
    """
    if hasattr(x, "_keras_shape"):
        return x._keras_shape
    return tuple(x.shape if isinstance(x, Tensor) else np.shape(x))


def get_variable_shape(x: TensorLike) -> Tuple[Optional[int], ...]:
    """The old name of int_shape.

    Args:
        x: tensor of any shape and dtype, or any value that NumPy accepts.
    Returns:
        Tuple of ints, with None for sizes that are fed.
    See: python/syncline/functions/tensors.py
    """
    return int_shape(x)


def ndim(x: TensorLike) -> int:
    """The number of axes.

    Args:
        x: tensor of any shape and dtype, or any value that NumPy accepts.
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
        x: tensor of any shape and dtype, or any value that NumPy accepts.
    Returns:
        str: for example 'float32'.
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
        TypeError: x is not numeric.
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
        TypeError: x is not numeric, or the dtype is unknown.
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
        TypeError: x is not numeric, or the dtype is unknown.
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
        TypeError: x is not numeric.
    See: ops/core/core.cc
    """
    return _core.identity(x, name or "")


def cast(x: TensorLike, dtype: DType) -> Tensor:
    """Converts x to another dtype. Fractions are truncated towards zero; False and True become 0 and 1; numbers other
    than 0 become True. docs/dtypes.md describes numbers that do not fit.

    Args:
        x: tensor of any shape and dtype; a sparse tensor stays sparse.
        dtype: str or NumPy dtype of the result.
    Returns:
        Tensor of x's shape and this dtype.
    Raises:
        TypeError: x is not numeric, or the dtype is unknown.
    See: ops/math/cast.cc
    Example:
        >>> K.eval(K.cast([1.7, -1.7], 'int32'))
        array([ 1, -1], dtype=int32)
    """
    return _core.cast(x, dtype)


def stop_gradient(variables: Any) -> Any:
    """Tensors of the same values that gradients() treats as constants.

    Args:
        variables: tensor of any shape and dtype, or a list of tensors.
    Returns:
        Tensor of the same shape, dtype and value; for a list, a list of tensors.
    Raises:
        TypeError: an argument is not numeric.
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
