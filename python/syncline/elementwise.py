"""Elementwise functions. Operands broadcast as in NumPy; what is no tensor takes the other operand's dtype. Two
tensors of different dtypes raise TypeError: cast one. Integers wrap around (docs/dtypes.md)."""

from __future__ import annotations

from syncline import _core
from syncline.types import Optional, Parameter, Tensor, TensorLike


def square(x: TensorLike) -> Tensor:
    """x * x."""
    return _core.square(x)


def abs(x: TensorLike) -> Tensor:
    """The absolute value."""
    return _core.abs(x)


def sqrt(x: TensorLike) -> Tensor:
    """The square root of max(x, 0)."""
    return _core.sqrt(x)


def exp(x: TensorLike) -> Tensor:
    """e to the power of x."""
    return _core.exp(x)


def log(x: TensorLike) -> Tensor:
    """The natural logarithm."""
    return _core.log(x)


def round(x: TensorLike) -> Tensor:
    """The nearest whole number, halves to even."""
    return _core.round(x)


def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1."""
    return _core.sign(x)


def pow(x: TensorLike, a: TensorLike) -> Tensor:
    """x to the power of a."""
    return _core.pow(x, a)


def clip(x: TensorLike, min_value: Optional[Parameter], max_value: Optional[Parameter]) -> Tensor:
    """x limited to [min_value, max_value]; either may be None. A max_value below min_value counts as min_value."""
    return _core.clip(x, min_value, max_value)


def equal(x: TensorLike, y: TensorLike) -> Tensor:
    """bool: x == y, element by element."""
    return _core.equal(x, y)


def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """bool: x != y, element by element."""
    return _core.not_equal(x, y)


def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """bool: x > y, element by element."""
    return _core.greater(x, y)


def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """bool: x >= y, element by element."""
    return _core.greater_equal(x, y)


def less(x: TensorLike, y: TensorLike) -> Tensor:
    """bool: x < y, element by element."""
    return _core.less(x, y)


def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """bool: x <= y, element by element."""
    return _core.less_equal(x, y)


def maximum(x: TensorLike, y: TensorLike) -> Tensor:
    """The larger one, element by element."""
    return _core.maximum(x, y)


def minimum(x: TensorLike, y: TensorLike) -> Tensor:
    """The smaller one, element by element."""
    return _core.minimum(x, y)


def sin(x: TensorLike) -> Tensor:
    """The sine of x (radians)."""
    return _core.sin(x)


def cos(x: TensorLike) -> Tensor:
    """The cosine of x (radians)."""
    return _core.cos(x)
