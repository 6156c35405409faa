"""Keras's clock of its callbacks, cheaper.

Keras takes numpy.median of the last ten times of its callbacks twice a batch, to warn of slow ones: 50 microseconds, more than a
step of a small network. Its deque of times answers that one function itself, to the same number.
"""

import collections

import numpy as np

from syncline.keras_support.import_hook import after_import


class _Times(collections.deque):
    def __array_function__(self, function, types, args, kwargs):
        if function is np.median and len(args) == 1 and not kwargs and self:
            times, middle = sorted(self), len(self) // 2
            return times[middle] if len(times) % 2 else (times[middle - 1] + times[middle]) / 2
        own = [list(arg) if isinstance(arg, _Times) else arg for arg in args]
        return function(*own, **kwargs)


def _use_times(module):
    if getattr(module, "deque", None) is collections.deque:
        module.deque = _Times


after_import("keras.callbacks.callbacks", _use_times)
after_import("keras.callbacks", _use_times)  # one file until Keras 2.2.5
