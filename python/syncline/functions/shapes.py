"""Functions that rearrange, join, cut and repeat elements of any dtype. Axes may be negative; sizes may be scalar tensors.
Shapes and axes that do not fit raise ValueError."""

from __future__ import annotations

from syncline import _core
from syncline.types import Axis, DType, Optional, Sequence, Size, Sizes, Tensor, TensorLike


def concatenate(tensors: Sequence[TensorLike], axis: int = -1) -> Tensor:
    """Concatenates tensors along an axis.

    Args:
        tensors: list of tensors of one dtype (any), whose shapes differ in the axis at most. If all are sparse, so is
            the result; otherwise sparse ones are converted to dense.
        axis: int: the axis to join along; negative ones count from the end.
    Returns:
        Tensor of their dtype and shape; the length of the axis is the sum of theirs.
    Raises:
        TypeError: the dtypes differ, `tensors` is not a list of tensors, or `axis` is not an int.
        ValueError: there are no tensors, their shapes do not fit, or there is no such axis.
    See: ops/shape/join.cc
    Example:
        >>> K.concatenate([K.zeros((2, 3)), K.zeros((2, 5))]).shape
        (2, 8)
    """
    return _core.concatenate(tensors, axis)


def reshape(x: TensorLike, shape: Sizes) -> Tensor:
    """The same elements in another shape, in row-major order.

    Args:
        x: tensor of any shape and any dtype.
        shape: tuple of ints or scalar integer tensors, or an integer vector; one entry may be -1 or None: the
            remaining size.
    Returns:
        Tensor of this shape and x's dtype.
    Raises:
        TypeError: x is not numeric, or `shape` does not consist of integers.
        ValueError: the shape has another number of elements or more than one entry -1, or x is sparse.
    See: ops/shape/view.cc
    Example:
        >>> K.reshape(K.placeholder((None, 6)), (-1, 2, 3)).shape
        (None, 2, 3)
    """
    return _core.reshape(x, shape)


def permute_dimensions(x: TensorLike, pattern: Sequence[int]) -> Tensor:
    """x with its axes in another order: axis i of the result is axis pattern[i] of x.

    Args:
        x: tensor of any shape and any dtype.
        pattern: tuple of ints: every axis of x, once.
    Returns:
        Tensor of x's dtype whose shape is (x.shape[pattern[0]], x.shape[pattern[1]], ...).
    Raises:
        TypeError: x is not numeric, or `pattern` does not consist of integers.
        ValueError: the pattern does not contain each axis once, or x is sparse.
    See: ops/shape/permute.cc
    Example:
        >>> K.permute_dimensions(K.zeros((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    return _core.permute_dimensions(x, pattern)


def repeat_elements(x: TensorLike, rep: int, axis: int) -> Tensor:
    """Repeats each element along an axis, as numpy.repeat does.

    Args:
        x: tensor of at least one axis; any dtype.
        rep: int >= 0: the number of copies of each element.
        axis: int: the axis along which elements are repeated; negative ones count from the end.
    Returns:
        Tensor of x's dtype and shape; the axis is `rep` times as long.
    Raises:
        TypeError: `rep` or `axis` is not an int.
        ValueError: x has no such axis or is sparse; `rep` is negative.
    See: ops/shape/repeat.cc
    Example:
        >>> K.eval(K.repeat_elements([[1, 2]], 2, axis=1))
        array([[1, 1, 2, 2]], dtype=int32)
    """
    result = _core.repeat_elements(x, rep, axis)
    result._keras_shape = tuple(result.shape)  # as Keras's own backends set it
    return result


def repeat(x: TensorLike, n: Size) -> Tensor:
    """Repeats each sample n times along a new axis.

    Args:
        x: tensor (samples, dim); any dtype.
        n: int >= 0, or a scalar integer tensor.
    Returns:
        Tensor (samples, n, dim) of x's dtype.
    Raises:
        TypeError: x is not numeric, or n is not an int or integer tensor.
        ValueError: x does not have two axes or is sparse; n is negative.
    See: ops/shape/repeat.cc
    Example:
        >>> K.repeat(K.placeholder((None, 3)), 4).shape
        (None, 4, 3)
    """
    return _core.repeat(x, n)


def arange(
    start: TensorLike, stop: Optional[TensorLike] = None, step: TensorLike = 1, dtype: DType = "int32"
) -> Tensor:
    """The numbers start, start + step, ... without `stop`. A single argument is `stop`, and start is 0.

    Args:
        start: number or scalar tensor of integers: the first element.
        stop: number or scalar tensor of integers, or None.
        step: number or scalar tensor of integers, not 0; negative to count down.
        dtype: str or NumPy dtype of the result; instead of 'int32' the result has the dtype of int64 or floating
            arguments.
    Returns:
        Tensor (n,) of this dtype; empty if `stop` is not beyond `start`.
    Raises:
        TypeError: the dtype is unknown, or an argument is not numeric.
        ValueError: the step is 0, or an argument is not finite or not a scalar.
    See: ops/shape/numbers.cc
    Example:
        >>> K.eval(K.arange(1, 10, 3))
        array([1, 4, 7], dtype=int32)
    """
    return _core.arange(start, stop, step, dtype)


def tile(x: TensorLike, n: Sizes) -> Tensor:
    """Repeats the whole tensor along axes.

    Args:
        x: tensor of any shape and any dtype.
        n: tuple of ints >= 0 or scalar integer tensors: the number of copies along each axis. One int, or fewer numbers
            than axes, belong to the last axes.
    Returns:
        Tensor of x's dtype whose axis i has x.shape[i] * n[i] elements.
    Raises:
        TypeError: x is not numeric, or n does not consist of integers.
        ValueError: there are more numbers than axes, one is negative, or x is sparse.
    See: ops/shape/repeat.cc
    Example:
        >>> K.eval(K.tile([[1, 2]], (2, 2)))
        array([[1, 2, 1, 2],
               [1, 2, 1, 2]], dtype=int32)
    """
    return _core.tile(x, n)


def flatten(x: TensorLike) -> Tensor:
    """Reshapes to one axis, in row-major order.

    Args:
        x: tensor of any shape and any dtype.
    Returns:
        Tensor (number of elements,) of x's dtype.
    Raises:
        TypeError: x is not numeric.
        ValueError: x is sparse.
    See: ops/shape/view.cc
    Example:
        >>> K.flatten(K.zeros((2, 3))).shape
        (6,)
    """
    return _core.flatten(x)


def batch_flatten(x: TensorLike) -> Tensor:
    """Reshapes each sample to one axis.

    Args:
        x: tensor of at least one axis, samples first; any dtype.
    Returns:
        Tensor (samples, elements of a sample) of x's dtype.
    Raises:
        TypeError: x is not numeric.
        ValueError: x is a scalar.
    See: ops/shape/view.cc
    Example:
        >>> K.batch_flatten(K.placeholder((None, 3, 4))).shape
        (None, 12)
    """
    return _core.batch_flatten(x)


def expand_dims(x: TensorLike, axis: int = -1) -> Tensor:
    """Inserts an axis of size 1.

    Args:
        x: tensor of any shape and any dtype.
        axis: int: the position of the new axis in the result; negative ones count from its end.
    Returns:
        Tensor of x's dtype and shape with one more axis.
    Raises:
        TypeError: x is not numeric, or `axis` is not an int.
        ValueError: the result has no such axis, or x is sparse.
    See: ops/shape/view.cc
    Example:
        >>> K.expand_dims(K.zeros((2, 3)), 1).shape
        (2, 1, 3)
    """
    return _core.expand_dims(x, axis)


def squeeze(x: TensorLike, axis: int) -> Tensor:
    """Removes an axis of size 1.

    Args:
        x: tensor of at least one axis; any dtype.
        axis: int: the axis to remove; negative ones count from the end.
    Returns:
        Tensor of x's dtype and shape without the axis.
    Raises:
        TypeError: x is not numeric, or `axis` is not an int.
        ValueError: x has no such axis, the size of the axis is not 1, or x is sparse.
    See: ops/shape/view.cc
    Example:
        >>> K.squeeze(K.zeros((2, 1, 3)), 1).shape
        (2, 3)
    """
    return _core.squeeze(x, axis)


def stack(x: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Joins tensors of one shape along a new axis.

    Args:
        x: list of tensors of one shape and dtype (any). Numbers among them take the tensors' dtype.
        axis: int: the position of the new axis in the result; negative ones count from its end.
    Returns:
        Tensor of their dtype and shape with one more axis, of size len(x).
    Raises:
        TypeError: the dtypes differ, x is not a list of tensors, or `axis` is not an int.
        ValueError: there are no tensors, their shapes differ, one is sparse, or the result has no such axis.
    See: ops/shape/join.cc
    Example:
        >>> K.stack([K.zeros((2, 3)), K.ones((2, 3))]).shape
        (2, 2, 3)
    """
    return _core.stack(x, axis)


def one_hot(indices: TensorLike, num_classes: int) -> Tensor:
    """1 at the index, 0 elsewhere, along a new last axis. An index out of range gives only zeros.

    Args:
        indices: tensor of any shape; integers.
        num_classes: int, or a scalar integer tensor: the size of the new axis.
    Returns:
        float32 tensor of shape indices.shape + (num_classes,).
    Raises:
        TypeError: `indices` or num_classes are not integers.
        ValueError: num_classes is negative, or `indices` are sparse.
    See: ops/shape/numbers.cc
    Example:
        >>> K.eval(K.one_hot([2, 0], 3))
        array([[0., 0., 1.],
               [1., 0., 0.]], dtype=float32)
    """
    return _core.one_hot(indices, num_classes)


def reverse(x: TensorLike, axes: Axis) -> Tensor:
    """x with its elements in reverse order along axes.

    Args:
        x: tensor of at least one axis; any dtype.
        axes: int, or a list of ints: the axes, negative ones counted from the end.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is not numeric, or `axes` does not consist of integers.
        ValueError: x has no such axis, or is sparse.
    See: ops/shape/permute.cc
    Example:
        >>> K.eval(K.reverse([[1, 2, 3]], 1))
        array([[3, 2, 1]], dtype=int32)
    """
    return _core.reverse(x, axes)


def slice(x: TensorLike, start: TensorLike, size: Sizes) -> Tensor:
    """A part of x: x[start[0] : start[0] + size[0], start[1] : start[1] + size[1], ...].

    Args:
        x: tensor of any shape and any dtype.
        start: tuple of ints or scalar integer tensors, or an integer vector: the first index on each axis.
        size: tuple of ints or scalar integer tensors, or an integer vector: the size on each axis; -1: to the end.
    Returns:
        Tensor of x's dtype and the shape `size`.
    Raises:
        TypeError: `start` or `size` does not consist of integers.
        ValueError: not one entry per axis, the part is outside x, or x is sparse.
    See: ops/shape/slice.cc
    Example:
        >>> K.eval(K.slice([[1, 2, 3], [4, 5, 6]], (0, 1), (2, -1)))
        array([[2, 3],
               [5, 6]], dtype=int32)
    """
    return _core.slice(x, start, size)
