"""An ordinary Keras script, which uses its rank only to name its output. distributed_keras_test.py runs it in one process and on ranks.

training_program.py FLOATX FOLDER VALUES: runs every scenario in FOLDER and writes to VALUES.RANK, as JSON, the numbers that must be the
same on any number of ranks: for each scenario, numbers by name.
"""

import csv
import json
import os
import sys

import keras
import numpy as np
from keras import backend as K
from keras import callbacks, layers, models

SCENARIOS = []


def scenario(function):
    SCENARIOS.append(function)
    return function


class Batches(keras.utils.Sequence):
    def __init__(self, x, y, batch=16):
        self.x, self.y, self.batch = x, y, batch

    def __len__(self):
        return -(-len(self.x) // self.batch)

    def __getitem__(self, i):
        rows = slice(i * self.batch, (i + 1) * self.batch)
        return self.x[rows], self.y[rows]


def data(rows=101, classes=3):
    random = np.random.RandomState(7)
    x = random.uniform(-1, 1, (rows, 6))
    return x, keras.utils.to_categorical((x @ random.uniform(-1, 1, (6, classes))).argmax(axis=1), classes)


def network(batch_norm=True, lr=0.1, metrics=("accuracy",)):
    model = models.Sequential()
    model.add(layers.Dense(8, activation="relu", input_shape=(6,)))
    if batch_norm:
        model.add(layers.BatchNormalization())
        model.add(layers.Dropout(0.25))
    model.add(layers.Dense(3, activation="softmax"))
    model.compile(keras.optimizers.SGD(lr, momentum=0.9), "categorical_crossentropy", metrics=list(metrics))
    return model


def flat(values):
    return np.concatenate([np.ravel(v) for v in values]).tolist() if values else []


def fit(model, *arguments, **options):
    options = {"batch_size": 16, "epochs": 4, "verbose": 1, **options}
    return {name: [float(v) for v in values] for name, values in model.fit(*arguments, **options).history.items()}


@scenario
def uneven_last_batch_and_statistics():
    model = network()
    history = fit(model, *data(), validation_split=0.23)
    return {**history, "weights": flat(model.get_weights())}


@scenario
def evaluate_predict_and_batches():
    x, y = data()
    model = network()
    on_batch = [model.train_on_batch(x[:19], y[:19]) for _ in range(3)]
    return {
        "on_batch": flat(on_batch),
        "test_on_batch": flat([model.test_on_batch(x[:7], y[:7])]),
        "evaluate": flat([model.evaluate(x, y, batch_size=32, verbose=0)]),
        "predict": flat([model.predict(x, batch_size=30)]),
        "one_row": flat([model.predict(x[:1])]),
    }


@scenario
def sample_and_class_weights():
    x, y = data()
    model = network(metrics=["mae"])
    weights = np.linspace(0, 2, len(x))
    history = fit(model, x, y, sample_weight=weights, validation_data=(x[:33], y[:33], weights[:33]))
    history.update({"class_" + k: v for k, v in fit(model, x, y, class_weight={0: 3.0, 1: 1.0, 2: 0.25}).items()})
    return history


@scenario
def stateful_metrics():
    metrics = keras.metrics
    model = network(metrics=[metrics.Precision(), metrics.Recall(), metrics.AUC(num_thresholds=20), metrics.CategoricalAccuracy()])
    x, y = data()
    history = fit(model, x, y, validation_data=(x[:41], y[:41]))
    # Keras appends numbers to the names of metrics.
    return {name.rstrip("_0123456789"): values for name, values in history.items()}


@scenario
def early_stopping():
    x, y = data()
    stop = callbacks.EarlyStopping(monitor="val_loss", patience=1, restore_best_weights=True)
    model = network(lr=1.0)
    history = fit(model, x, y, validation_split=0.3, epochs=12, callbacks=[stop])
    return {**history, "stopped": stop.stopped_epoch, "best": float(stop.best), "weights": flat(model.get_weights())}


@scenario
def learning_rates():
    x, y = data()
    plateau = callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, min_delta=0.02)
    history = fit(network(), x, y, epochs=8, callbacks=[plateau])
    schedule = callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.7, verbose=1)
    history.update({"scheduled_" + k: v for k, v in fit(network(), x, y, callbacks=[schedule]).items()})
    return history


@scenario
def terminate_on_nan():
    x, y = data()
    model = network(batch_norm=False)
    y = y.copy()
    y[20] = np.inf
    history = fit(model, x, y, shuffle=False, callbacks=[callbacks.TerminateOnNaN()])
    return {"epochs": len(history["loss"]), "finite": float(np.isfinite(history["loss"][-1]))}


@scenario
def checkpoints_and_logs():
    x, y = data()
    model = network()
    best = callbacks.ModelCheckpoint("best.h5", monitor="val_loss", save_best_only=True, verbose=1)
    each = callbacks.ModelCheckpoint("weights.{epoch:02d}-{val_loss:.2f}.h5", save_weights_only=True)
    fit(model, x, y, validation_split=0.3, epochs=5, callbacks=[best, each, callbacks.CSVLogger("log.csv")])
    loaded = models.load_model("best.h5")
    model.save("last.h5")
    again = models.load_model("last.h5")
    model.save_weights("last_weights.h5")
    fresh = network()
    fresh.load_weights("last_weights.h5")
    with open("log.csv") as log:
        rows = [[float(value) for value in row.values()] for row in csv.DictReader(log)]
    return {
        "best": flat(loaded.get_weights()),
        "last": flat(again.get_weights()),
        "last_weights": flat(fresh.get_weights()),
        "went_on": flat([again.train_on_batch(x, y)]),
        "log": flat(rows),
        "files": len(os.listdir(".")),
    }


@scenario
def stateful_lstm():
    x = np.random.RandomState(1).uniform(-1, 1, (24, 5, 2))
    y = x.sum(axis=(1, 2))[:, None]
    model = models.Sequential([layers.LSTM(4, stateful=True, batch_input_shape=(6, 5, 2)), layers.Dense(1)])
    model.compile("rmsprop", "mse")
    losses = []
    for _ in range(3):
        losses += fit(model, x, y, batch_size=6, epochs=1, shuffle=False)["loss"]
        model.reset_states()
    return {"losses": losses, "predict": flat([model.predict(x, batch_size=6)]), "weights": flat(model.get_weights())}


@scenario
def generators():
    x, y = data()

    def endless():
        while True:
            for rows in range(0, 96, 24):
                yield x[rows : rows + 24], y[rows : rows + 24]

    model = network()
    result = model.fit_generator(endless(), steps_per_epoch=4, epochs=2, validation_data=endless(), validation_steps=2).history
    options = {"workers": 2, "use_multiprocessing": True}
    more = model.fit_generator(Batches(x, y), epochs=2, validation_data=Batches(x[:40], y[:40]), shuffle=False, **options).history
    result = {**result, **{"more_" + name: values for name, values in more.items()}}
    result = {name: [float(v) for v in values] for name, values in result.items()}
    result["evaluate"] = flat([model.evaluate_generator(Batches(x, y), **options)])
    result["predict"] = flat([model.predict_generator(Batches(x, y), **options)])
    return result


def main(floatx, folder, values):
    K.set_floatx(floatx)
    os.chdir(folder)
    results = {}
    for run in SCENARIOS:
        np.random.seed(11)
        results[run.__name__] = run()
    with open(values + "." + os.environ.get("OMPI_COMM_WORLD_RANK", "0"), "w") as file:
        json.dump(results, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
