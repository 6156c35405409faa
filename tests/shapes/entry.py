"""An entry of the tables: a function, or several of one rule, how their arguments are drawn, and the model, an
independent rule of the result's shape.

A model takes the call's arguments with arrays in place of operands, and returns an array or a shape (or a list of
them), or raises what NumPy raises. Where a model does not leave the answer to NumPy, it says whose rule it has."""

from collections import namedtuple

import numpy as np

Entry = namedtuple("Entry", "names draw model")


def require(condition, message="the arguments do not fit"):
    if not condition:
        raise ValueError(message)


def no_axis_of_scalar(x, axis):
    # NumPy takes axis 0 of a scalar for nothing; the documents want an axis of x.
    require(np.ndim(x) > 0 or axis is None or axis == [], f"a scalar has no axis {axis}")
