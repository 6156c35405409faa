"""Reductions and scans. `axis`: an integer, several, or None for all; negative axes count from the end. With keepdims
the reduced axes stay as ones. ValueError for an axis that x has not."""

from syncline import _core


def max(x, axis=None, keepdims=False):
    """The largest element. Elements that tie share the gradient."""
    return _core.max(x, axis, keepdims)


def min(x, axis=None, keepdims=False):
    """The smallest element. Elements that tie share the gradient."""
    return _core.min(x, axis, keepdims)


def sum(x, axis=None, keepdims=False):
    """The sum, in x's dtype."""
    return _core.sum(x, axis, keepdims)


def prod(x, axis=None, keepdims=False):
    """The product, in x's dtype."""
    return _core.prod(x, axis, keepdims)


def var(x, axis=None, keepdims=False):
    """The mean square distance from the mean. Integers and bool become floatx() first."""
    return _core.var(x, axis, keepdims)


def std(x, axis=None, keepdims=False):
    """The square root of the variance. Integers and bool become floatx() first."""
    return _core.std(x, axis, keepdims)


def mean(x, axis=None, keepdims=False):
    """The mean. Integers and bool become floatx() first."""
    return _core.mean(x, axis, keepdims)


def any(x, axis=None, keepdims=False):
    """bool: is one element not 0?"""
    return _core.any(x, axis, keepdims)


def all(x, axis=None, keepdims=False):
    """bool: is no element 0?"""
    return _core.all(x, axis, keepdims)


def logsumexp(x, axis=None, keepdims=False):
    """log(sum(exp(x))) without overflow."""
    return _core.logsumexp(x, axis, keepdims)


def argmax(x, axis=-1):
    """The index of the first largest element along an axis: int64."""
    return _core.argmax(x, axis)


def argmin(x, axis=-1):
    """The index of the first smallest element along an axis: int64."""
    return _core.argmin(x, axis)


def cumsum(x, axis=0):
    """The sums of the elements up to each one, along an axis."""
    return _core.cumsum(x, axis)


def cumprod(x, axis=0):
    """The products of the elements up to each one, along an axis."""
    return _core.cumprod(x, axis)
