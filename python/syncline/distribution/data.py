"""For programs in which each rank loads only its own rows."""

import contextlib

import numpy as np

from syncline import _core
from syncline.distribution import ranks
from syncline.keras_support.import_hook import after_import


@contextlib.contextmanager
def local_feeds():
    """Context manager: within it each rank hands over its own rows only, and the global batch is the ranks' rows one after the other.

    Enter and leave it on all ranks alike, and call the same functions within. Of Keras:

    - `fit(x, y, batch_size=b)` with this rank's rows (see `shard`): a step is of size() * b rows. Every rank has to make the same
      number of steps, so hand over equal numbers of rows; what is given as `steps_per_epoch` is the same number everywhere.
      Loss, metrics and statistics are those of the global batch, on every rank, and so are an epoch's logs.
    - `fit_generator(s)`, `evaluate_generator(s)`: a batch of `s` is this rank's part of the global batch (see `ShardedSequence`). Ranks
      that have different numbers of batches agree on one before the epoch (see `EvenSteps`, `agree_steps`).
    - `validation_data`, `validation_split` and `evaluate` work alike. Batches are weighted by this rank's rows, which is exact where
      ranks have equal numbers of them.
    - `predict` gives the rows of all ranks for each batch, which Keras has no room for: predict under global feeds.
    - `train_on_batch`, `test_on_batch`, `K.function`: outputs are global; a rank may hand over fewer rows than others, or none.
    """
    before = _core.local_feeds()
    _core.set_local_feeds(True)
    try:
        yield
    finally:
        _core.set_local_feeds(before)


def shard(*values):
    """This rank's rows: of n rows n // size() in one piece, rank 0's first. The last n % size() rows are nobody's, so that all
    ranks have equal numbers of them.

    # Arguments
        values: arrays, or lists, tuples and dicts of such (what Keras takes as x and y), all of n rows; None stays None.
    # Returns
        The same for one value, else a tuple. Slices, so arrays are views.
    # Raises
        ValueError: if the numbers of rows differ, or there are fewer rows than ranks.
    """
    lengths = sorted({len(array) for array in _arrays(values)})
    if len(lengths) > 1:
        raise ValueError(f"shard: arrays of {lengths} rows; all must have the same number")
    each = lengths[0] // ranks.size() if lengths else 0
    if lengths and each == 0:
        raise ValueError(f"shard: {lengths[0]} rows for {ranks.size()} ranks; each needs at least one")
    own = _map(lambda array: array[ranks.rank() * each : (ranks.rank() + 1) * each], values)
    return own[0] if len(values) == 1 else own


def _arrays(values):
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (list, tuple)):
        return [array for value in values for array in _arrays(value)]
    return [] if values is None else [values]


def _map(function, values):
    if isinstance(values, dict):
        return {key: _map(function, value) for key, value in values.items()}
    if isinstance(values, (list, tuple)):
        return type(values)(_map(function, value) for value in values)
    return None if values is None else function(values)


class ShardedSequence:
    """A Sequence for fit_generator, evaluate_generator under `local_feeds`: each rank loads its rows of each global batch.

    Epoch for epoch the global batches are those that one process would make of `rows` rows, except that up to size() - 1 rows of the
    last one are left out, so that all ranks have equal parts. It needs no Keras to be made, and may be used by worker processes.

    # Arguments
        load: function of an array of row numbers, which returns (x, y) or (x, y, sample_weights) of these rows. Called in worker
            processes or threads if Keras is told so.
        rows: how many rows there are.
        batch_size: of the global batch, a multiple of size().
        shuffle: whether rows are put into a new order before each epoch; the same on all ranks.
        seed: of that order.
    # Raises
        ValueError: for a batch_size that is no positive multiple of size(), or fewer rows than ranks.
    """

    use_sequence_api = True

    def __init__(self, load, rows, batch_size, shuffle=False, seed=0):
        if batch_size < 1 or batch_size % ranks.size():
            raise ValueError(f"ShardedSequence: batch_size {batch_size}; give a positive multiple of {ranks.size()}, the number of ranks")
        if rows < ranks.size():
            raise ValueError(f"ShardedSequence: {rows} rows for {ranks.size()} ranks; each needs at least one")
        self._load, self._batch_size = load, int(batch_size)
        # Kept here: a worker process asks for batches too.
        self._rank, self._size = ranks.rank(), ranks.size()
        self._order = np.arange(rows - rows % self._size)
        self._generator = np.random.RandomState(seed) if shuffle else None
        self._all = np.arange(rows)
        self._shuffle()

    def _shuffle(self):
        if self._generator is not None:
            self._order = self._generator.permutation(self._all)[: len(self._order)]

    def __len__(self):
        return -(-len(self._order) // self._batch_size)

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"ShardedSequence: batch {index} of {len(self)}")
        batch = self._order[index * self._batch_size : (index + 1) * self._batch_size]
        each = len(batch) // self._size
        return self._load(batch[self._rank * each : (self._rank + 1) * each])

    def __iter__(self):
        return (self[index] for index in range(len(self)))

    def on_epoch_end(self):
        """Called by Keras."""
        self._shuffle()


class EvenSteps:
    """A Sequence for fit_generator under `local_feeds` with as many batches on each rank as on all others, made of ranks' own Sequences,
    which may have different numbers of them. A step's global batch is the ranks' batches one after the other.

    All ranks make it at the same time, and agree on the number then. Nothing is exchanged later, so that worker processes may use it.

    # Arguments
        sequence: with `len(sequence)` and `sequence[i]`, as (x, y) or (x, y, sample_weights) of arrays, or lists or dicts of arrays.
        how: "max": as many as the rank with the most has; the others take part in the last steps without rows, so that every row is
            used. "min": as many as the rank with the fewest has; the others' last batches are left out.
    # Raises
        ValueError: on every rank if one has no batch at all; for another `how`.
    """

    use_sequence_api = True

    def __init__(self, sequence, how="max"):
        self._sequence, self._own, self._without_rows = sequence, len(sequence), None
        fewest, self._steps = ranks.agree_steps(self._own), ranks.agree_steps(self._own, how)
        if fewest == 0:
            raise ValueError("EvenSteps: a rank has no batch; each needs at least one, to know what a batch without rows looks like")

    def __len__(self):
        return self._steps

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"EvenSteps: batch {index} of {len(self)}")
        if index < self._own:
            return self._sequence[index]
        if self._without_rows is None:
            x, *others = _map(lambda array: array[:0], tuple(self._sequence[0]))
            # Keras counts an empty array as one row, but not a list of such.
            self._without_rows = (x if isinstance(x, (list, dict)) else [x], *others)
        return self._without_rows

    def __iter__(self):
        return (self[index] for index in range(len(self)))

    def on_epoch_end(self):
        """Called by Keras."""
        if hasattr(self._sequence, "on_epoch_end"):
            self._sequence.on_epoch_end()


def _epoch_logs(module):
    if hasattr(module, "__path__"):
        return  # a package, which has the class from elsewhere
    # An epoch's logs are averages over the rows that this process has seen, and what is decided by them is decided by each rank:
    # under local feeds they are made equal.
    original = module.BaseLogger.on_epoch_end

    def on_epoch_end(self, epoch, logs=None):
        if not (ranks.is_rank() and _core.local_feeds()):
            return original(self, epoch, logs)
        own = self.seen, self.totals
        names = sorted(set(self.totals) - set(self.stateful_metrics))
        sums = ranks.all_reduce(np.array([self.seen] + [self.totals[name] for name in names], float))
        self.seen, self.totals = sums[0], {**self.totals, **dict(zip(names, sums[1:]))}
        original(self, epoch, logs)
        self.seen, self.totals = own
        if logs is not None:
            logs.update(ranks.broadcast(dict(logs)))

    module.BaseLogger.on_epoch_end = on_epoch_end


def equalize():
    """From now on the ranks' logs are equal under local feeds too."""
    after_import("keras.callbacks", _epoch_logs)  # Keras 2.2
    after_import("keras.callbacks.callbacks", _epoch_logs)
