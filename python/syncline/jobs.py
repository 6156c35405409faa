"""Keras trainings that may be interrupted: checkpoints in a folder, signals, a status file.

    from syncline.jobs import Checkpoints, load_latest

    model, epoch = load_latest("run") or (build(), 0)
    model.fit(x, y, epochs=12, initial_epoch=epoch, callbacks=[Checkpoints("run")])

SIGUSR1, SIGUSR2 or SIGTERM to any rank ends the training on all ranks after the same batch, with a checkpoint and exit code 75.
Started again, the training resumes after that batch. Batch scripts read `status.json` in the folder (docs/jobs.md).
"""

import contextlib
import errno
import functools
import os
import signal
import sys
import threading

import h5py
import numpy as np
from keras import backend as K
from keras.callbacks import Callback
from keras.engine import training_arrays, training_generator
from keras.engine.training_utils import is_sequence

from syncline.checkpoint import training_state
from syncline.distribution import ending, ranks
from syncline._core import DisagreementError, StallError, change_of_setting, setting
from syncline.checkpoint.files import NAME, epochs, make_newest, newest_first, older_than_latest, point_at
from syncline.keras_support.sequence_epochs import FollowedSequence
from syncline.checkpoint.latest import load_latest, loaded
from syncline.checkpoint.status_file import read_setting, read_status, write_status
from syncline.checkpoint.training_state import TrainingState
from syncline.checkpoint.whole_files import FolderLock, alone_in, make_folder, write_atomically

__all__ = ["EXIT_SAVED", "Checkpoints", "load_latest"]

EXIT_SAVED = 75

_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
_ENDED = ("saved", "finished", "failed")  # states of the status
_COUNTS = ("epoch", "step", "global_step")  # fields of status.json

_training = []  # the Checkpoints of running fits


class Checkpoints(Callback):
    """Saves the training after each epoch as `epoch-0003.h5`, within an epoch as `epoch-0003-batch-000057.h5`: model files of Keras with
    the state of the training. Points the link `latest` at the newest, and keeps the last `keep`. After a signal it saves a checkpoint and
    ends the training.

    Rank 0 writes; checkpoints are atomic files. A failed save prints one line on standard error and training continues; if the last
    save fails, fit raises OSError. While fit runs, no other job may use the folder. Put Checkpoints behind the other callbacks. Signals
    are handled while fit runs, and only if it runs in the main thread.

    Args:
        folder: created if it is missing.
        keep: number of checkpoints that remain in the folder.
        save_every: number of batches of an epoch between saves, beside the save after the epoch; 0: none.
    Raises:
        ValueError: if keep is below 1, or save_every is negative. fit raises OSError on every rank if rank 0 cannot create the folder or if
            another job uses it.
    """

    def __init__(self, folder: str | os.PathLike, keep: int = 3, save_every: int = 0):
        super().__init__()
        if keep < 1:
            raise ValueError(f"Checkpoints: keep is {keep}; give at least 1")
        if save_every < 0:
            raise ValueError(f"Checkpoints: save_every is {save_every}; give a number of batches, or 0")
        self._save_every = save_every
        self._folder, self._keep = os.path.abspath(folder), keep  # the program may change its working directory
        self._asked, self._before, self._thread, self._begun = 0, {}, None, False
        self._epoch = self._batch = 0
        self._failure, self._kept = None, set()
        self._newest = None  # the name of the newest checkpoint before fit; on rank 0
        self._saved = None  # where training resumes from the newest checkpoint: values of _COUNTS
        self._setting = None  # that of the newest checkpoint: lines
        self._lock = FolderLock(self._folder)
        self._state = None  # a TrainingState while fit runs

    def on_train_begin(self, logs=None):
        self._failure, self._thread, self._begun = None, threading.get_ident(), False
        _raise_alike(self._take_folder() if ranks.rank() == 0 else None)
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
        begun = os.path.lexists(os.path.join(self._folder, "latest"))
        self._setting = read_setting(self._folder) if begun else None
        self._saved = self._counts() if begun else dict.fromkeys(_COUNTS, 0)
        _training.append(self)
        self._tell("running", keeps=())  # no rank has begun, and so failed, before the broadcast
        self._saved = ranks.broadcast(self._saved)
        if self._state is None:  # a loop of the program calls the callbacks
            self._state = TrainingState(self.model, None, [], 0, None)
        for text in self._state.begin(getattr(self, "params", None)):
            self._warn(text)
        self._warn(change_of_setting("\n".join(self._setting or []), setting()))

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch, self._batch = epoch, 0 if self._begun else self._state.batch
        self._begin(epoch)
        self._state.begin_epoch(getattr(self, "params", None))
        self._tell("running")

    def on_batch_end(self, batch, logs=None):
        self._batch = batch + 1
        self._state.end_batch(batch, logs)
        asked = self._asked
        if ranks.size() > 1:
            asked = int(ranks.all_reduce(asked, "max"))
        if asked:
            self._stop(signal.Signals(asked).name)
        if self._save_every and self._batch % self._save_every == 0:
            self._save()
            self._tell("running")

    def on_epoch_end(self, epoch, logs=None):
        self._epoch, self._batch = epoch + 1, 0
        self._save(logs)
        self._tell("running")

    def on_train_end(self, logs=None):
        self._begin(None)
        if ranks.broadcast(self._failure) is not None:
            self._save()  # the disk may have room again
        failure = ranks.broadcast(self._failure)
        if failure is not None:
            raise OSError(f"Checkpoints: the last checkpoint is not saved: {failure}")
        self._end("finished", 0)

    def _take_folder(self):
        """Creates and locks the folder. Returns the error text if rank 0 cannot use the folder, else None."""
        try:
            make_folder(self._folder)
            self._lock.acquire()
            for name in os.listdir(self._folder):
                if name.endswith(".tmp") and NAME.fullmatch(name[: -len(".tmp")]):
                    self._remove(os.path.join(self._folder, name))  # left by a job that was killed
            newest = newest_first(self._folder)
        except OSError as error:
            self._lock.release()
            return f"Checkpoints: cannot use '{self._folder}': {error}. Give each job a folder of its own that rank 0 can write to"
        self._newest = os.path.basename(newest[0]) if newest else None
        self._epoch, self._batch = epochs(newest[0]) if newest else 0, 0
        return None

    def _begin(self, epoch):
        """Called at the first epoch, or at the end if there is none. Raises OSError on every rank if the ranks begin at different places."""
        if self._begun:
            return
        self._begun, (name, _) = True, loaded.get(self.model, (None, None))
        self._state.begin_epochs()
        place = f"{'at its end' if epoch is None else f'at epoch {epoch}'} from {name or 'no checkpoint'}"
        places = ranks.all_gather(np.frombuffer(f"{place}\n".encode(), np.uint8)).tobytes().decode().splitlines()
        other = next((rank for rank, each in enumerate(places) if each != places[0]), None)
        if other is not None:
            raise OSError(
                f"Checkpoints: the ranks begin at different places: rank 0 {places[0]}, rank {other} {places[other]}. Give "
                "every rank the model and the initial_epoch that load_latest has returned"
            )
        if self._newest and not epoch and not name and self._counts()["global_step"] == 0:
            self._warn(
                "this training begins anew, and its checkpoints replace those of an earlier training (the newest is "
                f"{self._newest}); resume that one, or give another folder, to keep them"
            )
        if self._state.stopped:
            self._warn(f"EarlyStopping had ended this training ({name}); to train on, load that file with keras.models.load_model")

    def _warn(self, text):
        if text and ranks.rank() == 0:
            print(f"syncline: '{self._folder}': {text}", file=sys.stderr)

    def _ask(self, number, frame):
        self._asked = self._asked or number

    def _stop(self, reason):
        saved = self._save()
        if ranks.size() > 1:
            saved = bool(ranks.all_reduce(int(saved), "min"))  # no rank leaves before rank 0 has written
        exit_code = EXIT_SAVED if saved else 1
        before, self._before = self._before, dict.fromkeys(self._before, signal.SIG_IGN)
        self._end("saved" if saved else "failed", exit_code, reason)
        raise _Leaving(exit_code, before)

    def _fail(self, error):
        """Writes the status after `error` ended fit."""
        exit_code = ending.exit_code(error)
        state = {0: "finished", EXIT_SAVED: "saved"}.get(exit_code, "failed")
        if isinstance(error, StallError):  # another rank has ended; this rank has no error of its own
            exit_code, state = None, "saved"  # a restart can succeed
        # The status of the rank that caused the error stays.
        keeps = _ENDED if isinstance(error, (StallError, DisagreementError)) else ()
        self._end(state, exit_code, f"{type(error).__name__}: {error}".partition("\n")[0], ranks.rank(), keeps)

    def _end(self, state, exit_code, reason="", teller=0, keeps=()):
        """Called once per training, however it ends."""
        _training.remove(self)
        self._state = None
        _set_handlers(self._before)
        self._before = {}
        try:
            self._tell(state, exit_code, reason, teller, keeps)
        finally:
            self._lock.release()

    def _save(self, logs=None):
        """Returns whether the checkpoint was saved; on ranks other than 0, whether all ranks had memory for it. logs: see values()."""
        try:
            state = self._state.values(self._epoch, self._batch, logs)
            with ranks.whole_values([*self.model.weights, *self.model.optimizer.weights]):
                return self._save_whole(state)
        except MemoryError as error:  # on every rank
            return self._cannot_save(self._folder, error)

    def _save_whole(self, state):
        if ranks.rank() != 0:
            self._saved, self._setting = self._counts(), setting().splitlines()
            return True
        name = f"epoch-{self._epoch:04d}" + (f"-batch-{self._batch:06d}" if self._batch else "") + ".h5"
        path = os.path.join(self._folder, name)
        try:
            self._with_room(path, lambda: write_atomically(path, lambda file: self._write(file, state)))
            self._with_room(path, lambda: point_at(self._folder, name))
        except (OSError, MemoryError) as error:
            return self._cannot_save(path, error)
        self._failure = None
        self._saved, self._setting = self._counts(), setting().splitlines()
        self._remove_surplus()
        return True

    def _cannot_save(self, path, error):
        self._failure = f"'{path}': {error or type(error).__name__}"
        print(f"syncline: cannot save {self._failure}; training goes on", file=sys.stderr)
        return False

    def _write(self, file, state):
        # The HDF5 file is made in memory, and its bytes are written to our file: HDF5 cannot recover from a failed write.
        with h5py.File("checkpoint", "w", driver="core", backing_store=False) as made:
            self.model.save(made)
            training_state.write(made, state)
            made.flush()
            file.write(made.id.get_file_image())
        file.flush()
        make_newest(file, self._folder)

    def _with_room(self, path, write):
        """Calls write(). While the disk has no room for bytes or names, removes the oldest checkpoint, but none newer than `latest`."""
        while True:
            try:
                return write()
            except OSError as error:
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                removed = full and next(filter(self._remove, older_than_latest(self._folder)), None)
                if not removed:
                    raise
                print(f"syncline: the disk is full: removed '{removed}' to make room for '{path}'", file=sys.stderr)

    def _remove_surplus(self):
        try:
            surplus = newest_first(self._folder)[self._keep :]
        except OSError as error:
            print(f"syncline: cannot list '{self._folder}': {error}", file=sys.stderr)
            return
        for path in surplus:
            self._remove(path)

    def _remove(self, path):
        """Returns whether the file was removed. Prints only the first failure for a path."""
        try:
            os.remove(path)
            return True
        except OSError as error:
            if path not in self._kept:
                print(f"syncline: cannot remove '{path}': {error}", file=sys.stderr)
            self._kept.add(path)
            return False

    def _counts(self):
        return dict(zip(_COUNTS, (self._epoch, self._batch, int(K.get_value(self.model.optimizer.iterations)))))

    def _tell(self, state, exit_code=None, reason="", teller=0, keeps=("failed",)):
        """Writes the status if this rank is the teller. A state in `keeps`, with its code and reason, stays: another rank has told it."""
        if ranks.rank() != teller:
            return
        with alone_in(self._folder):
            told = read_status(self._folder) if keeps else {}
            if told.get("state") in keeps:
                state, exit_code, reason = told["state"], told.get("exit_code"), told.get("reason", "")
            counts = self._saved if state == "saved" else self._counts()
            others = {"ranks": ranks.size(), "reason": reason, "setting": self._setting}
            write_status(self._folder, teller, {"state": state, "exit_code": exit_code, **counts, **others})


class _Leaving(SystemExit):
    """Ends the program. Meanwhile signals are ignored, because another one would change the exit code. If the program catches this
    exception and continues, its signal handlers are restored when the exception object is deleted."""

    def __init__(self, code, handlers):
        super().__init__(code)
        self._handlers = handlers

    def __del__(self):
        # An uncaught exception is deleted without a calling frame, when all of the program's code has ended.
        if sys._getframe().f_back is not None:
            with contextlib.suppress(ValueError):  # not the main thread
                _set_handlers(self._handlers)


def _set_handlers(handlers):
    for number, handler in handlers.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _raise_alike(problem):
    """Raises rank 0's problem on every rank."""
    problem = ranks.broadcast(problem)
    if problem is not None:
        raise OSError(problem)


def _begin_state(model, source, keywords):
    """Returns the TrainingState of the fit with these arguments; None if it has no Checkpoints. A fit that resumes a training that
    EarlyStopping ended has no epochs."""
    callbacks, epoch = keywords.get("callbacks") or [], keywords.get("initial_epoch", 0)
    own = [each for each in callbacks if isinstance(each, Checkpoints)]
    name, resumed = loaded.get(model, (None, None))
    if resumed is not None and epoch < keywords["epochs"]:
        loaded[model] = name, None  # another fit resumes nothing
    if not own:
        return None
    model._make_train_function()
    sequence = None
    if is_sequence(source):
        sequence = FollowedSequence(source, keywords.get("workers") == 0, keywords.get("validation_data") is source)
    state = TrainingState(model, sequence, [each for each in callbacks if each not in own], epoch, resumed)
    if state.stopped:
        keywords["epochs"] = epoch
    for each in own:
        each._state = state
    return state


def _watched(train):
    """Wraps a training loop: its Checkpoints resume, and write the status if it raises. Keras does not report exceptions to callbacks."""

    @functools.wraps(train)
    def function(model, source, *arguments, **keywords):
        before, state = list(_training), _begin_state(model, source, keywords)
        if state is not None and source is model.train_function:
            source = state.step(source)
        try:
            with training_state.running(model, state):
                return train(model, source, *arguments, **keywords)
        except BaseException as error:
            for checkpoints in [each for each in _training if each not in before and each._thread == threading.get_ident()]:
                with contextlib.suppress(Exception):  # report the first error
                    checkpoints._fail(error)
            raise

    return function


training_arrays.fit_loop = _watched(training_arrays.fit_loop)
training_generator.fit_generator = _watched(training_generator.fit_generator)
