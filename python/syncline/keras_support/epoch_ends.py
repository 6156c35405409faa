"""One call of on_epoch_end for each epoch whose batches a loop with workers has taken.

At the end of a loop Keras's thread calls a Sequence's on_epoch_end only if it notices the end of the epoch, every 0.1 seconds, before the
loop stops it. So chance decides whether a Sequence that shuffles has another order in the next loop.
"""

from syncline.keras_support.import_hook import after_import


def _count(kind):
    class OrderedEnqueuer(kind):
        _taken = _end = 0  # numbers of batches: those that the loop has taken, and those until the end of the queued epoch

        def start(self, *arguments, **keywords):
            self._taken = self._end = 0
            super().start(*arguments, **keywords)
            done = self.queue.task_done

            def task_done():  # called for each batch, also if it is None, which Keras skips
                self._taken += 1
                done()

            self.queue.task_done = task_done

        def _send_sequence(self):  # called at the start of each epoch
            super()._send_sequence()
            self._end += len(self.sequence)

        def stop(self, timeout=None):
            super().stop(timeout)
            if self._taken == self._end > 0:
                self._end = 0
                # Keras takes objects without it for Sequences too.
                getattr(self.sequence, "on_epoch_end", lambda: None)()

    return OrderedEnqueuer


def _use_counted(module):
    module.OrderedEnqueuer = _count(module.OrderedEnqueuer)


after_import("keras.engine.training_generator", _use_counted)
