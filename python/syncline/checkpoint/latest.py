"""The newest checkpoint in the folder of a Keras training, on all ranks."""

import io
import os
import sys
import weakref

import numpy as np
from keras.models import load_model

from syncline.checkpoint import training_state
from syncline.checkpoint.files import epochs, latest, newest_first
from syncline.checkpoint.confined import check_hdf5
from syncline.distribution import ranks

loaded = weakref.WeakKeyDictionary()  # by model: the name of the checkpoint that it was loaded from, and the values of its TrainingState


def load_latest(folder, custom_objects=None):
    """Returns (model, number of finished epochs) of the newest readable checkpoint, or None if the folder has no checkpoint. A collective
    of all ranks: rank 0 reads the files and sends them to the others, which need not see the folder.

    A fit of this model with `initial_epoch` of this number and `Checkpoints` resumes the saved training, with the bits of an unbroken one
    (docs/jobs.md), also within an epoch: it skips the finished batches. Unreadable files are skipped, with a line each on standard error.

    Raises:
        OSError: if there are checkpoints and all are unreadable: a training from the beginning would remove them.
    """
    files = _readable(folder) if ranks.rank() == 0 else iter(())
    while True:
        name, content = ranks.broadcast(next(files, (None, None)))
        if name is None:
            break
        model = _load(os.path.join(folder, name), content, custom_objects)
        if model is not None:
            return model, epochs(name)
    paths = newest_first(folder) if ranks.rank() == 0 else []
    names = ranks.broadcast(", ".join(os.path.basename(path) for path in paths if os.path.isfile(path)))
    if names:
        raise OSError(
            f"load_latest: '{os.fspath(folder)}' has checkpoints, but none can be read, for the reasons above: {names}. Give the "
            "custom_objects that they need, or restore an intact copy; to train from the beginning, move them away"
        )
    return None


def _readable(folder):
    """(name, bytes) of the checkpoints that HDF5 can read, the newest first. Without other ranks, (name, None)."""
    paths = newest_first(folder)
    link = os.path.join(folder, "latest")
    if os.path.lexists(link) and latest(folder) not in paths[:1]:
        then = f"using '{os.path.basename(paths[0])}' instead" if paths else "the folder has no checkpoint"
        print(f"'{link}' is not a link to a checkpoint in this folder; {then}", file=sys.stderr)
    for path in paths:
        try:
            check_hdf5(path)
            content = np.fromfile(path, np.uint8) if ranks.size() > 1 else None
        except (OSError, MemoryError) as error:
            _tell_unreadable(path, error)
        else:
            yield os.path.basename(path), content


def _load(path, content, custom_objects):
    """Returns the model of the checkpoint, which every rank has as `content`, or None if a rank cannot make it."""
    model = None
    try:
        state = training_state.read(path if content is None else io.BytesIO(content))
        model = load_model(path if content is None else io.BytesIO(content), custom_objects=custom_objects)
        training_state.accumulate_again(model, state)
        loaded[model] = os.path.basename(path), state
    except Exception as error:  # damaged files raise many types in h5py and Keras
        _tell_unreadable(path, error)
    return model if ranks.size() == 1 or ranks.all_reduce(int(model is not None), "min") else None


def _tell_unreadable(path, error):
    print(f"checkpoint '{path}' cannot be read: {type(error).__name__}: {error}", file=sys.stderr)
