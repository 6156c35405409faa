"""Elementwise functions. Operands broadcast as in NumPy; a value that is not a tensor takes the other operand's dtype. Two
tensors of different dtypes raise TypeError: cast one. Integers wrap around (docs/dtypes.md)."""

from __future__ import annotations

from syncline import _core
from syncline.types import Optional, Parameter, Tensor, TensorLike


def square(x: TensorLike) -> Tensor:
    """x * x, element by element. Integers wrap around.

    Args:
        x: tensor of any shape and any dtype but bool.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    """
    return _core.square(x)


def abs(x: TensorLike) -> Tensor:
    """The absolute value, element by element. The lowest number of an integer dtype does not change.

    Args:
        x: tensor of any shape and any dtype but bool.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    """
    return _core.abs(x)


def sqrt(x: TensorLike) -> Tensor:
    """The square root of max(x, 0), element by element: 0 for negative elements, NaN for NaN.

    Args:
        x: tensor of any shape and floating dtype.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor; cast it first.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    Example:
        >>> K.eval(K.sqrt([4., -1.]))
        array([2., 0.], dtype=float32)
    """
    return _core.sqrt(x)


def exp(x: TensorLike) -> Tensor:
    """e to the power of x, element by element.

    Args:
        x: tensor of any shape and floating dtype.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor; cast it first.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    """
    return _core.exp(x)


def log(x: TensorLike) -> Tensor:
    """The natural logarithm, element by element: negative infinity for 0, NaN for negative elements.

    Args:
        x: tensor of any shape and floating dtype.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor; cast it first.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    Example:
        >>> K.eval(K.log([1., 0.]))
        array([  0., -inf], dtype=float32)
    """
    return _core.log(x)


def round(x: TensorLike) -> Tensor:
    """The nearest integer, element by element; halves are rounded to the even integer. Integers do not change.

    Args:
        x: tensor of any shape and any dtype but bool.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    Example:
        >>> K.eval(K.round([0.5, 1.5, -2.6]))
        array([ 0.,  2., -3.], dtype=float32)
    """
    return _core.round(x)


def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1, element by element; NaN for NaN.

    Args:
        x: tensor of any shape and any dtype but bool.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    Example:
        >>> K.eval(K.sign([-2., 0., 5.]))
        array([-1.,  0.,  1.], dtype=float32)
    """
    return _core.sign(x)


def pow(x: TensorLike, a: TensorLike) -> Tensor:
    """x to the power of a, element by element. NaN for a fractional power of a negative number.

    Args:
        x: tensor of any shape and any dtype but bool.
        a: tensor or number: the exponents, of x's dtype, in a shape that broadcasts with x's.
    Returns:
        Tensor of the broadcast shape, in x's dtype.
    Raises:
        TypeError: the dtypes differ, an operand is bool, or x holds integers and `a` is a fraction.
        ValueError: the shapes do not broadcast, or an operand is sparse. When the step runs: a negative power of an
            integer.
    See: ops/math/arithmetic.cc
    Example:
        >>> K.eval(K.pow([1., 2., 3.], 2))
        array([1., 4., 9.], dtype=float32)
    """
    return _core.pow(x, a)


def clip(x: TensorLike, min_value: Optional[Parameter], max_value: Optional[Parameter]) -> Tensor:
    """x limited to [min_value, max_value], element by element. A max_value below min_value counts as min_value.

    Args:
        x: tensor of any shape and any dtype but bool.
        min_value: float, or tensor, cast to x's dtype, whose shape broadcasts with x's; or None: no lower bound.
        max_value: float, or tensor, cast to x's dtype, whose shape broadcasts with x's; or None: no upper bound.
    Returns:
        Tensor of x's shape (with tensors as bounds: the broadcast shape) and dtype.
    Raises:
        TypeError: x is bool, a bound is not a number, or a bound of integers is a fraction or a floating tensor (cast it).
        ValueError: the shapes do not broadcast, or x is sparse.
    See: ops/math/clip.cc
    Example:
        >>> K.eval(K.clip([-3., 0.5, 3.], -1, 1))
        array([-1. ,  0.5,  1. ], dtype=float32)
    """
    return _core.clip(x, min_value, max_value)


def equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x == y, element by element. NaN equals nothing.

    Args:
        x: tensor of any shape and any dtype.
        y: tensor of x's dtype whose shape broadcasts with x's. A value that is not a tensor takes the dtype of the other operand.
    Returns:
        bool tensor of the broadcast shape.
    Raises:
        TypeError: the tensors differ in dtype; cast one of them.
        ValueError: the shapes do not broadcast, or an operand is sparse.
    See: ops/math/compare.cc
    Example:
        >>> K.eval(K.equal([1, 3, 1], [1, 2, 2]))
        array([ True, False, False])
    """
    return _core.equal(x, y)


def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x != y, element by element. NaN differs from everything.

    Args:
        x: tensor of any shape and any dtype.
        y: tensor of x's dtype whose shape broadcasts with x's. A value that is not a tensor takes the dtype of the other operand.
    Returns:
        bool tensor of the broadcast shape.
    Raises:
        TypeError: the tensors differ in dtype; cast one of them.
        ValueError: the shapes do not broadcast, or an operand is sparse.
    See: ops/math/compare.cc
    """
    return _core.not_equal(x, y)


def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x > y, element by element.

    Args:
        x: tensor of any shape and any dtype.
        y: tensor of x's dtype whose shape broadcasts with x's. A value that is not a tensor takes the dtype of the other operand.
    Returns:
        bool tensor of the broadcast shape.
    Raises:
        TypeError: the tensors differ in dtype; cast one of them.
        ValueError: the shapes do not broadcast, or an operand is sparse.
    See: ops/math/compare.cc
    Example:
        >>> K.eval(K.greater([1, 3, 1], [1, 2, 2]))
        array([False,  True, False])
    """
    return _core.greater(x, y)


def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x >= y, element by element.

    Args:
        x: tensor of any shape and any dtype.
        y: tensor of x's dtype whose shape broadcasts with x's. A value that is not a tensor takes the dtype of the other operand.
    Returns:
        bool tensor of the broadcast shape.
    Raises:
        TypeError: the tensors differ in dtype; cast one of them.
        ValueError: the shapes do not broadcast, or an operand is sparse.
    See: ops/math/compare.cc
    """
    return _core.greater_equal(x, y)


def less(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x < y, element by element.

    Args:
        x: tensor of any shape and any dtype.
        y: tensor of x's dtype whose shape broadcasts with x's. A value that is not a tensor takes the dtype of the other operand.
    Returns:
        bool tensor of the broadcast shape.
    Raises:
        TypeError: the tensors differ in dtype; cast one of them.
        ValueError: the shapes do not broadcast, or an operand is sparse.
    See: ops/math/compare.cc
    """
    return _core.less(x, y)


def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether x <= y, element by element.

    Args:
        x: tensor of any shape and any dtype.
        y: tensor of x's dtype whose shape broadcasts with x's. A value that is not a tensor takes the dtype of the other operand.
    Returns:
        bool tensor of the broadcast shape.
    Raises:
        TypeError: the tensors differ in dtype; cast one of them.
        ValueError: the shapes do not broadcast, or an operand is sparse.
    See: ops/math/compare.cc
    """
    return _core.less_equal(x, y)


def maximum(x: TensorLike, y: TensorLike) -> Tensor:
    """The larger of x and y, element by element; NaN if one is NaN.

    Args:
        x: tensor of any shape and any dtype but bool.
        y: tensor of x's dtype whose shape broadcasts with x's. A value that is not a tensor takes the dtype of the other operand.
    Returns:
        Tensor of the broadcast shape, in x's dtype.
    Raises:
        TypeError: the tensors differ in dtype, or are bool; cast them first.
        ValueError: the shapes do not broadcast, or an operand is sparse.
    See: ops/math/arithmetic.cc
    Example:
        >>> K.eval(K.maximum([1., 5.], 2.))
        array([2., 5.], dtype=float32)
    """
    return _core.maximum(x, y)


def minimum(x: TensorLike, y: TensorLike) -> Tensor:
    """The smaller of x and y, element by element; NaN if one is NaN.

    Args:
        x: tensor of any shape and any dtype but bool.
        y: tensor of x's dtype whose shape broadcasts with x's. A value that is not a tensor takes the dtype of the other operand.
    Returns:
        Tensor of the broadcast shape, in x's dtype.
    Raises:
        TypeError: the tensors differ in dtype, or are bool; cast them first.
        ValueError: the shapes do not broadcast, or an operand is sparse.
    See: ops/math/arithmetic.cc
    """
    return _core.minimum(x, y)


def sin(x: TensorLike) -> Tensor:
    """The sine, element by element.

    Args:
        x: tensor of any shape and floating dtype. Angles in radians.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor; cast it first.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    """
    return _core.sin(x)


def cos(x: TensorLike) -> Tensor:
    """The cosine, element by element.

    Args:
        x: tensor of any shape and floating dtype. Angles in radians.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor; cast it first.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    """
    return _core.cos(x)
