"""Keras's loops over a Sequence.

One call of on_epoch_end for each epoch whose batches a loop with workers has taken. At the end of a loop Keras's thread calls it only if
it notices the end of the epoch, every 0.1 seconds, before the loop stops it. So chance decides whether a Sequence that shuffles has
another order in the next loop.

The place of a training loop in its Sequence, for a training that resumes there: the attributes of the Sequence and the number of batches
taken since the loop has last begun it; with a thread that takes batches ahead, the attributes and the random states of that time. A loop
begins the Sequence again after its last batch, also within an epoch of `steps_per_epoch`.
"""

import contextlib
import copy
import time

from syncline.keras_support.import_hook import after_import
from syncline.plain_values import ChangedAttributes, put
from syncline.random_states import random_states, set_random_states

_LARGEST_ATTRIBUTE = 100_000_000  # bytes; larger ones are data
_SECONDS_TO_BEGIN = 2  # a thread notices within 0.1 seconds that all batches are taken

_followed = {}  # FollowedSequence by the id of its Sequence


class FollowedSequence:
    """Context of a training loop over a Sequence whose place is wanted.

    Args:
        sequence: the Sequence.
        in_turn: whether the loop takes the batches itself. Otherwise a thread of Keras begins the Sequence and draws random numbers.
        also_validates: whether the loop has the Sequence as its validation data too.
    """

    def __init__(self, sequence, in_turn, also_validates):
        self._sequence, self.in_turn = sequence, in_turn
        self._changed = ChangedAttributes(sequence, largest=_LARGEST_ATTRIBUTE)
        self._resumed = None
        self._begun = None  # number of taken batches, attributes and random states when the thread last began
        self._others = int(also_validates and in_turn)  # loops over the Sequence before that of the training
        self._length = 0
        self.taken = 0  # with a thread: of all batches; otherwise since the Sequence was last begun
        self.drops = 0  # batches at the beginning that the loop does not want

    def __enter__(self):
        _followed[id(self._sequence)] = self

    def __exit__(self, kind, error, trace):
        _followed.pop(id(self._sequence), None)

    def resume(self, place):
        """To be called before the loop: it begins at this place()."""
        put(self._sequence, place["attributes"])
        if not place["ended"]:
            self._sequence.on_epoch_end()
        self._resumed, self.drops = place["random"], place["taken"]

    def is_mine(self):
        """Whether a new loop over the Sequence is that of the training, which is the only one that is followed."""
        self._others -= 1
        return self._others == -1

    def begin(self):
        """To be called by the thread that begins the Sequence."""
        set_random_states(self._resumed)
        self._resumed, self._length = None, len(self._sequence)
        self._begun = self.taken, self._attributes(), random_states()

    def batches_in_turn(self):
        self.taken = self.drops
        while True:
            while self.taken < len(self._sequence):
                batch = self._sequence[self.taken]
                self.taken += 1
                yield batch
            self.taken = 0

    def place(self, ended):
        """The place as plain values; None if the thread does not begin. ended: whether on_epoch_end was called after the last epoch. With
        a thread it was, because Keras calls it before the thread begins the Sequence again."""
        if self.in_turn:
            taken = 0 if self.taken >= len(self._sequence) else self.taken
            return {"attributes": self._attributes(), "random": None, "taken": taken, "ended": ended}
        limit = time.monotonic() + _SECONDS_TO_BEGIN
        while time.monotonic() < limit:
            begun = self._begun
            if begun is not None and self.taken - begun[0] < self._length:
                break
            time.sleep(0.01)
        if begun is None:
            return None
        at, attributes, states = begun
        return {"attributes": attributes, "random": states, "taken": self.taken - at, "ended": True}

    def _attributes(self):
        found = {}
        for name, value in self._changed.of(self._sequence).items():
            with contextlib.suppress(Exception):  # another thread changes it
                found[name] = copy.deepcopy(value)  # a Sequence shuffles in place
        return found


def _claimed(sequence):
    """The FollowedSequence of a new loop over this Sequence; None if it is not the training's."""
    follows = _followed.get(id(sequence))
    return follows if follows is not None and follows.is_mine() else None


def _in_thread(kind):
    class OrderedEnqueuer(kind):
        _taken = _end = 0  # numbers of batches: those that the loop has taken, and those until the end of the queued epoch

        def __init__(self, sequence, *arguments, **keywords):
            super().__init__(sequence, *arguments, **keywords)
            self._follows = _claimed(sequence) if "shuffle" in keywords else None  # only fit_generator says so, of the training's

        def start(self, *arguments, **keywords):
            self._taken = self._end = 0
            super().start(*arguments, **keywords)
            done = self.queue.task_done

            def task_done():  # called for each batch, also if it is None, which Keras skips
                self._taken += 1
                if self._follows is not None:
                    self._follows.taken = self._taken
                done()

            self.queue.task_done = task_done

        def get(self):
            batches = super().get()
            if self._follows is not None:
                for _ in range(self._follows.drops):
                    next(batches)
            return batches

        def _send_sequence(self):  # called at the start of each epoch
            if self._follows is not None:
                self._follows.begin()
            super()._send_sequence()
            self._end += len(self.sequence)

        def stop(self, timeout=None):
            super().stop(timeout)
            if self._taken == self._end > 0:
                self._end = 0
                # Keras takes objects without it for Sequences too.
                getattr(self.sequence, "on_epoch_end", lambda: None)()

    return OrderedEnqueuer


def _in_turn(batches_of):
    def iter_sequence_infinite(sequence):
        follows = _claimed(sequence)
        return batches_of(sequence) if follows is None else follows.batches_in_turn()

    return iter_sequence_infinite


def _loops(module):
    module.OrderedEnqueuer = _in_thread(module.OrderedEnqueuer)
    module.iter_sequence_infinite = _in_turn(module.iter_sequence_infinite)


after_import("keras.engine.training_generator", _loops)
