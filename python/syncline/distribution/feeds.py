"""Equal data on all ranks. If the feeds of a function, or the batches of Keras's generators, differ between ranks, every rank uses those
of rank 0.

The ranks compare digests of each batch of a generator and of each feed, because threads that draw from NumPy's generator make different
batches on each rank. The functions of Keras's loops compare their feeds at calls 1, 2, 4, 8, ..., and at every call after a difference,
because all ranks cut arrays in the same way. Before each fit and each loop over generators, and after loops with threads, the random
generators of all ranks get rank 0's state. Under `local_feeds` nothing is compared, and the order of a Sequence's batches is rank 0's.
"""

import functools
import random
import threading
import time
import warnings
import zlib

import numpy as np

from syncline import _core
from syncline.distribution import ranks
from syncline.distribution.collectives import place
from syncline.keras_support.import_hook import after_import

# At the end of a loop its threads are joined for at most this long.
_SECONDS_FOR_A_BATCH = 30

_ADVICE = (
    "Every rank uses those of rank 0, which costs a transfer. To avoid it, seed every generator with the same number, sort the "
    "entries of sets and folders, and draw no random numbers in threads. Or let each rank feed its own rows: "
    "syncline.distributed.local_feeds()"
)


def _follows():
    return ranks.is_rank() and not _core.local_feeds()


def _digest(value, digest=0):
    """A checksum of arrays and numbers, also inside lists and dicts. Other objects do not change it."""
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, (list, tuple)):
        for each in value:
            digest = _digest(each, digest)
        return zlib.crc32(str(len(value)).encode(), digest)
    if hasattr(value, "tocsr"):
        rows = value.tocsr()
        return _digest((rows.shape, rows.data, rows.indices, rows.indptr), digest)
    array = np.asarray(value)
    if array.dtype.hasobject:
        return digest
    kind = zlib.crc32(f"{array.dtype.str}{array.shape}".encode(), digest)
    return _core.digest(np.ascontiguousarray(array).reshape(-1).view(np.uint8), kind)


def _first_difference(values):
    """Index of the first value that differs between ranks, or None. A collective of all ranks, with equal numbers of values."""
    digests = [_digest(value) for value in values]
    return None if ranks.first_difference([zlib.crc32(repr(digests).encode())]) is None else ranks.first_difference(digests)


_call = _core.Function.__call__  # looked up once, because a call takes only a few microseconds


class Function(_core.Function):
    """A function of several ranks, which compares its feeds."""

    def __init__(self, inputs, outputs, updates, name, *others):
        super().__init__(inputs, outputs, updates, name, *others)
        self._names, self._name = [x.name.partition(":")[0] for x in inputs], name
        self._calls, self._differs = 0, False

    def __call__(self, inputs):
        self._calls = calls = self._calls + 1
        if (self._differs or calls & (calls - 1) == 0 or not _Loop.calls(self)) and _follows():
            inputs = self._agreed(inputs)
        outputs = _call(self, inputs)
        place.calls += 1
        return outputs

    def _agreed(self, inputs):
        values = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        difference = _first_difference(values) if values else None
        if difference is None:
            return inputs
        if not self._differs:
            self._differs = True
            names = dict(enumerate(self._names))
            warnings.warn(
                f"{self._name}: the ranks feed different values for input {difference} ({names.get(difference)}). {_ADVICE}",
                RuntimeWarning,
                stacklevel=3,
            )
        return ranks.broadcast(inputs)


class _Batches:
    """An iterator that returns rank 0's batches on every rank."""

    told = False

    def __init__(self, batches):
        self._batches = batches

    def __iter__(self):
        return self

    def __next__(self):
        if not _follows():
            batch = next(self._batches)
            return _evaluable(batch) if _Loop.all and _Loop.all[-1].evaluates else batch
        try:
            batch = [next(self._batches)]
        except StopIteration:
            batch = []
        if _first_difference([batch]) is not None:
            if not _Batches.told:
                _Batches.told = True
                warnings.warn(f"the ranks' generators return different batches. {_ADVICE}", RuntimeWarning, stacklevel=2)
            batch = ranks.broadcast(batch)
        if not batch:
            raise StopIteration
        return batch[0]


class _NoRows:
    """The inputs x of a batch without rows. `evaluate_generator` refuses such a batch, but it calls an x of length 0 one row."""

    def __init__(self, x):
        self.x = x

    def __len__(self):
        return 0


def _evaluable(batch):
    x, *others = batch if isinstance(batch, (tuple, list)) and len(batch) else [None]
    first = next(iter(x.values()), None) if isinstance(x, dict) else x[0] if isinstance(x, list) and x else x
    return (_NoRows(x), *others) if getattr(first, "shape", (1,))[:1] == (0,) else batch


class _Evaluated:
    """The model of `evaluate_generator`, whose batches may have no rows."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        return getattr(self._model, name)

    def test_on_batch(self, x, *arguments, **keywords):
        return self._model.test_on_batch(x.x if isinstance(x, _NoRows) else x, *arguments, **keywords)


# The generator of a queue's thread that shuffles the batches, the same on all ranks.
_shuffler = threading.local()


class _Random:
    """The module random for Keras's queues."""

    def __getattr__(self, name):
        return getattr(random, name)

    def shuffle(self, values):
        generator = getattr(_shuffler, "generator", None)
        if generator is None:
            return random.shuffle(values)
        random.shuffle(list(values))  # later numbers are those of one process
        generator.shuffle(values)


def _enqueuer(kind):
    """Subclass of Keras's queue of batches `kind` for several ranks."""

    class Enqueuer(kind):
        _pool = _generator = None

        @property
        def executor_fn(self):
            return self._make_pool

        @executor_fn.setter
        def executor_fn(self, make):
            def make_pool(sequences):
                self._pool = make(sequences)
                return self._pool

            self._make_pool = make and make_pool

        def start(self, *arguments, **keywords):
            if ranks.is_rank() and _core.local_feeds() and getattr(self, "shuffle", False):
                # Threads of this rank may draw from `random`, so its state is not the other ranks'.
                self._generator = random.Random()
                self._generator.setstate(ranks.broadcast(random.getstate()))
            super().start(*arguments, **keywords)

        def _run(self):
            _shuffler.generator = self._generator
            super()._run()

        def get(self):
            return _Batches(super().get())

        def stop(self, timeout=None):
            try:
                super().stop(timeout)
            finally:
                # Keras's threads would finish the queued batches, and draw random numbers meanwhile.
                if self._pool is not None and not self.use_multiprocessing:
                    self._pool.terminate()
                    end = time.monotonic() + _SECONDS_FOR_A_BATCH
                    for thread in self._pool._pool:
                        thread.join(max(0, end - time.monotonic()))

    return Enqueuer


class _Loop:
    """Context of one of Keras's loops. An outermost loop begins with rank 0's random state if it draws random numbers, and ends with it
    if threads make the batches."""

    all = []  # the loops that run, the innermost last

    def __init__(self, model, source, threads, draws, evaluates):
        self._model, self._source, self._threads, self._draws, self.evaluates = model, source, threads, draws, evaluates

    @classmethod
    def calls(cls, function):
        """Whether the innermost loop calls this function, not a callback."""
        if not cls.all:
            return False
        loop = cls.all[-1]  # a loop over arrays has its function as `source`
        own = vars(loop._model)
        return function is loop._source or function is own.get("train_function") or function is own.get("test_function")

    def __enter__(self):
        if not _Loop.all and self._draws and _follows():
            ranks.align_random_states()
        _Loop.all.append(self)

    def __exit__(self, kind, error, trace):
        _Loop.all.pop()
        if not _Loop.all and self._threads and error is None and _follows():
            ranks.align_random_states()


def _in_loop(function, threads=True, draws=True, evaluates=False):
    @functools.wraps(function)
    def loop(model, source, *arguments, **keywords):
        from keras.engine.training_utils import is_sequence

        # Keras indexes a Sequence, even one that is also an iterator: iter_sequence_infinite, replaced below.
        in_turn = keywords.get("workers") == 0 and hasattr(source, "__next__") and not is_sequence(source)
        if in_turn and not isinstance(source, _Batches):
            source = _Batches(source)
        with _Loop(model, source, threads, draws, evaluates):
            return function(_Evaluated(model) if evaluates else model, source, *arguments, **keywords)

    return loop


def _generators(module):
    module.OrderedEnqueuer = _enqueuer(module.OrderedEnqueuer)
    module.GeneratorEnqueuer = _enqueuer(module.GeneratorEnqueuer)
    in_turn = module.iter_sequence_infinite
    module.iter_sequence_infinite = lambda sequence: _Batches(in_turn(sequence))
    for name in ("fit_generator", "evaluate_generator", "predict_generator"):
        setattr(module, name, _in_loop(getattr(module, name), evaluates=name == "evaluate_generator"))


def _queues(module):
    module.random = _Random()


def _aligned_epochs(fit_loop):
    """Each epoch's shuffle draws from rank 0's random state, also if a callback has drawn on some ranks only."""
    from keras.callbacks import LambdaCallback

    @functools.wraps(fit_loop)
    def loop(*arguments, callbacks=None, **keywords):
        last = LambdaCallback(on_epoch_begin=lambda epoch, logs: epoch and _follows() and ranks.align_random_states())
        return fit_loop(*arguments, callbacks=[*(callbacks or ()), last], **keywords)

    return loop


def _arrays(module):
    module.fit_loop = _in_loop(_aligned_epochs(module.fit_loop), threads=False)
    for name in ("test_loop", "predict_loop"):
        setattr(module, name, _in_loop(getattr(module, name), threads=False, draws=False))


def follow_rank_0():
    """Makes Keras's generators return rank 0's batches from now on."""
    after_import("keras.engine.training_generator", _generators)
    after_import("keras.utils.data_utils", _queues)
    after_import("keras.engine.training_arrays", _arrays)
