"""Keras trainings that resume have the bits, the history and the printed lines of unbroken ones."""

import json
import re

import h5py
import pytest

from launching import launch

PROGRAM = """
import json, os, random, signal, sys
import numpy as np
import keras
from keras.callbacks import Callback, CSVLogger, EarlyStopping, LearningRateScheduler, ModelCheckpoint, ReduceLROnPlateau
from keras.layers import LSTM, BatchNormalization, Dense, Dropout, GaussianNoise
from keras.models import Sequential, load_model
from syncline import distributed
from syncline.jobs import Checkpoints, load_latest

folder, kind, stop = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

class Stop(Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
        if [epoch, -1] == stop:
            os._exit(3)
    def on_batch_end(self, batch, logs=None):
        if [self.epoch, batch] == stop:
            os._exit(3) if kind == "killed" else os.kill(os.getpid(), signal.SIGTERM)

class Seen(Callback):  # counts, draws random numbers, and keeps values of several types
    def __init__(self):
        self.losses, self.drawn, self.by_epoch, self.last = [], 0.0, {}, None
    def on_epoch_begin(self, epoch, logs=None):
        self.epochs = getattr(self, "epochs", 0) + 1
        if "Sequence" not in kind or "in turn" in kind:  # a thread draws meanwhile
            self.drawn += np.random.rand() + random.random()
    def on_batch_end(self, batch, logs):
        self.losses.append(float(logs["loss"]))
        self.last = np.array([self.last is not None, batch, logs["loss"]], "float32")
        self.by_epoch[self.epochs] = (batch, logs["loss"])

class Batches(keras.utils.Sequence):
    def __init__(self):
        self.order, self.generator, self.scale, self.x = np.arange(100), np.random.default_rng(7), 1.0, x
    def __len__(self):
        return 5
    def __getitem__(self, i):
        rows = self.order[i * 20 : i * 20 + 20]
        return self.scale * self.x[rows], y[rows]
    def on_epoch_end(self):
        np.random.shuffle(self.order)
        self.scale *= self.generator.uniform(0.9, 1.1)

data = np.random.RandomState(1)
x = data.uniform(-1, 1, (100, 4, 6) if kind == "stateful" else (100, 6))
y = np.eye(3)[data.randint(0, 3, 100)]
optimizer = keras.optimizers.Adam(0.02)
if kind == "accumulated":
    optimizer = distributed.accumulate_gradients(optimizer, 3)

def build():
    if kind == "stateful":
        model = Sequential([LSTM(5, stateful=True, batch_input_shape=(20, 4, 6)), Dropout(0.2), Dense(3, activation="softmax")])
    else:
        model = Sequential([Dense(16, activation="relu", input_shape=(6,)), BatchNormalization(), Dropout(0.3), GaussianNoise(0.1)])
        model.add(Dense(3, activation="softmax"))
    model.compile(optimizer, "categorical_crossentropy", metrics=["accuracy", keras.metrics.Precision(name="precision")])
    return model

np.random.seed(5)
random.seed(6)
found = load_latest(folder)
np.random.rand()  # a resumed training does not depend on what was drawn before
model, epoch = found or (build(), 0)
seen, stopping = Seen(), EarlyStopping("loss", patience=3, min_delta=0.05, restore_best_weights=True)
callbacks = [seen, stopping, ReduceLROnPlateau("loss", patience=0, min_delta=0.1), Stop(), Checkpoints(folder, save_every=2 if kind == "killed" else 0)]
callbacks.insert(2, ModelCheckpoint(f"{folder}.best", monitor="loss", save_best_only=True))
callbacks.insert(0, CSVLogger(f"{folder}.csv", append=True))
more = {"epochs": 12, "verbose": 2, "callbacks": callbacks, "initial_epoch": epoch}
if "Sequence" in kind:
    steps = 3 if "part" in kind else None
    more["validation_data"] = x[:30], y[:30]
    history = model.fit_generator(Batches(), steps, workers=0 if "in turn" in kind else 1, **more)
elif kind == "stateful":
    history = model.fit(x, y, 20, shuffle=False, **more)
else:
    history = model.fit(x, y, 16, validation_split=0.2, shuffle="batch" if kind == "batch" else True, **more)
best = load_model(f"{folder}.best")
if distributed.rank() == 0:
    values = {
        "weights": [w.astype("f8").sum() for w in model.get_weights() + model.optimizer.get_weights()],
        "history": history.history, "epochs": history.epoch, "losses": seen.losses, "drawn": seen.drawn, "last": seen.last.tolist(),
        "begun": seen.epochs, "by_epoch": list(seen.by_epoch.items()), "stopping": [stopping.wait, stopping.best, stopping.stopped_epoch],
        "best": [w.astype("f8").sum() for w in best.get_weights()], "csv": open(f"{folder}.csv").read(),
    }
    print("values", json.dumps(values, default=float))
"""


def train(ranks, folder, kind, stop=None, code=0, program=PROGRAM, **environment):
    """Returns (what the program ended with, the lines of finished epochs, its standard error)."""
    ended = launch(ranks, program, str(folder), kind, json.dumps(stop), limit=120, **environment)
    assert ended.code == code, ended
    values = [json.loads(line[len("values ") :]) for line in ended.out.splitlines() if line.startswith("values ")]
    return values, re.findall(r"loss: .*", ended.out), ended.err


def expect_equal(kind, tmp_path, stops, ranks=0, resumed_ranks=(), **environment):
    """Compares an unbroken training with one that ends at each of `stops`: [epoch, batch]."""
    (values,), lines, _ = train(ranks, tmp_path / "whole", kind, **environment)
    folder, all_lines = tmp_path / "parts", []
    for number, stop in enumerate([*stops, None]):
        on = ([ranks, *resumed_ranks] + [ranks] * len(stops))[number]
        resumed, more, _ = train(on, folder, kind, stop, 0 if stop is None else 3 if stop[1] < 0 or kind == "killed" else 75, **environment)
        all_lines += more
    assert resumed == [values]
    assert all_lines == lines
    return values


KINDS = ["rows", "batch", "accumulated", "stateful", "Sequence in turn", "Sequence in a thread"]
KINDS += ["part of a Sequence in turn", "part of a Sequence in a thread"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_that_ends_within_epochs_and_between(kind, tmp_path):
    values = expect_equal(kind, tmp_path, [[1, 0], [2, -1], [4, 1]])
    assert len(values["losses"]) > 14 and len(set(values["history"]["lr"])) > 1, values


def test_after_the_last_batch_of_an_epoch(tmp_path):
    expect_equal("rows", tmp_path, [[0, 4], [2, 4]])


@pytest.mark.parametrize("kind", ["rows", "killed"])
def test_on_two_ranks(kind, tmp_path):
    expect_equal(kind, tmp_path, [[1, 2]], ranks=2)


def test_killed_after_saves_within_the_epoch(tmp_path):
    expect_equal("killed", tmp_path, [[1, 0], [1, 4], [3, 3]])
    names = sorted(path.name for path in (tmp_path / "parts").iterdir())
    assert re.fullmatch(r"epoch-(\d+)-batch-000002.h5 epoch-\1-batch-000004.h5 epoch-\d+.h5 latest status.json", " ".join(names)), names


@pytest.mark.parametrize("kind", ["rows", "accumulated"])
def test_on_other_numbers_of_ranks_with_parts(kind, tmp_path):
    expect_equal(kind, tmp_path, [[0, 2], [2, 1]], ranks=2, resumed_ranks=(0, 3), SYNCLINE_PARTS="4")


def test_a_training_that_has_ended(tmp_path):
    (values,), _, _ = train(0, tmp_path / "run", "rows")
    assert 4 < len(values["epochs"]) < 12  # EarlyStopping has ended it
    again, lines, err = train(0, tmp_path / "run", "rows")
    assert again == [values] and lines == []
    name = f"epoch-{len(values['epochs']):04d}.h5"
    assert f"'{tmp_path / 'run'}': EarlyStopping had ended this training ({name}); to train on, load that file with keras" in err, err
    plain = PROGRAM.replace("load_latest(folder)", f"load_model(f'{{folder}}/{name}'), {len(values['epochs'])}")
    (more,), _, _ = train(0, tmp_path / "run", "rows", program=plain)
    assert more["epochs"][0] == len(values["epochs"])


def test_a_fit_from_another_epoch_resumes_nothing(tmp_path):
    train(0, tmp_path / "run", "rows", [1, 2], 75)
    anew = PROGRAM.replace("model, epoch = found or (build(), 0)", "model, epoch = found[0], 0")
    (values,), _, _ = train(0, tmp_path / "run", "rows", program=anew)
    assert values["epochs"][:2] == [0, 1] and len(values["losses"]) == 5 * len(values["epochs"])


def test_another_model_is_told_of(tmp_path):
    train(0, tmp_path / "run", "rows", [1, 2], 75)
    begin = "seen, stopping = "
    other = PROGRAM.replace(begin, f"model.add(Dropout(0.1, name='more')); model.compile('sgd', 'mse')\n{begin}")
    _, _, err = train(0, tmp_path / "run", "rows", program=other)
    assert err.count("the model has other random layers than the saved one: their numbers begin anew") == 1, err
    assert err.count("the model has other metrics than the saved one: its callbacks and epoch begin anew") == 1, err


def test_a_checkpoint_of_a_later_version_is_passed_over(tmp_path):
    train(0, tmp_path / "run", "rows", [2, 1], 75)
    with h5py.File(tmp_path / "run" / "epoch-0002-batch-000002.h5", "r+") as file:
        file["training_state"].attrs["version"] = 2
    _, lines, err = train(0, tmp_path / "run", "rows")
    assert "epoch-0002-batch-000002.h5' cannot be read: ValueError: a later version of Syncline wrote it: its state has version 2" in err, err


def test_with_local_feeds(tmp_path):
    local = PROGRAM.replace("np.random.seed(5)", "np.random.seed(5)\nfeeds = distributed.local_feeds()\nfeeds.__enter__()")
    (values,), _, _ = train(2, tmp_path / "whole", "rows", program=local)
    train(2, tmp_path / "run", "rows", [1, -1], 3, local)
    assert train(2, tmp_path / "run", "rows", program=local)[0] == [values]  # all ranks have one order of rows
    train(2, tmp_path / "within", "rows", [1, 2], 75, local)
    (again,), _, _ = train(2, tmp_path / "within", "rows", program=local)
    assert again["epochs"] == list(range(len(again["epochs"])))
    assert len(again["losses"]) == 5 * len(again["epochs"]) + 3  # the broken epoch begins again


def test_a_loop_of_the_program_calls_the_callback(tmp_path):
    begin = PROGRAM.index("seen, stopping = ")
    loop = """
checkpoints = Checkpoints(folder)
checkpoints.set_model(model)
checkpoints.on_train_begin()
for epoch in range(epoch, 3):
    checkpoints.on_epoch_begin(epoch)
    for batch in range(5):
        loss, *_ = model.train_on_batch(x[:20], y[:20])
        checkpoints.on_batch_end(batch)
    checkpoints.on_epoch_end(epoch, {"loss": loss})
checkpoints.on_train_end()
print("values", json.dumps([epoch, float(loss)]))
"""
    assert train(0, tmp_path / "run", "rows", program=PROGRAM[:begin] + loop)[0][0][0] == 2
    assert train(0, tmp_path / "run", "rows", program=(PROGRAM[:begin] + loop).replace("epoch, 3", "epoch, 4"))[0][0][0] == 3


BRANCHES = """
import json, os, random, signal, sys, threading, time
import numpy as np
from keras.callbacks import Callback, LearningRateScheduler
from keras.layers import Dense, Dropout, Input, concatenate
from keras.models import Model
from keras.utils import Sequence
from syncline import distributed
from syncline.jobs import Checkpoints, load_latest

folder, kind, stop = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

class Stop(Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
    def on_batch_end(self, batch, logs=None):
        if [self.epoch, batch] == stop:
            os.kill(os.getpid(), signal.SIGTERM)

class Shares(Callback):  # a list that the program holds
    def __init__(self, losses):
        self.losses, self.once = losses, np.zeros(())
    def on_epoch_end(self, epoch, logs=None):
        self.losses.append(float(logs["loss"]))
        self.once[...] += 1

class Batches(Sequence):
    def __init__(self):
        self.cache, self.generator, self.order = {}, np.random.RandomState(3), np.arange(80)
        self.view = self.order[:60]
        threading.Thread(target=self.fill, daemon=True).start()
    def fill(self):  # another thread changes a dict meanwhile
        for i in range(10**9):
            self.cache[i % 50_000 + i // 50_000] = i
            if i % 1000 == 0:
                time.sleep(0.001)
    def __len__(self):
        return 3
    def __getitem__(self, i):
        rows = self.view[i * 20 : i * 20 + 20]
        return [x[rows] + self.generator.rand(), x[rows]], y[rows]
    def on_epoch_end(self):
        np.random.shuffle(self.order)

data = np.random.RandomState(1)
x, y = data.rand(80, 6), data.rand(80, 3)

def build():
    a, b = Input((6,)), Input((6,))
    second = Dropout(0.5)(Dense(8)(b))  # made before the first
    first = Dropout(0.2)(Dense(8)(a))
    model = Model([a, b], Dense(3)(concatenate([first, second])))
    model.compile("adam", "mse", metrics=["mae"])
    return model

np.random.seed(5)
random.seed(6)
model, epoch = load_latest(folder) or (build(), 0)
losses = []
callbacks = [LearningRateScheduler(lambda epoch, lr: lr * 0.8), Shares(losses), Stop(), Checkpoints(folder)]
more = {"epochs": 5, "verbose": 0, "callbacks": callbacks, "initial_epoch": epoch}
if kind == "rows":
    model.fit([x, x], y, 20, **more)
else:
    batches = Batches()
    steps = 2 if "part" in kind else None
    model.fit_generator(batches, steps, workers=int(kind[0]), validation_data=batches if "same" in kind else None, **more)
if distributed.rank() == 0:
    print("values", json.dumps([losses, [float(w.astype("f8").sum()) for w in model.get_weights()], float(callbacks[1].once)]))
"""


@pytest.mark.parametrize("kind", ["rows", "0", "1", "0 part", "1 part", "0 part same"])
def test_branches_shared_values_and_settings(kind, tmp_path):
    (values,), _, _ = train(0, tmp_path / "whole", kind, program=BRANCHES)
    for stop in ([1, 1], [3, 0]):
        train(0, tmp_path / "parts", kind, stop, 75, BRANCHES)
    assert train(0, tmp_path / "parts", kind, program=BRANCHES)[0] == [values]


def test_a_damaged_state_is_passed_over(tmp_path):
    train(0, tmp_path / "run", "rows", [2, 1], 75)
    with h5py.File(tmp_path / "run" / "epoch-0002-batch-000002.h5", "r+") as file:
        text = file["training_state/values"]
        text[text.size // 2] ^= 1
    _, _, err = train(0, tmp_path / "run", "rows")
    assert "cannot be read: ValueError: the group 'training_state' is damaged: its checksum is wrong" in err, err


def test_a_callback_that_stops_each_job(tmp_path):
    job = PROGRAM.replace("Stop(), Checkpoints", "StopJob(), Checkpoints").replace("class Seen", """class StopJob(Callback):
    not_restored = ("epochs",)
    epochs = 0
    def on_epoch_end(self, epoch, logs=None):
        self.epochs += 1
        if self.epochs == 2:
            self.model.stop_training = True

class Seen""")
    (whole,), _, _ = train(0, tmp_path / "whole", "rows")
    for _ in range(len(whole["epochs"]) // 2):
        train(0, tmp_path / "run", "rows", program=job)
    assert train(0, tmp_path / "run", "rows", program=job)[0][0]["losses"] == whole["losses"]
