"""Reductions and scans. `axis`: an integer, several, or None for all; an empty list reduces nothing; negative axes count
from the end. With keepdims the reduced axes stay as ones. ValueError for an axis that x has not."""

from __future__ import annotations

from syncline import _core
from syncline.types import Axis, Tensor, TensorLike


def max(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element. Elements that tie share the gradient."""
    return _core.max(x, axis, keepdims)


def min(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element. Elements that tie share the gradient."""
    return _core.min(x, axis, keepdims)


def sum(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum, in x's dtype."""
    return _core.sum(x, axis, keepdims)


def prod(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The product, in x's dtype."""
    return _core.prod(x, axis, keepdims)


def var(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean square distance from the mean. Integers and bool become floatx() first."""
    return _core.var(x, axis, keepdims)


def std(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The square root of the variance. Integers and bool become floatx() first."""
    return _core.std(x, axis, keepdims)


def mean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean. Integers and bool become floatx() first."""
    return _core.mean(x, axis, keepdims)


def any(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """bool: is one element not 0?"""
    return _core.any(x, axis, keepdims)


def all(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """bool: is no element 0?"""
    return _core.all(x, axis, keepdims)


def logsumexp(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) without overflow."""
    return _core.logsumexp(x, axis, keepdims)


def argmax(x: TensorLike, axis: int = -1) -> Tensor:
    """The index of the first largest element along an axis: int64."""
    return _core.argmax(x, axis)


def argmin(x: TensorLike, axis: int = -1) -> Tensor:
    """The index of the first smallest element along an axis: int64."""
    return _core.argmin(x, axis)


def cumsum(x: TensorLike, axis: int = 0) -> Tensor:
    """The sums of the elements up to each one, along an axis."""
    return _core.cumsum(x, axis)


def cumprod(x: TensorLike, axis: int = 0) -> Tensor:
    """The products of the elements up to each one, along an axis."""
    return _core.cumprod(x, axis)
