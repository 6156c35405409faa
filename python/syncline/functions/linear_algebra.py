"""Matrix products, transposition and rows of tables."""

from __future__ import annotations

from syncline import _core
from syncline.types import Axis, Tensor, TensorLike


def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """The product of tensors: sums over the last axis of x and the second last axis of y (of a vector its only axis).

    Args:
        x: tensor (..., k); any dtype but bool; may be sparse: (n, k), floating.
        y: tensor (k,), (k, n) or (..., k, n) of x's dtype.
    Returns:
        Tensor of x's dtype: x's axes without the last, then y's axes without the summed one.
    Raises:
        TypeError: the dtypes differ, or the tensors are bool.
        ValueError: the axes have different sizes, an operand is a scalar, or y is sparse.
    See: ops/linalg/dot.cc; of a sparse x ops/sparse/dot.cc
    Example:
        >>> K.eval(K.dot([[1., 2.]], [[3.], [4.]]))
        array([[11.]], dtype=float32)
        >>> K.dot(K.zeros((2, 3, 4)), K.zeros((5, 4, 6))).shape
        (2, 3, 5, 6)
    """
    return _core.dot(x, y)


def batch_dot(x: TensorLike, y: TensorLike, axes: Axis = None) -> Tensor:
    """The product of tensors, separately for each sample: sums over axis axes[0] of x and axis axes[1] of y.

    Args:
        x: tensor of at least two axes, samples first; any dtype but bool.
        y: tensor of at least two axes, samples first; x's dtype.
        axes: pair of ints, one int for both, or None: the last of x and the second last of y (the last, if y has two
            axes). The two axes have equal sizes; neither is axis 0, the samples.
    Returns:
        Tensor of x's dtype: x's axes without the summed one, then y's without the summed one and the samples; (samples,
        1) if only the samples would remain.
    Raises:
        TypeError: the dtypes differ, the tensors are bool, or `axes` does not consist of integers.
        ValueError: the axes have different sizes, one is 0 or does not exist; a tensor has fewer than two axes or is
            sparse.
    See: ops/linalg/batch_dot.cc
    Example:
        >>> K.batch_dot(K.zeros((8, 3, 4)), K.zeros((8, 4, 5))).shape
        (8, 3, 5)
        >>> K.eval(K.batch_dot([[1., 2.], [3., 4.]], [[1., 1.], [2., 0.]], axes=1))
        array([[3.],
               [6.]], dtype=float32)
    """
    return _core.batch_dot(x, y, axes)


def transpose(x: TensorLike) -> Tensor:
    """x with its axes in reverse order.

    Args:
        x: tensor of any shape and any dtype.
    Returns:
        Tensor of x's dtype and its shape reversed.
    Raises:
        TypeError: x is not numeric.
        ValueError: x is sparse.
    See: ops/shape/permute.cc
    Example:
        >>> K.transpose(K.zeros((2, 3, 4))).shape
        (4, 3, 2)
    """
    return _core.transpose(x)


def gather(reference: TensorLike, indices: TensorLike) -> Tensor:
    """Rows of a table, that is elements along its first axis, by index.

    Args:
        reference: tensor of at least one axis, rows first; any dtype.
        indices: tensor of any shape; integers from 0 to rows - 1.
    Returns:
        Tensor of reference's dtype: the shape of the indices, then that of a row.
    Raises:
        TypeError: the indices are not integers.
        ValueError: the reference is a scalar, or a tensor is sparse. When the step runs: an index is out of range.
    See: ops/linalg/rows.cc
    Example:
        >>> K.eval(K.gather([[1, 2], [3, 4]], [1, 0, 1]))
        array([[3, 4],
               [1, 2],
               [3, 4]], dtype=int32)
    """
    return _core.gather(reference, indices)
