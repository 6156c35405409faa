"""Elementwise functions. Operands broadcast as in NumPy; what is no tensor takes the other operand's dtype. Two
tensors of different dtypes raise TypeError: cast one. Integers wrap around (docs/dtypes.md)."""

from syncline import _core


def square(x):
    """x * x."""
    return _core.square(x)


def abs(x):
    """The absolute value."""
    return _core.abs(x)


def sqrt(x):
    """The square root of max(x, 0)."""
    return _core.sqrt(x)


def exp(x):
    """e to the power of x."""
    return _core.exp(x)


def log(x):
    """The natural logarithm."""
    return _core.log(x)


def round(x):
    """The nearest whole number, halves to even."""
    return _core.round(x)


def sign(x):
    """-1, 0 or 1."""
    return _core.sign(x)


def pow(x, a):
    """x to the power of a."""
    return _core.pow(x, a)


def clip(x, min_value, max_value):
    """x limited to [min_value, max_value]; either may be None. A max_value below min_value counts as min_value."""
    return _core.clip(x, _number(min_value), _number(max_value))


def _number(value):
    return None if value is None else float(value)


def equal(x, y):
    """bool: x == y, element by element."""
    return _core.equal(x, y)


def not_equal(x, y):
    """bool: x != y, element by element."""
    return _core.not_equal(x, y)


def greater(x, y):
    """bool: x > y, element by element."""
    return _core.greater(x, y)


def greater_equal(x, y):
    """bool: x >= y, element by element."""
    return _core.greater_equal(x, y)


def less(x, y):
    """bool: x < y, element by element."""
    return _core.less(x, y)


def less_equal(x, y):
    """bool: x <= y, element by element."""
    return _core.less_equal(x, y)


def maximum(x, y):
    """The larger one, element by element."""
    return _core.maximum(x, y)


def minimum(x, y):
    """The smaller one, element by element."""
    return _core.minimum(x, y)


def sin(x):
    """The sine of x (radians)."""
    return _core.sin(x)


def cos(x):
    """The cosine of x (radians)."""
    return _core.cos(x)
