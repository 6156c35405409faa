"""This process as a rank of its job.

A process launched as one of several (mpirun, srun, PBS) joins the others when `syncline` is imported. Its worker processes
(multiprocessing by fork, spawn or forkserver, or any Python process that it starts) inherit its environment, but are not ranks: they
have its number, take no part in collectives, and compute alone.
"""

import contextlib
import ctypes
import operator
import os
import pickle
import sys
import zlib

import numpy as np

from syncline import _core
from syncline.distribution.collectives import Group
from syncline.keras_support.import_hook import after_import
from syncline.random_states import random_states, set_random_states
from syncline.types import Sequence

# The environment variable that marks processes started by a rank.
_MARK = "SYNCLINE_RANK"

# Environment variables that distinguish a launch from another launch inside it.
_JOB = ("PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID", "PALS_APID")

# What sets the number of threads in the BLAS of NumPy's wheels and of distributions: OpenBLAS, MKL, BLIS.
_SET_BLAS_THREADS = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads", "MKL_Set_Num_Threads")
_SET_BLAS_THREADS += ("scipy_openblas_set_num_threads", "bli_thread_set_num_threads")

_rank, _size, _local_rank, _job = 0, 1, 0, ""
_is_worker = _entered = False


def rank():
    """This process's rank; 0 for a single process. A worker process has the number of the rank that it works for."""
    return _rank


def size():
    """The number of ranks; 1 for a single process."""
    return _size


def local_rank():
    """This process's number among the ranks of its node; 0 for a single process."""
    return _local_rank


def job():
    """A random name of this job, the same on all ranks."""
    return _job


def is_rank():
    """True if this process is one of several ranks, not a single process or a worker process of a rank."""
    return _core.ranks() > 1


def function_class():
    """The class of functions: that of several ranks compares its feeds."""
    if not is_rank():
        return _core.Function
    from syncline.distribution import feeds  # loaded by ranks only

    return feeds.Function


def _all():
    return Group(range(size()), rank(), 0)


@contextlib.contextmanager
def whole_values(variables):
    """Context manager: rank 0 can read the variables without the other ranks, also those that are split between nodes. Collective."""
    try:
        _core.hold_values(variables, rank() == 0)
        yield
    finally:
        _core.release_values(variables)


def barrier():
    """Returns when every rank has called it. Raises as Group.barrier."""
    _all().barrier()


def all_reduce(value, op="sum"):
    """The sum, mean, max or min over ranks of an array or a number: Group.all_reduce of all ranks."""
    return _all().all_reduce(value, op)


def all_gather(value):
    """The concatenation of the ranks' arrays along axis 0: Group.all_gather of all ranks."""
    return _all().all_gather(value)


def reduce_scatter(value, op="sum"):
    """This rank's rows of the sum, mean, max or min of the ranks' arrays: Group.reduce_scatter of all ranks."""
    return _all().reduce_scatter(value, op)


def broadcast(value, root=0):
    """Rank `root`'s value, an array or any object that pickle accepts, on every rank: Group.broadcast of all ranks."""
    return _all().broadcast(value, root)


def group(ranks: Sequence[int]):
    """Makes a Group of these ranks. All of them call it with the same ranks, and make several groups in the same order. Other ranks may
    call it too.

    Args:
        ranks: numbers of ranks, each once.
    Returns:
        Group: its ranks are numbered from 0 in ascending order; None on a rank outside of the group.
    Raises:
        ValueError: ranks is empty, contains a rank twice, or a number that is not a rank. RuntimeError: as barrier.
    """
    wanted = sorted(operator.index(number) for number in ranks)
    if not wanted or len(set(wanted)) < len(wanted) or not 0 <= wanted[0] <= wanted[-1] < size():
        raise ValueError(f"group: ranks are {wanted}; give numbers from 0 to {size() - 1}, each once")
    if rank() not in wanted:
        return None
    return Group(wanted, wanted.index(rank()), _core.make_group(wanted) if len(wanted) > 1 else 0)


def agree_steps(steps, how="min"):
    """The number of steps of an epoch if ranks have different numbers of batches: the smallest ("min") or largest ("max") `steps` of any
    rank. A collective of all ranks, to be called before the epoch. With "max", under `local_feeds`, a rank without further batches feeds
    empty arrays.

    Raises:
        ValueError: steps is negative; how is neither "min" nor "max". RuntimeError: as barrier.
    """
    steps = operator.index(steps)
    if steps < 0:
        raise ValueError(f"agree_steps: steps is {steps}; give 0 or more")
    if how not in ("min", "max"):
        raise ValueError(f"agree_steps: how is {how!r}; give 'min' or 'max'")
    return int(all_reduce(steps, how))


def parts():
    """The number of parts of each batch; 0 if sums over the batch depend on the number of ranks in their last bits."""
    return _core.parts()


def set_parts(parts: int):
    """Divides each batch into parts, so that variables, outputs, losses and metrics have the same bits on any number of ranks up to this
    one. A collective of all ranks. Call it before a model is built: initial weights may depend on NumPy's threads, which it limits to one.
    SYNCLINE_PARTS and keras.json set the same option. A worker process computes alone, and the call has no effect there.

    Args:
        parts: a power of two, at least the number of ranks and at most 1024; 0: no parts.
    Raises:
        ValueError: parts is another number; the transport is nccl or the wire format has 16 bits, whose sums depend on the number of
            ranks; a function has run. RuntimeError: as barrier.
    See:
        docs/reproducibility.md
    """
    parts = operator.index(parts)
    if _is_worker:
        return
    if not _entered:
        _enter()
    _core.set_parts(parts)
    _keep_blas_bits()


def join():
    """Joins the other ranks if this process was launched as one of several. Returns True if it has joined them."""
    global _rank, _size, _local_rank, _job, _is_worker
    _rank, _size, _local_rank, _ = _core.launched()
    identity = ",".join([*(os.environ.get(name, "") for name in _JOB), str(_rank)])
    marked, parents_rank, parent = (["", "", ""] + os.environ.get(_MARK, "").rsplit(",", 2))[-3:]
    is_child = marked == identity and parent != str(os.getpid())
    if is_child:
        _rank = int(parents_rank)  # which need not be the launcher's
    _is_worker = is_child or _is_started_by_multiprocessing()
    if _size == 1 or _is_worker:
        _size = max(_size, 1)
        if not _is_worker and (os.environ.get("SYNCLINE_TRACE") or _core.wanted_parts() > 0):
            _enter()  # as a single rank, which writes the timeline or adds the parts of each batch
        return False
    _enter()
    _rank, _size = _core.rank(), _core.ranks()
    os.environ[_MARK] = f"{identity},{_rank},{os.getpid()}"
    if not is_rank():
        return False
    _job = broadcast(os.urandom(8).hex())
    _share_processors()
    align_random_states()
    _align_entropy()
    return True


def _enter():
    global _entered
    if _core.join():
        import atexit

        atexit.register(_core.leave, 0)
    _entered = True
    _keep_blas_bits()


def _keep_blas_bits():
    """With parts, limits the linear algebra of NumPy and SciPy to one thread. It rounds differently with another number of threads, which
    follows from the rank's processors. Keras's Orthogonal initializer and ImageDataGenerator's whitening call it.
    """
    if parts() > 0:
        _use_one_blas_thread(np.linalg._umath_linalg)
        after_import("scipy.linalg._fblas", _use_one_blas_thread)  # SciPy has a library of its own


def _use_one_blas_thread(module):
    library = ctypes.CDLL(module.__file__)  # finds the functions of the libraries that it links to
    for name in _SET_BLAS_THREADS:
        if hasattr(library, name):
            getattr(library, name)(1)


def _is_started_by_multiprocessing():
    # Such a process has loaded it. The server of forkserver has no parent, but its _inheriting is set.
    process = sys.modules.get("multiprocessing.process")
    return process is not None and (process.parent_process() is not None or getattr(process.current_process(), "_inheriting", False))


def _share_processors():
    """Limits this rank's threads to its share of processors: a processor that n ranks of the node may use counts 1/n for each of them."""
    own = [processor for processor in os.sched_getaffinity(0) if processor < 1024]
    table = np.zeros((size(), 1025), np.int32)
    table[rank(), own] = 1
    table[rank(), -1] = zlib.crc32(os.uname().nodename.encode()) >> 1
    table = all_reduce(table)
    sharers = table[table[:, -1] == table[rank(), -1]].sum(axis=0)
    share = int(sum(1 / sharers[processor] for processor in own) + 1e-9)
    _core.set_threads(max(1, min(share, _core.threads())))


def align_random_states():
    """Sets the state of `random` and `numpy.random` to rank 0's on all ranks, so unseeded shuffles agree."""
    states = state, numpy_state = random_states()
    digest = hash((state[1], state[2] or 0.0)) & 0xFFFFFFFF  # hashes of numbers are the same in every process
    if first_difference([zlib.crc32(pickle.dumps(numpy_state), digest)]) is None:
        return
    states = broadcast(states)
    if rank() != 0:  # a thread of rank 0 may have drawn meanwhile
        set_random_states(states)


def first_difference(numbers):
    """Index of the first integer that differs between ranks, or None. A collective of all ranks, with equal numbers of integers."""
    # A number is equal on all ranks if its maximum is its minimum.
    largest = all_reduce(np.array([*numbers, *(-number for number in numbers)], np.int64), "max").tolist()
    return next((i for i in range(len(numbers)) if largest[i] != -largest[i + len(numbers)]), None)


def _align_entropy():
    """Gives numpy's unseeded generators the same entropy on all ranks: default_rng(), RandomState(), seed()."""
    import random

    entropy = np.random.bit_generator
    if hasattr(entropy, "randbits"):
        entropy.randbits = random.Random(_job).getrandbits


def _become_worker():
    global _is_worker
    _is_worker = True
    _core.after_fork_in_child()


os.register_at_fork(before=_core.before_fork, after_in_parent=_core.after_fork_in_parent, after_in_child=_become_worker)
