"""Keras's loops over a Sequence.

One call of on_epoch_end for each epoch whose batches a loop with workers has taken. At the end of a loop Keras's thread calls it only if
it notices the end of the epoch, every 0.1 seconds, before the loop stops it. So chance decides whether a Sequence that shuffles has
another order in the next loop.

The place of a loop in its Sequence, for a training that resumes there: the attributes of the Sequence and the random states when it was
last begun, and the number of batches taken since. A loop begins it again after its last batch, also within an epoch of `steps_per_epoch`.
"""

import copy
import random
import time

import numpy as np

from syncline.keras_support.import_hook import after_import
from syncline.plain_values import ChangedAttributes

_LARGEST_ATTRIBUTE = 100_000_000  # bytes; larger arrays are data
_SECONDS_TO_BEGIN = 2  # a thread notices within 0.1 seconds that all batches are taken

_followed = {}  # FollowedSequence by the id of its Sequence


def random_states():
    return random.getstate(), np.random.get_state()


def set_random_states(states):
    if states is not None:
        random.setstate(states[0])
        np.random.set_state(states[1])


class FollowedSequence:
    """Context of a loop over a Sequence whose place is wanted.

    Args:
        sequence: the Sequence.
        in_turn: whether the loop takes the batches itself. Otherwise a thread of Keras begins the Sequence and draws random numbers.
    """

    def __init__(self, sequence, in_turn):
        self._sequence, self.in_turn = sequence, in_turn
        self._changed = ChangedAttributes(sequence, largest=_LARGEST_ATTRIBUTE)
        self._resumed = None
        self._begun = None  # number of taken batches, attributes and random states when the thread last began
        self.taken = 0
        self.drops = 0  # batches at the beginning that the loop does not want

    def __enter__(self):
        _followed[id(self._sequence)] = self

    def __exit__(self, kind, error, trace):
        del _followed[id(self._sequence)]

    def resume_at(self, place):
        """Makes the loop begin at this place(), or at the beginning if it is None."""
        self._resumed, self.drops = place, 0 if place is None else place["taken"]

    def resume(self):
        """To be called before the Sequence is begun for the first time."""
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            vars(self._sequence).update(resumed["attributes"])
            set_random_states(resumed["random"])
            if not resumed["ended"]:
                self._sequence.on_epoch_end()

    def begin(self):
        """To be called by the thread that begins the Sequence."""
        self.resume()
        self._begun = self.taken, self._attributes(), random_states()

    def place(self, ended):
        """The place as plain values; None if the thread does not begin. ended: whether on_epoch_end was called after the last epoch. With
        a thread it was, because Keras calls it before the thread begins the Sequence again."""
        if self.in_turn:
            taken = self.taken % max(1, len(self._sequence))
            return {"attributes": self._attributes(), "random": None, "taken": taken, "ended": ended}
        limit = time.monotonic() + _SECONDS_TO_BEGIN
        while time.monotonic() < limit:
            begun = self._begun
            if begun is not None and self.taken - begun[0] < len(self._sequence):
                break
            time.sleep(0.01)
        if begun is None:
            return None
        at, attributes, states = begun
        return {"attributes": attributes, "random": states, "taken": self.taken - at, "ended": True}

    def _attributes(self):
        return copy.deepcopy(self._changed.of(self._sequence))  # a Sequence shuffles in place


def _in_thread(kind):
    class OrderedEnqueuer(kind):
        _taken = _end = 0  # numbers of batches: those that the loop has taken, and those until the end of the queued epoch

        def start(self, *arguments, **keywords):
            self._taken = self._end = 0
            self._follows = _followed.get(id(self.sequence))
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
        follows = _followed.get(id(sequence))
        for number, batch in enumerate(batches_of(sequence)):
            if follows is not None:
                follows.taken = number + 1
            if follows is None or number >= follows.drops:
                yield batch

    return iter_sequence_infinite


def _loops(module):
    module.OrderedEnqueuer = _in_thread(module.OrderedEnqueuer)
    module.iter_sequence_infinite = _in_turn(module.iter_sequence_infinite)


after_import("keras.engine.training_generator", _loops)
