"""This process among the ranks of its job.

Started as one of several (mpirun, srun, PBS), a process joins the others when `syncline` is imported. Its worker processes
(multiprocessing by fork, spawn or forkserver, or any Python that it starts) inherit its environment, but are no ranks: they know its
number, take no part in collectives, and compute by themselves.
"""

import operator
import os
import pickle
import sys
import zlib

import numpy as np

from syncline import _core
from syncline.distribution.collectives import Group

# Marks the environment of all that a rank starts.
_MARK = "SYNCLINE_RANK"

# What tells one launch from another one inside it.
_JOB = ("PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID", "PALS_APID")

_rank, _size, _local_rank, _job = 0, 1, 0, ""


def rank():
    """This process's number among the ranks, 0 alone. A worker process has the number of the rank that it works for."""
    return _rank


def size():
    """The number of ranks: 1 alone."""
    return _size


def local_rank():
    """This process's number among the ranks of its node: 0 alone."""
    return _local_rank


def job():
    """A name that this job's ranks have in common, and no other job has."""
    return _job


def is_rank():
    """Whether this process is one of several ranks itself, not alone and no worker process of a rank."""
    return _core.ranks() > 1


def _all():
    return Group(range(size()), rank(), 0)


def barrier():
    """Returns when every rank has called it. Raises as Group.barrier."""
    _all().barrier()


def all_reduce(value, op="sum"):
    """The sum, mean, max or min over ranks of an array or a number, the same on each: Group.all_reduce of all ranks."""
    return _all().all_reduce(value, op)


def all_gather(value):
    """The ranks' arrays one after the other along their first axis, the same on each: Group.all_gather of all ranks."""
    return _all().all_gather(value)


def reduce_scatter(value, op="sum"):
    """This rank's rows of the sum, mean, max or min of the ranks' arrays: Group.reduce_scatter of all ranks."""
    return _all().reduce_scatter(value, op)


def broadcast(value, root=0):
    """Rank `root`'s value, an array or any object that pickle takes, for every rank: Group.broadcast of all ranks."""
    return _all().broadcast(value, root)


def group(ranks):
    """A Group of these ranks. All of them call this alike, in the same order where there are several groups; the others may call it too.

    # Arguments
        ranks: numbers of ranks, each once.
    # Returns
        The group, in which ranks count from 0 in ascending order; None on a rank that is not among them.
    # Raises
        ValueError: for no ranks, a rank twice, and what is no rank. RuntimeError: as barrier.
    """
    wanted = sorted(operator.index(number) for number in ranks)
    if not wanted or len(set(wanted)) < len(wanted) or not 0 <= wanted[0] <= wanted[-1] < size():
        raise ValueError(f"group: {wanted} of {size()} ranks; give numbers of ranks, each once")
    if rank() not in wanted:
        return None
    return Group(wanted, wanted.index(rank()), _core.make_group(wanted) if len(wanted) > 1 else 0)


def agree_steps(steps, how="min"):
    """How many steps an epoch has where ranks have different numbers of batches: the least ("min") or the most ("max") of `steps`. To be
    asked by every rank before the epoch, under `local_feeds`. A rank that runs out before the most hands over arrays without rows.

    # Raises
        ValueError: for a negative number, and for another `how`. RuntimeError: as barrier.
    """
    steps = operator.index(steps)
    if steps < 0:
        raise ValueError(f"agree_steps: {steps} steps; give a number that is not negative")
    if how not in ("min", "max"):
        raise ValueError(f"agree_steps: unknown how {how!r}; give min or max")
    return int(all_reduce(steps, how))


def join():
    """Joins the other ranks, if this process is one of several. Returns whether it is."""
    global _rank, _size, _local_rank, _job
    _rank, _size, _local_rank, _ = _core.launched()
    if _size == 1 or _is_worker():
        _size = max(_size, 1)
        if os.environ.get("SYNCLINE_TRACE") and not _is_worker():
            _enter()  # alone, for the timeline
        return False
    _enter()
    _rank, _size = _core.rank(), _core.ranks()
    os.environ[_MARK] = _identity()
    if not is_rank():
        return False
    _job = broadcast(os.urandom(8).hex())
    _share_processors()
    align_random_states()
    _align_entropy()
    return True


def _enter():
    if _core.join():
        import atexit

        atexit.register(_core.leave, 0)


def _identity():
    return ",".join([*(os.environ.get(name, "") for name in _JOB), str(_rank), str(os.getpid())])


def _is_worker():
    # Who is started by multiprocessing has it loaded; forkserver's server has no parent, but says that it inherits.
    process = sys.modules.get("multiprocessing.process")
    if process is not None and (process.parent_process() is not None or getattr(process.current_process(), "_inheriting", False)):
        return True
    marked = os.environ.get(_MARK, "")
    mine = _identity()
    return marked.rpartition(",")[0] == mine.rpartition(",")[0] and marked != mine


def _share_processors():
    """Bounds this rank's threads by its share of the processors that it may use: each counts for all ranks that may use it."""
    own = [processor for processor in os.sched_getaffinity(0) if processor < 1024]
    table = np.zeros((size(), 1025), np.int32)
    table[rank(), own] = 1
    table[rank(), -1] = zlib.crc32(os.uname().nodename.encode()) >> 1
    table = all_reduce(table)
    sharers = table[table[:, -1] == table[rank(), -1]].sum(axis=0)
    share = int(sum(1 / sharers[processor] for processor in own) + 1e-9)
    _core.set_threads(max(1, min(share, _core.threads())))


def align_random_states():
    """Gives all ranks rank 0's state of the generators that nobody may have seeded: unseeded shuffles then agree."""
    import random

    state, numpy_state = random.getstate(), np.random.get_state()
    digest = hash((state[1], state[2] or 0.0)) & 0xFFFFFFFF  # of numbers alone, so the same in every process
    if first_difference([zlib.crc32(pickle.dumps(numpy_state), digest)]) is None:
        return
    state, numpy_state = broadcast((state, numpy_state))
    if rank() != 0:  # there a thread may have drawn meanwhile
        random.setstate(state)
        np.random.set_state(numpy_state)


def first_difference(numbers):
    """Which of these whole numbers is the first that is not the same on every rank; None if all are. Every rank asks, with as many."""
    # The largest is the smallest where all are equal.
    largest = all_reduce(np.array([*numbers, *(-number for number in numbers)], np.int64), "max").tolist()
    return next((i for i in range(len(numbers)) if largest[i] != -largest[i + len(numbers)]), None)


def _align_entropy():
    """Of numpy's unseeded generators: default_rng(), RandomState(), seed()."""
    import random

    entropy = np.random.bit_generator
    if hasattr(entropy, "randbits"):
        entropy.randbits = random.Random(_job).getrandbits


os.register_at_fork(before=_core.before_fork, after_in_parent=_core.after_fork_in_parent, after_in_child=_core.after_fork_in_child)
