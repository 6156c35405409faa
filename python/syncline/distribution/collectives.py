"""Collectives of arrays and objects over all ranks or a group."""

import pickle
import threading

import numpy as np

from syncline import _core

_OPS = ("sum", "mean", "max", "min")

_LARGE = 64 << 10  # bytes from which broadcast sends an array separately, without a copy into the pickle


class _Place(threading.local):
    calls = 0


# Where this thread is in the program: how many functions (feeds.Function) and collectives of the whole job it has called. Threads that
# call them call the same ones on every rank.
place = _Place()


class Group:
    """A subset of the job's ranks with its own collectives; made by `syncline.distributed.group`.

    All ranks of the group, and no others, call the methods in the same order. The collectives of different groups, and of the whole job,
    are independent. A group lasts until the job ends. Its ranks are numbered from 0.
    """

    def __init__(self, ranks, number, core):
        self._ranks, self._rank, self._core = ranks, number, core

    def rank(self):
        """This process's number among the group's ranks."""
        return self._rank

    def size(self):
        """The number of ranks in the group."""
        return len(self._ranks)

    def ranks(self):
        """The group's ranks by their numbers in the job."""
        return tuple(self._ranks)

    def barrier(self):
        """Returns when every rank has called it.

        Raises:
            RuntimeError: this process is a worker process of a rank; another rank calls something else, or has ended. This applies to
                all collectives.
        """
        if self.size() > 1:
            self._call(_core.barrier)

    def all_reduce(self, value, op="sum"):
        """The elementwise sum, mean, max or min over ranks of an array or a number, the same on each rank. It has the dtype of `value`;
        the mean of integers is float64.

        Raises:
            ValueError: unknown op. TypeError: bool and float16. RuntimeError: as barrier; shapes or dtypes differ between ranks.
        """
        value = self._summand("all_reduce", value, op)
        return value[()].copy() if self.size() == 1 else self._call(_core.all_reduce, value, "sum" if op == "mean" else op)

    def all_gather(self, value):
        """The concatenation of the ranks' arrays along axis 0, the same on each rank. Numbers of rows may differ; a number counts as an
        array of one row.

        Raises:
            ValueError: on every rank, if dtypes or the shapes of rows differ. RuntimeError: as barrier.
        """
        value = np.atleast_1d(np.asarray(value))
        return value.copy() if self.size() == 1 else self._call(_core.all_gather, value)

    def reduce_scatter(self, value, op="sum"):
        """This rank's rows of the result of all_reduce. Arrays have the same shape on each rank. Rows are divided as in
        numpy.array_split: of n rows the first n % size() ranks get one more.

        Raises:
            ValueError: unknown op; value is a number; on every rank, if shapes or dtypes differ. TypeError: bool and float16.
                RuntimeError: as barrier.
        """
        value = self._summand("reduce_scatter", value, op)
        if value.ndim == 0:
            raise ValueError("reduce_scatter: the value is a number, which has no rows; give an array")
        return value.copy() if self.size() == 1 else self._call(_core.reduce_scatter, value, "sum" if op == "mean" else op)

    def broadcast(self, value, root=0):
        """Rank `root`'s value on every rank: an array, or any object that pickle accepts.

        Raises:
            ValueError: root is not a rank of the group. RuntimeError: as barrier.
        """
        if not 0 <= root < self.size():
            raise ValueError(f"broadcast: root is {root}; give a rank from 0 to {self.size() - 1}")
        if self.size() == 1:
            return value
        own = self.rank() == root
        parts = []  # large arrays, also inside other objects, are sent from their own memory

        def takes_small(buffer):
            part = np.frombuffer(buffer.raw(), np.uint8) if buffer.raw().nbytes >= _LARGE else None
            return part is None or parts.append(part)

        head = pickle.dumps((pickle.dumps(value, 5, buffer_callback=takes_small), [len(part) for part in parts])) if own else b""
        pickled, sizes = pickle.loads(self._call(_core.broadcast, head, root))
        if not own:
            parts = [np.empty(size, np.uint8) for size in sizes]
        for part in parts:
            self._call(_core.broadcast_into, part, root)
        if own:
            return value.copy() if type(value) is np.ndarray else value
        return pickle.loads(pickled, buffers=parts)

    def _call(self, collective, *arguments):
        result = collective(self._core, *arguments)
        place.calls += self._core == 0
        return result

    def _summand(self, caller, value, op):
        if op not in _OPS:
            raise ValueError(f"{caller}: unknown op {op!r}; give sum, mean, max or min")
        value = np.asarray(value)
        if value.dtype.kind == "b" or value.dtype == np.float16:
            raise TypeError(f"{caller}: values of dtype {value.dtype} cannot be reduced over ranks; cast them, for example to float32")
        if op == "mean":
            return value / (value.dtype.type(self.size()) if value.dtype.kind == "f" else self.size())
        return value
