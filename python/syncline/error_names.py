"""Errors of the documented functions begin with the function that the program called.

Many functions are composed of others, whose checks name only themselves: `stack: concatenate: shapes ... must agree`.
"""

import functools
import inspect
import os
import types

from syncline._core import Tensor, Variable

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def name_errors(namespace):
    """Replaces the public functions in `namespace` by ones whose errors have their names."""
    for name, value in namespace.items():
        if isinstance(value, types.FunctionType) and value.__module__.startswith("syncline.functions."):
            namespace[name] = _with_name(value)


def _with_name(function):
    # A keyword, because Keras saves a Lambda layer with the function's code, closure and positional defaults.
    @functools.wraps(function)
    def call(*positional, _function=function, **named):
        try:
            return _function(*positional, **named)
        except (TypeError, ValueError) as error:
            if type(error) in (TypeError, ValueError) and len(error.args) == 1 and _is_ours(error.__traceback__.tb_next):
                error.args = (_text(_function, positional, named, str(error)),)
            raise

    # pickle finds the function by its module, inspect.getfullargspec the arguments by the signature.
    call.__module__, call.__signature__ = "syncline", inspect.signature(function)
    return call


def _is_ours(trace):
    """Whether the error was raised in this package: not in a function of the program, such as rnn's step_function."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS)


def _text(function, positional, named, text):
    name = function.__name__
    if "incompatible function arguments" in text:  # nanobind's, with the signature of a function without names
        given = inspect.signature(function).bind(*positional, **named).arguments
        return f"{name}: does not take " + ", ".join(f"{key} {_described(value)}" for key, value in given.items())
    return text if text.startswith((f"{name}:", f"{name}(")) else f"{name}: {text}"


def _described(value):
    shape = f" and shape {value.shape}".replace("None", "?") if isinstance(value, (Tensor, Variable)) else ""
    return f"of type {type(value).__name__}{shape}"
