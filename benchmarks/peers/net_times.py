"""Times a network of keras_nets.py in one process: net_times.py --model NAME --threads T --json [--jit]

Keras 2.3.1 on Syncline with KERAS_BACKEND=syncline, otherwise tf_keras on TensorFlow; --jit lets TensorFlow compile with XLA.
One line of JSON. Times in ms, each the least of at least 5 calls and 2 s: train_ms (train_on_batch, Adam), predict_ms
(predict_on_batch of the same batch), predict_one_ms (of one row); first_ms is the first train_on_batch, which makes the
plan. train_peak_mib is the peak memory of the process until then.
"""

import os
import sys
import time

import keras_fit
import keras_nets
import measure
import numpy

LEAST_CALLS, LEAST_SECONDS = 5, 2.0


def least_ms(call):
    times, begin = [], time.perf_counter()
    while len(times) < LEAST_CALLS or time.perf_counter() - begin < LEAST_SECONDS:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def main():
    jit = "--jit" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--jit"]
    args = measure.arguments(models=keras_nets.NETS)
    ours = os.environ.get("KERAS_BACKEND") == "syncline"
    keras, version = (keras_fit.syncline_keras if ours else keras_fit.tensorflow_keras)(args.threads)
    net = keras_nets.NETS[args.model]
    random = numpy.random.default_rng(1)
    x, one = net.feeds(random, net.batch), net.feeds(random, 1)
    y = keras.utils.to_categorical(random.integers(0, keras_nets.CLASSES, net.batch), keras_nets.CLASSES)
    model = net.build(keras)
    options = {"jit_compile": True} if jit else {}
    model.compile(loss="categorical_crossentropy", optimizer=keras.optimizers.Adam(0.001), **options)
    start = time.perf_counter()
    model.train_on_batch(x, y)
    first_ms = (time.perf_counter() - start) * 1e3
    train_ms = least_ms(lambda: model.train_on_batch(x, y))
    peak_mib = measure.peak_mib()
    model.predict_on_batch(x)
    predict_ms = least_ms(lambda: model.predict_on_batch(x))
    model.predict_on_batch(one)
    measure.report(
        args,
        train_ms / 1e3,
        version,
        batch=net.batch,
        samples_per_s=net.batch / train_ms * 1e3,
        first_ms=first_ms,
        train_ms=train_ms,
        predict_ms=predict_ms,
        predict_one_ms=least_ms(lambda: model.predict_on_batch(one)),
        train_peak_mib=peak_mib,
    )


if __name__ == "__main__":
    main()
