"""The ranks of a job.

Started as one of several ranks (mpirun, srun, PBS), the process joins the others when `syncline` is imported. From
then on every function is one step of the whole job: each rank hands over the same global batch and gets the same
results. `local_feeds` changes the former.
"""

import multiprocessing
import os
import pickle

import numpy as np

from syncline import _core


def rank():
    """This process's number among the ranks: 0 alone."""
    return _core.rank()


def size():
    """The number of ranks: 1 alone."""
    return _core.ranks()


def local_rank():
    """This process's number among the ranks of its node."""
    return _core.launched()[2] if size() > 1 else 0


def barrier():
    """Returns when every rank has called it."""
    if size() > 1:
        _core.barrier()


def all_reduce(value, op="sum"):
    """The sum, mean, max or min over ranks of an array or a number, the same on each.

    # Raises
        ValueError: for another op. TypeError: for bool and float16. RuntimeError: where ranks differ in shape or dtype.
    """
    if size() == 1:
        return np.array(value)[()]
    if op == "mean":
        return all_reduce(np.asarray(value, dtype=float) / size(), "sum")
    return _core.all_reduce(value, op)


def broadcast(value, root=0):
    """Rank `root`'s value, any object that pickle takes, for every rank."""
    if size() == 1:
        return value
    return pickle.loads(_core.broadcast(pickle.dumps(value) if rank() == root else b"", root))


def _is_rank():
    """Whether this process was launched as one of several ranks; worker processes of a rank are none, though they
    inherit its environment."""
    return multiprocessing.parent_process() is None and _core.launched()[1] != 1


if _is_rank():
    _core.join(False)
    os.register_at_fork(after_in_child=_core.forget)
