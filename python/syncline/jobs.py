"""Keras trainings that may be interrupted: checkpoints in a folder, signals, a status file.

    from syncline.jobs import Checkpoints, load_latest

    model, epoch = load_latest("run") or (build(), 0)
    model.fit(x, y, epochs=12, initial_epoch=epoch, callbacks=[Checkpoints("run")])

SIGUSR1, SIGUSR2 or SIGTERM to any rank ends the training on all ranks after the same batch, with a checkpoint and exit code 75:
start it again and it goes on. `status.json` in the folder tells a batch script (docs/jobs.md).
"""

import datetime
import json
import os
import re
import signal
import sys

from keras import backend as K
from keras.callbacks import Callback
from keras.models import load_model

from syncline import ranks

EXIT_SAVED = 75

_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
_NAME = re.compile(r"epoch-(\d{4,})(?:-batch-\d{6,})?\.h5")  # finished epochs, finished batches of the next one


def load_latest(folder, custom_objects=None):
    """(model, epochs that it has been trained for) of the newest whole checkpoint, or None if there is none.

    A checkpoint from the middle of an epoch goes on at that epoch's beginning, with its later weights: the order of Keras's
    batches cannot be entered in the middle. Files that cannot be read are passed over, with a line on standard error.
    """
    for path in _newest_first(folder):
        try:
            model = load_model(path, custom_objects=custom_objects)
        except (OSError, KeyError, ValueError) as error:
            print(f"checkpoint '{path}' cannot be read: {error}", file=sys.stderr)
            continue
        return model, _epochs(path)
    return None


def _epochs(path):
    return int(_NAME.fullmatch(os.path.basename(path))[1])


def _newest_first(folder):
    """What `latest` points at, then the others."""
    if not os.path.isdir(folder):
        return []
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if _NAME.fullmatch(name)]
    paths.sort(key=lambda path: (os.stat(path).st_mtime_ns, path), reverse=True)
    latest = os.path.join(folder, os.path.basename(os.path.realpath(os.path.join(folder, "latest"))))
    return sorted(paths, key=lambda path: path != latest)


class Checkpoints(Callback):
    """Saves the model after each epoch as `epoch-0003.h5`, points the link `latest` at it, keeps the last few, and ends the
    training with a checkpoint when a signal asks for it.

    Rank 0 writes; a file is whole before it gets its name. A save that fails is one line on standard error, and training goes
    on. Put it behind the other callbacks. Signals are taken while fit runs, and only by the main thread.
    """

    def __init__(self, folder, keep=3):
        super().__init__()
        if keep < 1:
            raise ValueError(f"Checkpoints: keep is {keep}; keep at least the last checkpoint")
        self._folder, self._keep = os.fspath(folder), keep
        self._asked, self._before = 0, {}
        self._epoch = self._batch = 0

    def on_train_begin(self, logs=None):
        os.makedirs(self._folder, exist_ok=True)
        newest = _newest_first(self._folder)
        self._epoch, self._batch = _epochs(newest[0]) if newest else 0, 0
        self._before = {number: signal.signal(number, self._ask) for number in _SIGNALS}

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch, self._batch = epoch, 0
        self._tell("running")

    def on_batch_end(self, batch, logs=None):
        self._batch = batch + 1
        asked = self._asked
        if ranks.size() > 1:
            asked = int(ranks.all_reduce(asked, "max"))
        if asked:
            self._stop(signal.Signals(asked).name)

    def on_epoch_end(self, epoch, logs=None):
        self._epoch, self._batch = epoch + 1, 0
        self._save()
        self._tell("running")

    def on_train_end(self, logs=None):
        self._tell("finished", 0)
        self._give_back()

    def _ask(self, number, frame):
        self._asked = self._asked or number

    def _give_back(self):
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _stop(self, reason):
        saved = self._save()
        self._tell("saved" if saved else "failed", EXIT_SAVED if saved else 1, reason)
        if ranks.size() > 1:
            saved = bool(ranks.all_reduce(int(saved), "min"))  # nobody leaves before rank 0 has written
        self._give_back()
        sys.exit(EXIT_SAVED if saved else 1)

    def _save(self):
        """Whether it could be done; True on other ranks than the first."""
        if ranks.rank() != 0:
            return True
        name = f"epoch-{self._epoch:04d}" + (f"-batch-{self._batch:06d}" if self._batch else "") + ".h5"
        path = os.path.join(self._folder, name)
        try:
            self.model.save(path + ".tmp")
            _put_in_place(path + ".tmp", path)
            link = os.path.join(self._folder, "latest")
            if os.path.lexists(link + ".tmp"):
                os.remove(link + ".tmp")
            os.symlink(name, link + ".tmp")
            os.replace(link + ".tmp", link)
            for surplus in _newest_first(self._folder)[self._keep :]:
                os.remove(surplus)
        except OSError as error:
            print(f"syncline: cannot save '{path}': {error}; training goes on", file=sys.stderr)
            return False
        return True

    def _tell(self, state, exit_code=None, reason=""):
        if ranks.rank() != 0:
            return
        latest = os.path.join(self._folder, "latest")
        status = {
            "state": state,
            "exit_code": exit_code,
            "epoch": self._epoch,
            "step": self._batch,
            "global_step": int(K.get_value(self.model.optimizer.iterations)),
            "checkpoint": os.readlink(latest) if os.path.islink(latest) else None,
            "ranks": ranks.size(),
            "reason": reason,
            "time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        path = os.path.join(self._folder, "status.json")
        try:
            with open(path + ".tmp", "w", encoding="utf-8") as file:
                json.dump(status, file, indent=2)
                file.write("\n")
            _put_in_place(path + ".tmp", path)
        except OSError as error:
            print(f"syncline: cannot write '{path}': {error}", file=sys.stderr)


def _put_in_place(temporary, path):
    """Gives a file its name once it is on the disk."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
