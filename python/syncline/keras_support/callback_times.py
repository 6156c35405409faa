"""A faster median for Keras's timing of its callbacks.

Twice a batch Keras calls numpy.median on the last ten times of its callbacks, to warn about slow ones. This takes 50 microseconds, more
than a step of a small network. The deque of times that replaces Keras's computes the same median itself.
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
after_import("keras.callbacks", _use_times)  # until Keras 2.2.5 one file
