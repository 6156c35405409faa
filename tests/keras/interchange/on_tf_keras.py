"""Writes a model file and a weights file with tf_keras (Keras 2 on TensorFlow 2), for tests/io/keras_files_test.cc.

usage: on_tf_keras.py OUT.json    the files, compressed, and the sum of each weight
"""

import base64
import json
import pathlib
import sys
import tempfile
import textwrap
import zlib

import numpy as np
import tf_keras as keras


def build():
    keras.utils.set_random_seed(3)
    inner = keras.Sequential([keras.layers.Dense(3, activation="relu", name="inner_dense", input_shape=(4,))], name="inner")
    x = keras.Input((6, 3))
    h = keras.layers.BatchNormalization(name="norm")(keras.layers.LSTM(4, name="lstm")(x))
    model = keras.Model(x, keras.layers.Dense(2, name="dense")(keras.layers.Dropout(0.5, name="dropout")(inner(h))))
    # A weight that belongs to no layer; the file has a separate group for it.
    model.temperature = model.add_weight(name="temperature", shape=(3,), initializer="ones", trainable=False)
    model.compile("adam", "mse")
    return model


def packed(path):
    return textwrap.wrap(base64.b64encode(zlib.compress(path.read_bytes(), 9)).decode(), 128)


if __name__ == "__main__":
    model, generator = build(), np.random.default_rng(1)
    model.fit(generator.random((8, 6, 3), "float32"), generator.random((8, 2), "float32"), epochs=1, verbose=0)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model.save(folder / "model.h5")
        model.save_weights(folder / "weights.h5")
        stored = {"model": packed(folder / "model.h5"), "weights": packed(folder / "weights.h5")}
    stored["sums"] = {w.name: float(np.sum(w.numpy(), dtype="float64")) for w in model.weights}
    stored["optimizer_sums"] = [float(np.sum(v.numpy(), dtype="float64")) for v in model.optimizer.variables]
    with open(sys.argv[1], "w", encoding="ascii") as file:
        json.dump(stored, file, indent=0)
        file.write("\n")
