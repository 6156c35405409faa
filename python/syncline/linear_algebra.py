"""Products and rows of tables."""

from __future__ import annotations

from syncline import _core
from syncline.types import Axis, Tensor, TensorLike


def dot(x: TensorLike, y: TensorLike) -> Tensor:
    """The product over the last axis of x and the second last of y (its only one, if y is a vector). x: (..., k), y:
    (k,), (k, n) or (..., k, n). x may be sparse. The result has x's axes but the last, then y's but that one."""
    return _core.dot(x, y)


def batch_dot(x: TensorLike, y: TensorLike, axes: Axis = None) -> Tensor:
    """For each sample, the product over axis axes[0] of x and axes[1] of y.

    # Arguments
        x, y: tensors of two or more axes, samples first.
        axes: pair of integers, one integer for both, or None: the last of x and the second last of y (its last, if y
            has two axes).
    # Returns
        x's axes without the summed one, then y's without the summed one and the samples; (samples, 1) instead of
        (samples).
    # Raises
        ValueError: where the axes have different sizes, and for axis 0.
    """
    return _core.batch_dot(x, y, axes)


def transpose(x: TensorLike) -> Tensor:
    """x with its axes in the opposite order."""
    return _core.transpose(x)


def gather(reference: TensorLike, indices: TensorLike) -> Tensor:
    """Rows of `reference` (along its first axis). indices: integers of any shape; the result has their shape, then a
    row's. An index outside raises ValueError when the step runs."""
    return _core.gather(reference, indices)
