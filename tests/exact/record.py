"""Runs a script that trains with Keras 2.3.1 and records what must be equal on any number of ranks.

usage: record.py FILE THREADS SCRIPT [ARGUMENT...]     (THREADS: of each rank)

Rank 0 writes to FILE, as text, each history, the results of each train_on_batch, evaluate and predict that the script calls, and a digest
of the model's weights and of its optimizer's after each training. Numbers are written with all their digits. EXACT_SIGNAL_AFTER: the number
of training batches after which the ranks signal themselves.
"""

import hashlib
import itertools
import os
import runpy
import signal
import sys

import numpy as np

TRAIN, COMPUTE = ("fit", "fit_generator", "train_on_batch"), ("evaluate", "evaluate_generator", "predict", "predict_generator")


def digest(values):
    """A digest of a list of arrays. NaN is an error: a training that ends with it shows nothing."""
    found = hashlib.sha256()
    for value in values:
        value = np.ascontiguousarray(value)
        if not np.all(np.isfinite(value)):
            raise FloatingPointError("a weight or a prediction is not finite")
        found.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    return found.hexdigest()[:16]


def weights(model):
    optimizer = getattr(model, "optimizer", None)
    return digest(model.get_weights() + (optimizer.get_weights() if optimizer else []))


def text_of(result):
    """A history, a list of numbers, or an array."""
    history = getattr(result, "history", None)
    if history is not None:
        return " ".join(f"{name} {[float(value) for value in values]}" for name, values in sorted(history.items()))
    arrays = [np.asarray(each) for each in (result if isinstance(result, list) else [result])]
    small = all(array.size == 1 for array in arrays)
    return str([float(array) for array in arrays]) if small else digest(arrays)


def follow(Model, lines):
    """Makes the model's methods append a line for each call that no other of these methods makes."""
    inside = []

    def followed(name):
        method = getattr(Model, name)

        def call(self, *arguments, **options):
            inside.append(name)
            try:
                result = method(self, *arguments, **options)
            finally:
                inside.pop()
            if not inside:
                lines.append(f"{name} {text_of(result)}" + (f" weights {weights(self)}" if name in TRAIN else ""))
            return result

        setattr(Model, name, call)

    for name in TRAIN + COMPUTE:
        followed(name)


def signal_after(batches):
    """Makes each rank signal itself after this number of training batches."""
    from keras.callbacks import CallbackList

    call, done = CallbackList._call_batch_hook, itertools.count(1)

    def _call_batch_hook(self, mode, hook, batch, logs=None):
        if (mode, hook) == ("train", "end") and next(done) == batches:
            os.kill(os.getpid(), signal.SIGTERM)
        call(self, mode, hook, batch, logs)

    CallbackList._call_batch_hook = _call_batch_hook


def main(file, threads, script, *arguments):
    from keras.engine.training import Model
    from syncline import _core, distributed

    _core.set_threads(int(threads))
    lines = []
    follow(Model, lines)
    if "EXACT_SIGNAL_AFTER" in os.environ:
        signal_after(int(os.environ["EXACT_SIGNAL_AFTER"]))
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        if distributed.rank() == 0:
            with open(file, "w", encoding="utf-8") as out:
                out.writelines(line + "\n" for line in lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
