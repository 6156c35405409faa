"""Keras trainings that a signal ends: exit code 75, a checkpoint, a status file; and trainings that resume."""

import json
import os
import pathlib
import re
import shutil

import h5py
import numpy as np
import pytest

from launching import launch

WRITTEN = pathlib.Path(__file__).parents[1] / "runtime/training/written_by_7100a1d/keras"

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
        assert status(folder)["global_step"] == 3 * 5
        files = sorted(path.name for path in folder.iterdir())
        assert files == ["epoch-0002.h5", "epoch-0003.h5", "latest", "status.json"]


def test_between_epochs_it_goes_on_with_the_same_bits(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    digest = launch(2, PROGRAM, str(whole)).out.split()[-1]
    ended = launch(2, PROGRAM.replace("8, 3, 0, [", "8, 2, 0, ["), str(parts))
    assert ended.code == 0, ended
    ended = launch(2, PROGRAM, str(parts))
    assert ended.out.split()[-3:] == ["2", "digest", digest], ended
    assert "bitwise" not in ended.err, ended
    ended = launch(0, PROGRAM.replace("8, 3, 0, [", "8, 4, 0, ["), str(parts))
    line = rf"syncline: '{parts}': the training was saved with ranks 0.*1 and continues with ranks 0: the result may not be bitwise"
    assert ended.code == 0 and len(re.findall(line, ended.err)) == 1, ended


def test_a_damaged_status_ends_nothing(tmp_path):
    assert launch(0, PROGRAM, str(tmp_path)).code == 0
    for text in ("[]", '{"setting": "abc"}', '{"setting": [1]}', '{"setting": ["\\u001b"]}', "[" * 100_000):
        (tmp_path / "status.json").write_text(text)
        ended = launch(0, PROGRAM, str(tmp_path))
        assert ended.code == 0 and "from 3 digest" in ended.out and "saved with" not in ended.err, (text, ended)


def test_the_setting_is_that_of_the_checkpoint(tmp_path):
    assert launch(0, PROGRAM.replace("8, 3, 0, [", "8, 1, 0, ["), str(tmp_path)).code == 0
    fails = PROGRAM.replace("8, 3, 0, [", "8, 2, 0, [").replace("Disturb(),", "Fail(),") + ""
    fails = fails.replace("np.random.seed(1)", "class Fail(Disturb):\n    def on_batch_end(self, *_): raise OSError\nnp.random.seed(1)")
    for _ in range(2):
        ended = launch(2, fails, str(tmp_path))
        assert ended.code != 0 and ended.err.count("was saved with ranks 0 and continues with ranks 0") == 1, ended
    ended = launch(0, PROGRAM, str(tmp_path))
    assert ended.code == 0 and "saved with" not in ended.err, ended


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    assert launch(0, PROGRAM, str(tmp_path)).code == 0
    (tmp_path / "epoch-0003.h5").write_bytes((tmp_path / "epoch-0003.h5").read_bytes()[:3000])
    ended = launch(0, PROGRAM, str(tmp_path))
    assert ended.code == 0 and "from 2 digest" in ended.out, ended
    assert "epoch-0003.h5' cannot be read" in ended.err


def test_checkpoints_of_which_none_can_be_read_are_not_trained_over(tmp_path):
    assert launch(0, PROGRAM, str(tmp_path)).code == 0
    names = ["epoch-0002.h5", "epoch-0003.h5"]
    for name in names:
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:3000])
    ended = launch(0, PROGRAM, str(tmp_path))
    assert ended.code == 1 and "digest" not in ended.out, ended
    refusal = f"OSError: load_latest: '{tmp_path}' has checkpoints, but none can be read, for the reasons above: epoch-0003.h5, "
    assert refusal in ended.err, ended
    assert "move them away" in ended.err, ended
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "latest", "status.json"]


LOAD = """
import sys
from syncline.jobs import load_latest
if sys.argv[2:]:
    from syncline.checkpoint import confined
    sys.path.insert(0, sys.argv[2])
    confined._SECONDS = 2
print("from", load_latest(sys.argv[1])[1])
"""


def test_a_damaged_checkpoint_holds_nobody_up(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(WRITTEN, folder, symlinks=True)
    damaged = folder / "epoch-0001-batch-000003.h5"
    content = bytearray(damaged.read_bytes())
    text = content.index(b"GCOL") + 24  # the size of the first variable-length text; if it is 0, HDF5 1.10 loops forever
    content[text : text + 8] = bytes(8)
    damaged.write_bytes(content)
    os.mkfifo(folder / "epoch-0009.h5")
    ended = launch(0, LOAD, str(folder), limit=60)
    assert ended.code == 0 and "from 1" in ended.out, ended
    assert "epoch-0009.h5' cannot be read: OSError: it is not a regular file" in ended.err, ended
    assert "epoch-0001-batch-000003.h5' cannot be read: OSError: " in ended.err, ended


def test_a_link_that_leads_nowhere_is_an_unreadable_checkpoint(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(WRITTEN, folder, symlinks=True)
    (folder / "latest").unlink()
    (folder / "epoch-0009.h5").symlink_to("nowhere")
    ended = launch(0, LOAD, str(folder))
    assert ended.code == 0 and "from 1" in ended.out, ended
    assert "epoch-0009.h5' cannot be read: OSError: it is not a regular file" in ended.err, ended


@pytest.mark.parametrize(
    "what, text",
    [
        ("while True: pass", "reading it took more than 2 s of processor time"),
        ("import os; os.abort()", "killed by signal 6"),
    ],
)
def test_a_file_that_makes_hdf5_loop_or_crash(what, text, tmp_path):
    (tmp_path / "h5py.py").write_text(what)
    ended = launch(0, LOAD, str(WRITTEN), str(tmp_path))
    assert ended.code == 1 and ended.err.count(text) == 2 and "OSError: load_latest: " in ended.err, ended


@pytest.mark.parametrize("how", ["link", "external", "virtual"])
def test_a_checkpoint_that_reads_other_files_is_refused(how, tmp_path):
    other = str(tmp_path / "other")
    with h5py.File(other, "w") as file:
        file["x"] = np.zeros(3)
    folder = tmp_path / "run"
    shutil.copytree(WRITTEN, folder, symlinks=True)
    with h5py.File(folder / "epoch-0001-batch-000003.h5", "r+") as file:
        if how == "link":
            file["more"] = h5py.ExternalLink(other, "x")
        elif how == "external":
            file.create_dataset("more", (3,), "f8", external=[(other, 0, 24)])
        else:
            layout = h5py.VirtualLayout((3,), "f8")
            layout[:] = h5py.VirtualSource(other, "x", (3,))
            file.create_virtual_dataset("more", layout)
    ended = launch(0, LOAD, str(folder))
    assert ended.code == 0 and "from 1" in ended.out, ended
    assert ("is a link" if how == "link" else "are in other files") in ended.err, ended


@pytest.mark.parametrize("older", [True, False])
def test_a_latest_that_leads_nowhere_is_told_of(older, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(WRITTEN, folder, symlinks=True)
    (folder / "latest").unlink()
    (folder / "latest").symlink_to("../epoch-0009.h5")
    if not older:
        for path in folder.glob("epoch-*"):
            path.unlink()
    ended = launch(0, LOAD, str(folder))
    assert "is not a link to a checkpoint in this folder" in ended.err, ended
    assert (("; using 'epoch-" if older else "; the folder has no checkpoint") in ended.err), ended


@pytest.mark.parametrize("ranks", [0, 2])
def test_a_training_that_begins_anew_says_so(ranks, tmp_path):
    line = f"syncline: '{tmp_path}': this training begins anew, and its checkpoints replace those of an earlier training (the newest is "
    ended = launch(ranks, PROGRAM, str(tmp_path))
    assert ended.code == 0 and "begins anew" not in ended.err, ended
    anew = PROGRAM.replace("8, 3, 0, [", "8, 1, 0, [").replace("found = load_latest(sys.argv[1])", "found = None")
    ended = launch(ranks, anew, str(tmp_path))
    assert ended.code == 0 and ended.err.count(line + "epoch-0003.h5); resume that one, or give another folder, to keep them\n") == 1, ended
    compiles = PROGRAM.replace("x = np", "model.compile('sgd', 'mse')\nx = np")
    ended = launch(ranks, compiles, str(tmp_path))
    assert ended.code == 0 and "from 1 digest" in ended.out and "begins anew" not in ended.err, ended


def test_the_folder_stays_where_it_is(tmp_path):
    moves = PROGRAM.replace("if sys.argv[2:] and ", "if ").replace("distributed.rank() == int(sys.argv[2]) and ", "")
    moves = moves.replace("os.kill(os.getpid(), getattr(signal, sys.argv[3]))", "os.chdir('/')")
    ended = launch(0, moves, "run", folder=tmp_path)
    assert ended.code == 0, ended
    assert status(tmp_path / "run")["state"] == "finished" and status(tmp_path / "run")["checkpoint"] == "epoch-0003.h5"


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
