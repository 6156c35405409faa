"""What ranks do together with arrays: all of them, or a group."""

import pickle

import numpy as np

from syncline import _core

_OPS = ("sum", "mean", "max", "min")

_LARGE = 64 << 10  # bytes of an array


class Group:
    """Some of the job's ranks, which communicate among themselves; made by `syncline.distributed.group`.

    Its methods are collectives of its ranks: each of them calls them, in the same order, and nobody else does. Groups work beside each
    other and beside the job's own collectives. A group lasts until the job ends. Within it ranks count from 0.
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

        # Raises
            RuntimeError: in a worker process of a rank; where another rank does something else, or ends. So do the others.
        """
        if self.size() > 1:
            _core.barrier(self._core)

    def all_reduce(self, value, op="sum"):
        """The sum, mean, max or min over ranks of an array or a number, element by element, the same on each. The dtype stays, but for
        the mean of integers, which is float64.

        # Raises
            ValueError: for another op. TypeError: for bool and float16. RuntimeError: as barrier, and where ranks differ in shape or
                dtype.
        """
        value = self._summand("all_reduce", value, op)
        return value[()].copy() if self.size() == 1 else _core.all_reduce(self._core, value, "sum" if op == "mean" else op)

    def all_gather(self, value):
        """The ranks' arrays one after the other along their first axis, the same on each. Ranks may give different numbers of rows; of
        numbers it makes an array.

        # Raises
            ValueError: on every rank, where dtypes or the shapes of rows differ. RuntimeError: as barrier.
        """
        value = np.atleast_1d(np.asarray(value))
        return value.copy() if self.size() == 1 else _core.all_gather(self._core, value)

    def reduce_scatter(self, value, op="sum"):
        """This rank's rows of what all_reduce gives. Each rank hands over an array of the same shape; rows are shared out as
        numpy.array_split does: of n rows the first n % size() ranks get one more.

        # Raises
            ValueError: for another op, and for a number; on every rank, where shapes or dtypes differ. TypeError: for bool and float16.
                RuntimeError: as barrier.
        """
        value = self._summand("reduce_scatter", value, op)
        if value.ndim == 0:
            raise ValueError("reduce_scatter: numbers have no rows; give arrays")
        return value.copy() if self.size() == 1 else _core.reduce_scatter(self._core, value, "sum" if op == "mean" else op)

    def broadcast(self, value, root=0):
        """Rank `root`'s value for every rank: an array, or any object that pickle takes.

        # Raises
            ValueError: for a root that is no rank of the group. RuntimeError: as barrier.
        """
        if not 0 <= root < self.size():
            raise ValueError(f"broadcast: root {root} of {self.size()} ranks")
        if self.size() == 1:
            return value
        own = self.rank() == root
        parts = []  # large arrays, also within other objects, travel as they lie

        def takes_small(buffer):
            part = np.frombuffer(buffer.raw(), np.uint8) if buffer.raw().nbytes >= _LARGE else None
            return part is None or parts.append(part)

        head = pickle.dumps((pickle.dumps(value, 5, buffer_callback=takes_small), [len(part) for part in parts])) if own else b""
        pickled, sizes = pickle.loads(_core.broadcast(self._core, head, root))
        if not own:
            parts = [np.empty(size, np.uint8) for size in sizes]
        for part in parts:
            _core.broadcast_into(self._core, part, root)
        if own:
            return value.copy() if type(value) is np.ndarray else value
        return pickle.loads(pickled, buffers=parts)

    def _summand(self, caller, value, op):
        if op not in _OPS:
            raise ValueError(f"{caller}: unknown op {op!r}; give sum, mean, max or min")
        value = np.asarray(value)
        if value.dtype.kind == "b" or value.dtype == np.float16:
            raise TypeError(f"{caller}: {value.dtype} is not added up over ranks; convert it, to float32 for example")
        if op == "mean":
            return value / (value.dtype.type(self.size()) if value.dtype.kind == "f" else self.size())
        return value
