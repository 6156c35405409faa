"""Callbacks decide as Keras's own do, on random sequences of losses, in unbroken trainings and resumed after each epoch."""

import json
import math
import os
import random
import subprocess
import warnings

os.environ["KERAS_BACKEND"] = "syncline"

import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import backend as K  # noqa: E402

PROGRAM = os.environ["CALLBACK_DECISIONS"]
EPOCHS = 14


class Optimizer:
    def __init__(self, rate):
        self.lr = K.variable(rate, dtype="float64")


class Model:
    """The parts of a model that these callbacks use. Its weight counts epochs."""

    def __init__(self, rate):
        self.optimizer = Optimizer(rate)
        self.stop_training = False
        self.weight = 0

    def get_weights(self):
        return self.weight

    def set_weights(self, weight):
        if weight is not None:  # None: no epoch was better. Keras fails, our callback keeps the weights
            self.weight = weight


def decided_by_keras(training):
    model = Model(training["learning_rate"])
    callback = getattr(keras.callbacks, training["callback"])(**training["options"])
    callback.set_model(model)
    callback.on_train_begin()
    rates = []
    for epoch, loss in enumerate(training["losses"]):
        model.weight += 1
        callback.on_epoch_end(epoch, {training["options"]["monitor"]: math.nan if loss is None else loss})
        rates.append(float(K.get_value(model.optimizer.lr)))
        if model.stop_training:
            break
    return {"rates": rates, "weight": model.weight}


def losses_of(draw):
    """A random walk on a coarse grid, so that ties and changes of exactly min_delta occur. None stands for NaN."""
    losses, loss = [], 1.0
    for _ in range(EPOCHS):
        loss += draw.choice([-0.3, -0.2, -0.1, -0.1, 0.0, 0.0, 0.1, 0.2])
        losses.append(None if draw.random() < 0.05 else loss)
    return losses


def options_of(draw, callback):
    options = {
        "monitor": draw.choice(["loss", "val_loss", "val_accuracy"]),
        "min_delta": draw.choice([0, 0.1, 0.25]),
        "patience": draw.choice([0, 1, 2, 3, 5]),
        "mode": draw.choice(["auto", "min", "max"]),
    }
    if callback == "EarlyStopping":
        return options | {
            "baseline": draw.choice([None, None, 0.7, 1.3]),
            "restore_best_weights": draw.random() < 0.5,
        }
    return options | {
        "factor": draw.choice([0.1, 0.5, 0.9]),
        "cooldown": draw.choice([0, 1, 3]),
        "min_lr": draw.choice([0, 0.3, 0.01]),
    }


def test_decides_as_keras_does():
    draw = random.Random(7)
    trainings = []
    for i in range(400):
        callback = ("EarlyStopping", "ReduceLROnPlateau")[i % 2]
        trainings.append(
            {
                "callback": callback,
                "options": options_of(draw, callback),
                "losses": losses_of(draw),
                "learning_rate": draw.choice([1.0, 0.7]),
            }
        )
    done = subprocess.run([PROGRAM], input=json.dumps(trainings), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    ours = json.loads(done.stdout)
    assert len(ours) == len(trainings)
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        for training, decided in zip(trainings, ours):
            assert decided.pop("same_when_cut"), training
            assert decided == decided_by_keras(training), training
    lengths = {len(decided["rates"]) for decided in ours}
    assert len(lengths) > 5, "these trainings decide nothing"
