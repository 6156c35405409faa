"""Keras trainings that a signal ends: exit code 75, a checkpoint, a status file; and what goes on from them."""

import json
import os

from launching import launch

PROGRAM = """
import os, signal, sys
import numpy as np
from keras.callbacks import Callback
from keras.layers import Dense
from keras.models import Sequential
from syncline import distributed
from syncline.jobs import Checkpoints, load_latest

class Disturb(Callback):
    def on_batch_end(self, batch, logs=None):
        if sys.argv[2:] and distributed.rank() == int(sys.argv[2]) and self.epoch == 1 and batch == 2:
            os.kill(os.getpid(), getattr(signal, sys.argv[3]))
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

def build():
    model = Sequential([Dense(8, activation="tanh", input_shape=(4,)), Dense(1)])
    model.compile("adam", "mse")
    return model

np.random.seed(1)
found = load_latest(sys.argv[1])
model, epoch = found or (build(), 0)
x = np.random.RandomState(1).rand(40, 4)
model.fit(x, x.sum(1), 8, 3, 0, [Disturb(), Checkpoints(sys.argv[1], keep=2)], initial_epoch=epoch, shuffle=False)
if distributed.rank() == 0:
    print("from", epoch, "digest", repr(float(sum(abs(w).sum() for w in model.get_weights()))))
"""


def status(folder):
    return json.loads((folder / "status.json").read_text())


def expect_saved(ended, folder, signal, ranks):
    assert ended.code == 75, ended
    assert "digest" not in ended.out and "Traceback" not in ended.err, ended
    found = status(folder)
    assert (found["state"], found["exit_code"], found["reason"]) == ("saved", 75, signal)
    assert (found["epoch"], found["step"], found["global_step"], found["ranks"]) == (1, 3, 8, ranks)
    assert found["checkpoint"] == "epoch-0001-batch-000003.h5" == os.readlink(folder / "latest")


def test_a_signal_ends_with_a_checkpoint_and_training_goes_on(tmp_path):
    for ranks, rank, signal in ((0, 0, "SIGTERM"), (2, 1, "SIGUSR1")):
        folder = tmp_path / signal
        expect_saved(launch(ranks, PROGRAM, str(folder), str(rank), signal), folder, signal, max(ranks, 1))
        ended = launch(ranks, PROGRAM, str(folder))
        assert ended.code == 0 and "from 1 digest" in ended.out, ended
        assert (status(folder)["state"], status(folder)["exit_code"], status(folder)["epoch"]) == ("finished", 0, 3)
        assert status(folder)["global_step"] == 8 + 2 * 5
        files = sorted(path.name for path in folder.iterdir())
        assert files == ["epoch-0002.h5", "epoch-0003.h5", "latest", "status.json"]


def test_between_epochs_it_goes_on_with_the_same_bits(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    digest = launch(2, PROGRAM, str(whole)).out.split()[-1]
    ended = launch(2, PROGRAM.replace("8, 3, 0, [", "8, 2, 0, ["), str(parts))
    assert ended.code == 0, ended
    ended = launch(2, PROGRAM, str(parts))
    assert ended.out.split()[-3:] == ["2", "digest", digest], ended


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    assert launch(0, PROGRAM, str(tmp_path)).code == 0
    (tmp_path / "epoch-0003.h5").write_bytes((tmp_path / "epoch-0003.h5").read_bytes()[:3000])
    ended = launch(0, PROGRAM, str(tmp_path))
    assert ended.code == 0 and "from 2 digest" in ended.out, ended
    assert "epoch-0003.h5' cannot be read" in ended.err


def test_a_failed_save_ends_nothing(tmp_path):
    (tmp_path / "epoch-0001.h5.tmp").mkdir()
    ended = launch(0, PROGRAM, str(tmp_path))
    assert ended.code == 0 and "from 0 digest" in ended.out, ended
    assert ended.err.count("cannot save") == 1 and "training goes on" in ended.err, ended
    assert status(tmp_path)["checkpoint"] == "epoch-0003.h5"


def test_only_rank_0_needs_to_be_told_that_the_save_failed(tmp_path):
    (tmp_path / "epoch-0001-batch-000003.h5.tmp").mkdir()
    ended = launch(2, PROGRAM, str(tmp_path), "1", "SIGUSR2")
    assert ended.code == 1, ended
    assert status(tmp_path)["state"] == "failed"
