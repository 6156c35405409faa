"""Runs Keras trainings with faults and checks the files that they leave."""

import json
import os
import subprocess
import textwrap

import pytest

from launching import launch

# train() trains to epoch 4, with five batches per epoch, by default. At(epoch, batch, action) is a callback that acts after this batch.
BEGIN = """
import os, signal, sys, threading, time
import numpy as np
import keras
from keras import backend as K
from keras.callbacks import Callback
from keras.layers import Dense
from keras.models import Sequential
from syncline import distributed
from syncline.jobs import Checkpoints, load_latest

folder, rank, last = sys.argv[1], distributed.rank(), distributed.size() - 1
x = np.random.RandomState(1).rand(40, 4)
y = x.sum(1)

class At(Callback):
    def __init__(self, epoch, batch, action):
        self.place, self.action = (epoch, batch), action
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
    def on_batch_end(self, batch, logs=None):
        if (self.epoch, batch) == self.place:
            self.action()

def build(width=8):
    model = Sequential([Dense(width, activation="tanh", input_shape=(4,)), Dense(1)])
    model.compile("sgd", "mse")
    return model

def train(*callbacks, epochs=4, keep=3, width=8):
    model, epoch = load_latest(folder) or (build(width), 0)
    if rank == 0:
        print("from", epoch, flush=True)
    model.fit(x, y, 8, epochs, 0, [*callbacks, Checkpoints(folder, keep)], initial_epoch=epoch, shuffle=False)
    return model

def fail():
    raise KeyError("the data set is gone")
"""

# The numbers of ranks; 0: one process without mpirun.
on_one_and_two_ranks = pytest.mark.parametrize("ranks", [0, 2])


def train(ranks, program, folder, limit=60, **environment):
    """Runs BEGIN followed by the program."""
    return launch(ranks, BEGIN + textwrap.dedent(program), str(folder), limit=limit, **environment)


def status(folder):
    return json.loads((folder / "status.json").read_text())


def state(folder):
    """Returns the fields that batch scripts read."""
    found = status(folder)
    return found["state"], found["exit_code"]


def expect_order(folder, *checkpoints):
    """Checks that the folder holds only these checkpoints, `latest`, which points at the last of them, and the status file."""
    names = sorted(os.listdir(folder))
    assert names == sorted([*checkpoints, "latest", "status.json"]), names
    assert os.readlink(folder / "latest") == checkpoints[-1]


def expect_continues(ranks, folder, epoch):
    """Checks that a training resumes from the folder at this epoch and finishes."""
    ended = train(ranks, "train(epochs=12)", folder)
    assert ended.code == 0 and ended.out.split()[-2:] == ["from", str(epoch)], ended
    assert state(folder) == ("finished", 0)


@pytest.fixture
def small_disk(tmp_path):
    """A separate file system of 2 MiB. Without root the tests are skipped; in containers that forbid root to mount one they must fail."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system takes root")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "syncline-test", str(folder)], check=True)
    yield folder
    while os.path.ismount(folder):
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
