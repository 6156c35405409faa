"""Reductions and scans. `axis` is an integer, several, or None for all; an empty list reduces no axis; negative axes count
from the end. With keepdims the reduced axes remain, with size 1. An axis that x does not have raises ValueError."""

from __future__ import annotations

from syncline import _core
from syncline.types import Axis, Tensor, TensorLike


def max(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element along axes; NaN if an element is NaN. Equal largest elements share the gradient.

    Args:
        x: tensor of any shape; any dtype but bool.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; x's dtype.
    Raises:
        TypeError: x is bool (cast it first), or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/extremum.cc
    Example:
        >>> K.eval(K.max([[1., 5.], [7., 2.]], axis=1))
        array([5., 7.], dtype=float32)
    """
    return _core.max(x, axis, bool(keepdims))


def min(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element along axes; NaN if an element is NaN. Equal smallest elements share the gradient.

    Args:
        x: tensor of any shape; any dtype but bool.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; x's dtype.
    Raises:
        TypeError: x is bool (cast it first), or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/extremum.cc
    Example:
        >>> K.eval(K.min([[1., 5.], [7., 2.]], axis=1))
        array([1., 2.], dtype=float32)
    """
    return _core.min(x, axis, bool(keepdims))


def sum(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum along axes. Integers wrap around; float16 is summed in float32.

    Args:
        x: tensor of any shape; any dtype but bool.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; x's dtype.
    Raises:
        TypeError: x is bool (cast it first), or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/sum.cc
    Example:
        >>> K.eval(K.sum([[1., 2.], [3., 4.]], axis=0))
        array([4., 6.], dtype=float32)
        >>> K.sum(K.zeros((2, 3)), axis=1, keepdims=True).shape
        (2, 1)
    """
    return _core.sum(x, axis, bool(keepdims))


def prod(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The product along axes. Integers wrap around.

    Args:
        x: tensor of any shape; any dtype but bool.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; x's dtype.
    Raises:
        TypeError: x is bool (cast it first), or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/extremum.cc
    Example:
        >>> K.eval(K.prod([[1., 2.], [3., 4.]], axis=0))
        array([3., 8.], dtype=float32)
    """
    return _core.prod(x, axis, bool(keepdims))


def var(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The variance along axes: the mean square distance from the mean (divided by n, not n - 1).

    Args:
        x: tensor of any shape; any dtype.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; x's dtype, or floatx() if x holds integers or bool.
    Raises:
        TypeError: x is not numeric, or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/composite.cc
    Example:
        >>> K.eval(K.var([[1., 3.], [2., 2.]], axis=1))
        array([1., 0.], dtype=float32)
    """
    return _core.var(x, axis, bool(keepdims))


def std(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The standard deviation along axes: the square root of the variance.

    Args:
        x: tensor of any shape; any dtype.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; x's dtype, or floatx() if x holds integers or bool.
    Raises:
        TypeError: x is not numeric, or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/composite.cc
    Example:
        >>> K.eval(K.std([[1., 5.], [2., 2.]], axis=1))
        array([2., 0.], dtype=float32)
    """
    return _core.std(x, axis, bool(keepdims))


def mean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean along axes; NaN for zero elements.

    Args:
        x: tensor of any shape; any dtype.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; x's dtype, or floatx() if x holds integers or bool.
    Raises:
        TypeError: x is not numeric, or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/composite.cc
    Example:
        >>> K.eval(K.mean([[1, 2], [3, 4]], axis=1))
        array([1.5, 3.5], dtype=float32)
    """
    return _core.mean(x, axis, bool(keepdims))


def any(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether any element along axes is not 0. False for zero elements.

    Args:
        x: tensor of any shape; any dtype.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; bool.
    Raises:
        TypeError: x is not numeric, or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/extremum.cc
    Example:
        >>> K.eval(K.any([[0, 2], [0, 0]], axis=1))
        array([ True, False])
    """
    return _core.any(x, axis, bool(keepdims))


def all(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements along axes are not 0. True for zero elements.

    Args:
        x: tensor of any shape; any dtype.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; bool.
    Raises:
        TypeError: x is not numeric, or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/extremum.cc
    Example:
        >>> K.eval(K.all([[1, 2], [0, 3]], axis=1))
        array([ True, False])
    """
    return _core.all(x, axis, bool(keepdims))


def logsumexp(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) along axes, without overflow.

    Args:
        x: tensor of any shape; any dtype.
        axis: int, or a list of ints: the axes to reduce, negative ones counted from the end; None: all.
        keepdims: bool: whether the reduced axes remain, with size 1.
    Returns:
        Tensor of x's shape without the axes; x's dtype, or floatx() if x holds integers or bool.
    Raises:
        TypeError: x is not numeric, or an axis is not an int.
        ValueError: x has no such axis, an axis is given twice, or x is sparse.
    See: ops/reduce/composite.cc
    Example:
        >>> K.eval(K.logsumexp([1000., 1000.], keepdims=True)).round(3)
        array([1000.693], dtype=float32)
    """
    return _core.logsumexp(x, axis, bool(keepdims))


def argmax(x: TensorLike, axis: int = -1) -> Tensor:
    """The index of the largest element along an axis, of equal ones the first. NaN counts as the largest.

    Args:
        x: tensor of at least one axis; any dtype.
        axis: int: the axis to search; negative ones count from the end; None: the first.
    Returns:
        int64 tensor of x's shape without the axis.
    Raises:
        TypeError: x is not numeric, or `axis` is not an int.
        ValueError: x has no such axis, the axis is empty, or x is sparse.
    See: ops/reduce/arg.cc
    Example:
        >>> K.eval(K.argmax([[1., 5., 5.], [7., 2., 3.]], axis=1))
        array([1, 0])
    """
    return _core.argmax(x, axis)


def argmin(x: TensorLike, axis: int = -1) -> Tensor:
    """The index of the smallest element along an axis, of equal ones the first. NaN counts as the smallest.

    Args:
        x: tensor of at least one axis; any dtype.
        axis: int: the axis to search; negative ones count from the end; None: the first.
    Returns:
        int64 tensor of x's shape without the axis.
    Raises:
        TypeError: x is not numeric, or `axis` is not an int.
        ValueError: x has no such axis, the axis is empty, or x is sparse.
    See: ops/reduce/arg.cc
    Example:
        >>> K.eval(K.argmin([[1., 5., 5.], [7., 2., 3.]], axis=1))
        array([0, 1])
    """
    return _core.argmin(x, axis)


def cumsum(x: TensorLike, axis: int = 0) -> Tensor:
    """The running sum along an axis: element i of the result is x[0] + ... + x[i]. Integers wrap around.

    Args:
        x: tensor of at least one axis; any dtype but bool.
        axis: int: the axis of the scan; negative ones count from the end.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool, or `axis` is not an int.
        ValueError: x has no such axis, or x is sparse.
    See: ops/reduce/scan.cc
    Example:
        >>> K.eval(K.cumsum([1, 2, 3, 4]))
        array([ 1,  3,  6, 10], dtype=int32)
    """
    return _core.cumsum(x, axis)


def cumprod(x: TensorLike, axis: int = 0) -> Tensor:
    """The running product along an axis: element i of the result is x[0] * ... * x[i]. Integers wrap around.

    Args:
        x: tensor of at least one axis; any dtype but bool.
        axis: int: the axis of the scan; negative ones count from the end.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool, or `axis` is not an int.
        ValueError: x has no such axis, or x is sparse.
    See: ops/reduce/scan.cc
    Example:
        >>> K.eval(K.cumprod([1, 2, 3, 4]))
        array([ 1,  2,  6, 24], dtype=int32)
    """
    return _core.cumprod(x, axis)
