"""Training resumes from folders of Keras checkpoints that earlier versions wrote (tests/runtime/training/written_by_COMMIT).

PROGRAM, started without checkpoints, wrote the folder, with a callback that sent SIGUSR1 after the third batch of the second epoch.
"""

import json
import pathlib
import shutil

import pytest
from launching import launch

FOLDERS = sorted((pathlib.Path(__file__).parents[1] / "runtime/training").glob("written_by_*/keras"))
assert len(FOLDERS) == 2

PROGRAM = """
import sys
import h5py
import numpy as np
from keras import backend as K
from keras.layers import Dense
from keras.models import Sequential
from syncline.jobs import Checkpoints, load_latest

def build():
    model = Sequential([Dense(3, activation="tanh", input_shape=(4,), name="hidden"), Dense(1, name="top")])
    model.compile("adam", "mse")
    return model

np.random.seed(1)
model, epoch = load_latest(sys.argv[1]) or (build(), 0)
with h5py.File(sys.argv[1] + "/latest", "r") as file:
    for layer in model.layers:
        for variable, value in zip(layer.weights, layer.get_weights()):
            print(variable.name, np.array_equal(value, file["model_weights"][layer.name][variable.name][()]))
    saved = [file["optimizer_weights"][name][()] for name in file["optimizer_weights"].attrs["weight_names"]]
    state = model.optimizer.get_weights()
    print("optimizer", len(state), sum(np.abs(value).sum() > 0 for value in saved), all(map(np.array_equal, state, saved)))
print("epoch", epoch, "step", K.get_value(model.optimizer.iterations))
x = np.random.RandomState(1).rand(40, 4)
model.fit(x, x.sum(1), 8, 3, 0, [Checkpoints(sys.argv[1], keep=2)], initial_epoch=epoch, shuffle=False)
"""


@pytest.mark.parametrize("written", FOLDERS, ids=lambda folder: folder.parent.name)
def test_a_folder_of_an_earlier_version(written, tmp_path):
    shutil.copytree(written, tmp_path / "run", symlinks=True)
    ended = launch(0, PROGRAM, str(tmp_path / "run"))
    assert ended.code == 0, ended
    assert ended.out.splitlines() == [
        *(f"{name} True" for name in ("hidden/kernel:0", "hidden/bias:0", "top/kernel:0", "top/bias:0")),
        "optimizer 13 9 True",  # the count of steps, and two moments of four weights
        "epoch 1 step 8",
    ]
    status = json.loads((tmp_path / "run/status.json").read_text())
    assert (status["state"], status["epoch"], status["checkpoint"]) == ("finished", 3, "epoch-0003.h5")
