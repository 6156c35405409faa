"""Times one epoch of Keras's `fit` in a new process, including what fit builds before the first step (wall time).

keras_fit.py --model cnn|lstm --threads T --steps N --json

Runs Keras 2.3.1 on Syncline with KERAS_BACKEND=syncline, otherwise Keras 2 on TensorFlow (tf_keras). The networks are
those of measure.py, with Keras's losses and accuracy. The data are N batches, but at most 60,000 random images (cnn) or
25,000 random texts (lstm), which fit shuffles.
"""

import os
import time

import measure
import numpy

SAMPLES = {"cnn": 60000, "lstm": 25000}


def syncline_keras(threads):
    import keras
    from syncline import _core

    _core.set_threads(threads)
    return keras, f"Keras {keras.__version__} on Syncline"


def tensorflow_keras(threads):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    import tf_keras as keras

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return keras, f"TensorFlow {tf.__version__}, tf_keras {keras.__version__}"


def network(keras, model):
    layers = keras.layers
    if model == "lstm":
        net = keras.models.Sequential(
            [
                layers.Embedding(measure.WORDS, 128, input_length=measure.INPUT["lstm"][0]),
                layers.LSTM(128),
                layers.Dense(1, activation="sigmoid"),
            ]
        )
        net.compile(loss="binary_crossentropy", optimizer=keras.optimizers.Adam(0.001), metrics=["accuracy"])
        return net
    net = keras.models.Sequential(
        [
            layers.Conv2D(32, (3, 3), activation="relu", input_shape=measure.INPUT["cnn"]),
            layers.Conv2D(64, (3, 3), activation="relu"),
            layers.MaxPooling2D((2, 2)),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    net.compile(
        loss="categorical_crossentropy", optimizer=keras.optimizers.Adadelta(1.0, rho=0.95), metrics=["accuracy"]
    )
    return net


def data(keras, model, samples):
    random = numpy.random.default_rng(1)
    if model == "lstm":
        return random.integers(0, measure.WORDS, (samples, *measure.INPUT[model])), random.integers(0, 2, samples)
    x = random.random((samples, *measure.INPUT[model]), dtype=numpy.float32)
    return x, keras.utils.to_categorical(random.integers(0, 10, samples), 10)


def main():
    args = measure.arguments(models=SAMPLES)
    import_keras = syncline_keras if os.environ.get("KERAS_BACKEND") == "syncline" else tensorflow_keras
    keras, version = import_keras(args.threads)
    batch = measure.BATCH[args.model]
    net = network(keras, args.model)
    x, y = data(keras, args.model, min(SAMPLES[args.model], args.steps * batch))
    start = time.perf_counter()
    net.fit(x, y, batch_size=batch, epochs=1, verbose=0)
    seconds = time.perf_counter() - start
    measure.report(args, seconds / -(-len(x) // batch), version, fit_s=seconds)


if __name__ == "__main__":
    main()
