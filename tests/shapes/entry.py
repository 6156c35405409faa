"""An entry of the tables: one function or several with the same rule, the function that draws their arguments, and the model, an
independent rule for the result's shape.

A model takes the call's arguments with arrays in place of operands. It returns an array or a shape (or a list of these), or raises
NumPy's errors. A model that does not use NumPy's rule states the source of its rule."""

from collections import namedtuple

import numpy as np

Entry = namedtuple("Entry", "names draw model")


def require(condition, message="the arguments do not fit"):
    if not condition:
        raise ValueError(message)


def no_axis_of_scalar(x, axis):
    # NumPy ignores axis 0 of a scalar; the documentation requires an axis of x.
    require(np.ndim(x) > 0 or axis is None or axis == [], f"a scalar has no axis {axis}")
