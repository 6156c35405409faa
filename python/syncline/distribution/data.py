"""Feeds and data sets of programs in which each rank loads only its own rows."""

import contextlib

import numpy as np

from syncline import _core
from syncline.distribution import ranks
from syncline.keras_support.import_hook import after_import
from syncline.types import Any, Callable


@contextlib.contextmanager
def local_feeds():
    """Context manager: inside it each rank feeds only its own rows. The global batch is the concatenation of the ranks' rows.

    All ranks enter and leave it at the same place, and call the same functions inside. Rules for Keras's methods:

    - `fit(x, y, batch_size=b)` with this rank's rows (see `shard`): a step has size() * b rows. All ranks must make the same number of
      steps, so give equal numbers of rows, or the same `steps_per_epoch`, on all ranks. Loss, metrics, statistics and the logs of an
      epoch are those of the global batches, on every rank.
    - `fit_generator(s)`, `evaluate_generator(s)`: a batch of `s` is this rank's part of the global batch (see `ShardedSequence`). If
      ranks have different numbers of batches, they agree on one before the epoch (see `EvenSteps`, `agree_steps`).
    - `validation_data`, `validation_split` and `evaluate` follow the same rules. With arrays, the loss is the average over the rows of the
      global batches, equal on all ranks. For `fit_generator` give `validation_data` as a Sequence: Keras cuts arrays into batches of as
      many rows as this rank's last batch, which may differ between ranks.
    - `predict` returns the rows of all ranks for each batch, which do not fit Keras's result array: use it outside of `local_feeds`.
    - `train_on_batch`, `test_on_batch`, `K.function`: outputs are global; a rank may feed fewer rows than others, or none.
    - An input of a fixed number of rows (`batch_shape`, as for `stateful=True`) takes the whole batch, so a rank's own rows are refused.

    Inside, `random` and `numpy.random` may differ between ranks, because threads draw from them. At its end (without an exception) all
    ranks get rank 0's states, so a shuffle outside is the same on all ranks.
    """
    before = _core.local_feeds()
    _core.set_local_feeds(True)
    try:
        yield
    finally:
        _core.set_local_feeds(before)
    if ranks.is_rank() and not before:
        ranks.align_random_states()


def shard(*values: Any):
    """This rank's rows: n // size() consecutive rows of n, rank 0's first. The last n % size() rows are left out, so all ranks have
    equal numbers of rows.

    Args:
        values: arrays of n rows, or lists, tuples and dicts of such arrays (as x and y in Keras); None stays None.
    Returns:
        The rows of one value, or a tuple of the rows of several values. Arrays are sliced, so the results are views.
    Raises:
        ValueError: if the numbers of rows differ, or there are fewer rows than ranks; on several ranks with parts of the batch.
    """
    _refuse_parts("shard")
    lengths = sorted({len(array) for array in _arrays(values)})
    if len(lengths) > 1:
        raise ValueError(f"shard: the arrays have {lengths} rows; give arrays with equal numbers of rows")
    each = lengths[0] // ranks.size() if lengths else 0
    if lengths and each == 0:
        raise ValueError(f"shard: {lengths[0]} rows for {ranks.size()} ranks; give at least one row for each rank")
    own = _map(lambda array: array[ranks.rank() * each : (ranks.rank() + 1) * each], values)
    return own[0] if len(values) == 1 else own


def _refuse_parts(caller):
    # Their batches have other rows on another number of ranks.
    if ranks.parts() > 0 and ranks.size() > 1:
        raise ValueError(
            f"{caller}: with parts of the batch (SYNCLINE_PARTS) the batches must be those of one process; use ShardedSequence, or feed "
            "the whole batch on every rank"
        )


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
    """A Sequence for fit_generator and evaluate_generator under `local_feeds`: each rank loads its rows of each global batch.

    In each epoch the global batches are those of one process with `rows` rows, except that up to size() - 1 rows of the last batch are
    left out, so all ranks have equal parts. With parts of the batch (`set_parts`) each rank has the rows of its parts, and a last batch of
    fewer rows than parts is left out. The class does not import Keras, and worker processes may use it.

    Args:
        load: function of an array of row numbers, which returns (x, y) or (x, y, sample_weights) of these rows. With `workers` or
            `use_multiprocessing` Keras calls it in threads or worker processes.
        rows: number of rows of the data set.
        batch_size: number of rows of the global batch; a multiple of size(), with parts at least their number.
        shuffle: whether rows get a new order before each epoch, the same on all ranks.
        seed: seed of this order.
    Raises:
        ValueError: batch_size is another number, or there are fewer rows than ranks or parts.
    """

    use_sequence_api = True

    def __init__(self, load: Callable, rows: int, batch_size: int, shuffle: bool = False, seed: int = 0):
        size, parts = ranks.size(), ranks.parts()
        if batch_size < max(parts, 1) or (parts == 0 and batch_size % size):
            wanted = f"at least {parts}, the number of parts" if parts else f"a positive multiple of {size}, the number of ranks"
            raise ValueError(f"ShardedSequence: batch_size is {batch_size}; give {wanted}")
        if rows < max(parts, size):
            raise ValueError(f"ShardedSequence: {rows} rows for {parts or size} {'parts' if parts else 'ranks'}; give at least one row for each")
        self._load, self._batch_size = load, int(batch_size)
        # Kept here, because worker processes, which are not ranks, make batches too.
        first = _core.first_parts(size, parts)
        self._first, self._end, self._parts = first[ranks.rank()], first[ranks.rank() + 1], first[size]
        last = rows % batch_size
        left_out = (last if last < parts else 0) if parts else rows % size
        self._order = np.arange(rows - left_out)
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
            raise IndexError(f"ShardedSequence: there is no batch {index}; the number of batches is {len(self)}")
        batch = self._order[index * self._batch_size : (index + 1) * self._batch_size]
        own = batch[len(batch) * self._first // self._parts : len(batch) * self._end // self._parts]
        return self._load(own)

    def __iter__(self):
        return (self[index] for index in range(len(self)))

    def on_epoch_end(self):
        """Called by Keras."""
        self._shuffle()


class EvenSteps:
    """A Sequence for fit_generator under `local_feeds` with the same number of batches on all ranks. It wraps the rank's own Sequence; the
    numbers of batches of these may differ. A step's global batch is the concatenation of the ranks' batches.

    The constructor is a collective of all ranks, which agree on the number. Later calls do not communicate, so worker processes may use it.

    Args:
        sequence: object with `len(sequence)` and `sequence[i]`: (x, y) or (x, y, sample_weights) of arrays, or lists or dicts of arrays.
        how: "max": the largest number of batches of any rank; ranks with fewer feed empty arrays in the last steps, so every row is
            used. "min": the smallest number of batches of any rank; the last batches of the others are left out.
    Raises:
        ValueError: on every rank, if one has no batches; `how` is neither "max" nor "min"; on several ranks with parts of the batch.
    """

    use_sequence_api = True

    def __init__(self, sequence: Any, how: str = "max"):
        _refuse_parts("EvenSteps")
        self._sequence, self._own, self._without_rows = sequence, len(sequence), None
        fewest, self._steps = ranks.agree_steps(self._own), ranks.agree_steps(self._own, how)
        if fewest == 0:
            raise ValueError("EvenSteps: a rank has no batches; give each rank at least one, which defines the shapes of empty batches")

    def __len__(self):
        return self._steps

    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(f"EvenSteps: there is no batch {index}; the number of batches is {len(self)}")
        if index < self._own:
            return self._sequence[index]
        if self._without_rows is None:
            x, *others = _map(lambda array: array[:0], tuple(self._sequence[0]))
            # `fit_generator` counts an empty array as one row, but a list of empty arrays as none.
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
        return  # a package, which imports the class from its module
    # An epoch's logs are averages over this process's rows. Callbacks on each rank decide by them, so under local feeds the ranks' logs are
    # made equal: those of one process, which has all rows of each batch.
    logger = module.BaseLogger
    original_begin, original, original_end = logger.on_epoch_begin, logger.on_batch_end, logger.on_epoch_end

    def on_epoch_begin(self, epoch, logs=None):
        self.__dict__.pop("_batches", None)
        original_begin(self, epoch, logs)

    def on_batch_end(self, batch, logs=None):
        if ranks.is_rank() and _core.local_feeds():
            self.__dict__.setdefault("_batches", []).append(dict(logs or {}))
        original(self, batch, logs)

    def on_epoch_end(self, epoch, logs=None):
        batches = self.__dict__.pop("_batches", None)
        if batches is None:
            return original_end(self, epoch, logs)
        own = self.seen, self.totals
        rows = ranks.all_reduce(np.array([batch.get("size", 0) for batch in batches], np.int64))
        original_begin(self, epoch)
        for index, (batch, size) in enumerate(zip(batches, rows.tolist())):
            original(self, index, {**batch, "size": size})
        original_end(self, epoch, logs)
        self.seen, self.totals = own
        if logs is not None:
            logs.update(ranks.broadcast(dict(logs)))

    logger.on_epoch_begin, logger.on_batch_end = on_epoch_begin, on_batch_end
    module.BaseLogger.on_epoch_end = on_epoch_end


def _test_loss(module):
    # `evaluate` averages the losses of the batches, weighted by this process's rows. Metrics are those behind the last batch.
    original = module.test_loop

    def test_loop(model, f, ins, batch_size=None, verbose=0, steps=None, **options):
        if steps is not None or not (ranks.is_rank() and _core.local_feeds()):
            return original(model, f, ins, batch_size=batch_size, verbose=verbose, steps=steps, **options)
        losses, own = [], []

        def call(batch):
            outputs = f(batch)
            losses.append(float(outputs[0] if isinstance(outputs, list) else outputs))
            own.append(batch[0].shape[0])
            return outputs

        result = original(model, call, ins, batch_size=batch_size, verbose=verbose, **options)
        rows = ranks.all_reduce(np.array(own, np.int64)).tolist()
        loss = 0.0
        for batch_loss, weight in zip(losses, rows):  # in the order of Keras's sum
            loss += batch_loss * weight
        loss /= sum(rows)
        return [loss, *result[1:]] if isinstance(result, list) else loss

    module.test_loop = test_loop


def share_averages():
    """Makes the ranks' logs of epochs and losses of `evaluate` equal under local feeds from now on."""
    after_import("keras.callbacks", _epoch_logs)  # Keras 2.2
    after_import("keras.callbacks.callbacks", _epoch_logs)
    after_import("keras.engine.training_arrays", _test_loss)
