"""The Keras examples on tiny data: one and two ranks agree, training resumes from a checkpoint, errors are one line."""

import csv
import gzip
import os
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

from launching import on_ranks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(ROOT, "examples")
ON_FASHION_MNIST = ["fashion_mnist_cnn", "residual", "variational_autoencoder"]
FINAL_LINES = {
    "fashion_mnist_cnn": r"test loss \d+\.\d{4}  test accuracy [01]\.\d{4}",
    "text_lstm": r"test loss \d+\.\d{4}  test accuracy [01]\.\d{4}",
    "residual": r"test loss \d+\.\d{4}  test accuracy [01]\.\d{4}",
    "ctc_lines": r"character error rate \d+\.\d{4}",
    "variational_autoencoder": r"test loss \d+\.\d{4}",
}
LIMIT = 240  # seconds for a job


def write_idx(path, array):
    header = struct.pack(f">4B{array.ndim}i", 0, 0, 8, array.ndim, *array.shape)
    with gzip.open(path, "wb") as file:
        file.write(header + array.astype(np.uint8).tobytes())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a small data set in Fashion-MNIST's format: images with a bright rectangle, whose position is the class."""
    folder, random = tmp_path_factory.mktemp("data"), np.random.RandomState(7)
    for prefix, count in (("train", 200), ("t10k", 40)):
        images, labels = random.randint(0, 60, (count, 28, 28)), random.randint(0, 10, count)
        for image, label in zip(images, labels):
            row, column = 14 * (label // 5), 5 * (label % 5)
            image[row : row + 12, column : column + 6] += 180
        write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", labels)
    return str(folder)


def run(script, folder, *arguments, ranks=1, script_folder=EXAMPLES):
    command = [sys.executable, os.path.join(script_folder, script + ".py"), *arguments]
    command = on_ranks(ranks if ranks > 1 else 0, command)
    environment = {**os.environ, "KERAS_BACKEND": "syncline", "KERAS_HOME": str(folder / "keras_home")}
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=environment)


def train(script, folder, data, *arguments, ranks=1):
    """Runs a job, requires success, and returns its output."""
    if script in ON_FASHION_MNIST:
        arguments += ("--data", data)
    done = run(script, folder, *arguments, ranks=ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def history(path):
    """Returns {name: its value in each epoch}."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


@pytest.mark.parametrize("script", FINAL_LINES)
def test_one_rank_and_two_agree(script, data, tmp_path):
    # In float64 rounding does not change the choices of rectifiers and maxima here (docs/design.md).
    (tmp_path / "keras_home").mkdir()
    (tmp_path / "keras_home" / "keras.json").write_text('{"floatx": "float64"}')
    histories, last = [], []
    for ranks in (1, 2):
        path = str(tmp_path / f"history.{ranks}.csv")
        arguments = ["--samples", "90", "--batch-size", "30", "--epochs", "2", "--history", path]
        printed = train(script, tmp_path, data, *arguments, ranks=ranks)
        histories.append(history(path))
        last.append(printed.splitlines()[-1])
        assert len(re.findall(FINAL_LINES[script], printed)) == 1, printed  # only the primary rank prints
    assert re.fullmatch(FINAL_LINES[script], last[0])
    one, two = histories
    assert one.keys() == two.keys() and len(one["loss"]) == 2
    for name in one:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-8, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("script, arguments, better", [
    ("fashion_mnist_cnn", ["--samples", "200", "--epochs", "6", "--batch-size", "20"], 0.5),
    ("text_lstm", ["--samples", "3000", "--epochs", "4", "--batch-size", "50"], 0.5),
    ("residual", ["--samples", "200", "--epochs", "6", "--batch-size", "20"], 0.5),
    ("ctc_lines", ["--samples", "60", "--epochs", "3", "--batch-size", "10"], 0.8),
    ("variational_autoencoder", ["--samples", "200", "--epochs", "4", "--batch-size", "10"], 0.95),
])  # fmt: skip
def test_it_learns(script, arguments, better, data, tmp_path):
    path = str(tmp_path / "history.csv")
    train(script, tmp_path, data, *arguments, "--history", path)
    losses = history(path)["loss"]
    assert losses[-1] < better * losses[0], losses


@pytest.mark.parametrize("script", FINAL_LINES)
def test_resume(script, data, tmp_path):
    path, folder = str(tmp_path / "history.csv"), tmp_path / "job"
    arguments = ["--samples", "60", "--batch-size", "30", "--history", path, "--checkpoint", str(folder), "--resume"]
    train(script, tmp_path, data, *arguments, "--epochs", "2")
    (folder / "epoch-0003.h5").write_bytes((folder / "epoch-0002.h5").read_bytes()[:2000])  # `latest` points at epoch 2
    printed = train(script, tmp_path, data, *arguments, "--epochs", "3", ranks=2)
    assert f"resumed {folder} after epoch 2" in printed
    found = history(path)
    assert list(found["epoch"]) == [0, 1, 2]
    assert found["loss"][2] < found["loss"][0]
    assert (folder / "epoch-0003.h5").stat().st_size >= (folder / "epoch-0002.h5").stat().st_size


def test_wrong_arguments(tmp_path):
    done = run("fashion_mnist_cnn", tmp_path, "--epochs", "0")
    assert done.returncode == 2
    assert "--epochs: invalid whole number of at least 1 value: '0'" in done.stderr
    done = run("fashion_mnist_cnn", tmp_path, "--resume")
    assert done.returncode == 2 and "--resume needs --checkpoint" in done.stderr


def remove(folder):
    for path in folder.iterdir():
        path.unlink()


def truncate(folder):
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-1000])


def exchange(folder):
    (folder / "train-labels-idx1-ubyte.gz").write_bytes((folder / "train-images-idx3-ubyte.gz").read_bytes())


def shorten(folder):
    write_idx(folder / "t10k-labels-idx1-ubyte.gz", np.zeros(39))


def mislabel(folder):
    write_idx(folder / "train-labels-idx1-ubyte.gz", np.full(200, 10))


@pytest.mark.parametrize("damage, complaint", [
    (remove, "install the Debian package dataset-fashion-mnist"),
    (truncate, "fetch the file again"),
    (exchange, "it is no IDX file"),
    (shorten, "holds 39 labels for 40 images"),
    (mislabel, "holds label 10, 0 to 9 expected"),
])  # fmt: skip
def test_damaged_data(damage, complaint, data, tmp_path):
    folder = tmp_path / "damaged"
    folder.mkdir()
    for name in os.listdir(data):
        (folder / name).write_bytes(open(os.path.join(data, name), "rb").read())
    damage(folder)
    done = run("fashion_mnist_cnn", tmp_path, "--data", str(folder))
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line != "Using syncline backend."]
    assert len(lines) == 1 and lines[0].startswith("fashion_mnist_cnn.py: data "), done.stderr
    assert complaint in lines[0] and str(folder) in lines[0]
