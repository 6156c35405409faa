"""Model files of Keras on TensorFlow and of Keras on Syncline have the same layout, and each loads the other's.

tests/keras/interchange/tensorflow_model.json holds a file that Keras 2.3.1 on TensorFlow wrote, and the model's predictions.
`scripts/keras/interchange --write` makes it; `scripts/keras/interchange` checks the other direction with TensorFlow itself.
"""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import zlib

import h5py
import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "keras" / "interchange"


def in_keras(code, path):
    """Runs code that uses model.py in a new process, as Keras cannot change its backend. Returns the array that it saved."""
    environment = {**os.environ, "KERAS_BACKEND": "syncline"}
    environment["PYTHONPATH"] += os.pathsep + str(FOLDER)
    code = f"import sys, numpy, model; path, predictions = sys.argv[1:]; {code}"
    predictions = path.with_suffix(".npy")
    command = [sys.executable, "-c", code, path, predictions]
    run = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    assert run.returncode == 0, run.stderr.decode()
    return np.load(predictions)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Returns (path of the file, predictions) of Keras on TensorFlow."""
    stored = json.loads((FOLDER / "tensorflow_model.json").read_text())
    path = tmp_path_factory.mktemp("theirs") / "model.h5"
    path.write_bytes(zlib.decompress(base64.b64decode("".join(stored["model"]))))
    return path, np.array(stored["predictions"])


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    path = tmp_path_factory.mktemp("ours") / "model.h5"
    return path, in_keras("numpy.save(predictions, model.train_and_save(path))", path)


def test_their_model_predicts_the_same_here(theirs, tmp_path):
    path, predictions = theirs
    here = tmp_path / "model.h5"
    here.write_bytes(path.read_bytes())
    assert np.abs(in_keras("numpy.save(predictions, model.load(path)[0])", here) - predictions).max() < 1e-5


def test_our_model_predicts_the_same_after_loading(ours, tmp_path):
    path, predictions = ours
    again = tmp_path / "model.h5"
    again.write_bytes(path.read_bytes())
    np.testing.assert_array_equal(in_keras("numpy.save(predictions, model.load(path)[0])", again), predictions)


def layout(path):
    """Returns {name: (shape and dtype, or None for a group; {attribute: dtype kind})} of all groups and data sets."""
    rows = {}

    def visit(name, item):
        form = (item.shape, str(item.dtype)) if isinstance(item, h5py.Dataset) else None
        rows[name] = form, {key: np.asarray(value).dtype.kind for key, value in item.attrs.items()}

    with h5py.File(path, "r") as file:
        file.visititems(visit)
        rows["/"] = None, {key: np.asarray(value).dtype.kind for key, value in file.attrs.items()}
    return rows


def test_the_files_have_one_layout(theirs, ours):
    # TensorFlow names an optimizer's slots m_0_1, because their initial values are m_0; Keras loads them by order.
    wanted = {re.sub(r"^(optimizer_weights/.*_\d+)_1:0$", r"\1:0", name): row for name, row in layout(theirs[0]).items()}
    assert layout(ours[0]) == wanted
