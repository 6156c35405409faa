"""Runs one of Keras's examples, unmodified, on small data and for a few steps, and writes the histories of its training.

usage: run_example.py EXAMPLE.py HISTORIES.json BATCHES [--whole | --steps N]     (in a folder that made_data.write_files filled)

Loaders of data sets return Fashion-MNIST's first rows or made data. fit and fit_generator run at most two epochs of a few batches, and
an example that loops by itself ends after a few calls. --whole: the example's own numbers of epochs, batches and calls. --steps: at most
N batches in the epochs of a fit together.
stand_ins.py provides what else an example needs.
Threads of fit_generator draw samples in an undefined order. If the file BATCHES exists, all ranks read the generators' batches from it;
otherwise rank 0 writes its batches to it.
"""

import json
import os
import pickle
import random
import runpy
import sys

import numpy as np
import stand_ins

SAMPLES, TEST_SAMPLES = 512, 900
EPOCHS, BATCHES, CALLS, STEPS = 2, 2, 3, 4
# The first two reshape all of MNIST. One step of the third takes a trillion operations.
NEED_ALL_IMAGES = ("antirectifier", "mnist_mlp")
LARGE = ("conv_lstm",)
# It plots all the epochs that it requested.
ALL_EPOCHS = ("reuters_mlp_relu_vs_selu",)
# These do not train. PREDICT: records predictions. FOLLOW_GRADIENTS: they optimize a picture; records the results of K.function.
PREDICT = ("lstm_seq2seq_restore", "class_activation_maps")
FOLLOW_GRADIENTS = ("conv_filter_visualization", "deep_dream", "neural_doodle", "neural_style_transfer")
# Ends after one call of fit: the next one would load weights of an epoch that is not reached here.
ONCE = ("image_ocr",)

histories = []


class Enough(Exception):
    """Ends an example after enough calls."""


def replace_loaders(keras, name, samples):
    import made_data

    rows = (60000, 10000) if name in NEED_ALL_IMAGES else (samples, TEST_SAMPLES)

    def loaders(load):
        return lambda *_, **options: load(options)

    def words(classes):
        return loaders(lambda o: made_data.sequences(samples, TEST_SAMPLES, o.get("num_words"), classes))

    for data_set in ("mnist", "fashion_mnist"):
        getattr(keras.datasets, data_set).load_data = loaders(lambda _: made_data.images(*rows))
    keras.datasets.cifar10.load_data = loaders(lambda _: made_data.colour_images(samples, TEST_SAMPLES))
    keras.datasets.imdb.load_data = words(2)
    keras.datasets.imdb.get_word_index = keras.datasets.reuters.get_word_index = lambda *_, **__: {}
    keras.datasets.reuters.load_data = words(46)

    def get_file(fname, *_, **__):
        if not os.path.exists(fname):
            raise OSError(f"{fname} is a download")
        return os.path.abspath(fname)

    keras.utils.get_file = keras.utils.data_utils.get_file = get_file


def first_rows(data, rows):
    if isinstance(data, dict):
        return {name: first_rows(part, rows) for name, part in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(first_rows(part, rows) for part in data)
    return data if data is None else data[:rows]


def record(values):
    histories.append({name: [float(v) for v in row] for name, row in values.items()})


def shorten_training(Model, whole, batches, max_epochs, calls=CALLS):
    fit, fit_generator, train_on_batch = Model.fit, Model.fit_generator, Model.train_on_batch
    inside = []

    def run(method, *arguments, **options):
        inside.append(True)
        try:
            history = method(*arguments, **options)
        finally:
            inside.pop()
        record(history.history)
        if len(histories) >= calls and not whole:
            raise Enough
        return history

    def short_fit(self, x=None, y=None, batch_size=None, epochs=1, *arguments, **options):
        if not whole:
            rows = (batch_size or 32) * batches
            x, y = first_rows(x, rows), first_rows(y, rows)
            if options.get("validation_data") is not None:
                options["validation_data"] = first_rows(options["validation_data"], (batch_size or 32) * 2)
            epochs = min(epochs, max_epochs)
        return run(fit, self, x, y, batch_size, epochs, *arguments, **options)

    def short_fit_generator(self, generator, steps_per_epoch=None, epochs=1, *arguments, **options):
        if not whole:
            steps_per_epoch, epochs = min(steps_per_epoch or batches, batches), min(epochs, max_epochs)
            options["validation_steps"] = min(options.get("validation_steps") or batches, batches)
        return run(fit_generator, self, generator, steps_per_epoch, epochs, *arguments, **options)

    def recorded_step(self, *arguments, **options):
        values = train_on_batch(self, *arguments, **options)
        if not inside:
            record({"train_on_batch": np.ravel(values)})
            if len(histories) >= STEPS and not whole:
                raise Enough
        return values

    Model.fit, Model.fit_generator, Model.train_on_batch = short_fit, short_fit_generator, recorded_step


def follow_batches(data_utils, path):
    """Returns a list to which fit_generator appends each batch that it takes. It takes the batches of the file, if there is one."""
    taken, stored = [], None
    if os.path.exists(path):
        with open(path, "rb") as file:
            stored = iter(pickle.load(file))

    def follow(get):
        def batches(self):
            for batch in stored or get(self):
                taken.append(batch)
                yield batch

        return batches

    for kind in (data_utils.OrderedEnqueuer, data_utils.GeneratorEnqueuer):
        kind.get = follow(kind.get)
    return taken


def record_predictions(Model):
    predict = Model.predict

    def recorded(self, *arguments, **options):
        values = predict(self, *arguments, **options)
        if len(histories) < 20:
            record({"predict": np.ravel(values[0])})
        return values

    Model.predict = recorded


def record_functions(K):
    function = K.function

    def recorded(*arguments, **options):
        call = function(*arguments, **options)

        def record_call(inputs):
            values = call(inputs)
            record({f"function_{i}": [np.mean(v), np.std(v), *np.ravel(v)[:10]] for i, v in enumerate(values)})
            if len(histories) >= STEPS:
                raise Enough
            return values

        return record_call

    K.function = recorded


def main(example, output, batches, *options):
    random.seed(0)
    np.random.seed(0)
    import keras

    name = os.path.splitext(os.path.basename(example))[0]
    batches_of_epoch = int(options[1]) // EPOCHS if "--steps" in options else BATCHES
    replace_loaders(keras, name, max(SAMPLES, 128 * batches_of_epoch))
    size = (1, 1) if name in LARGE else (batches_of_epoch, 1000 if name in ALL_EPOCHS else EPOCHS)
    shorten_training(keras.engine.training.Model, "--whole" in options, *size, 1 if name in ONCE else CALLS)
    taken = follow_batches(keras.utils.data_utils, batches)
    sys.argv = [example]
    stand_ins.install(keras, name)
    if name in PREDICT:
        record_predictions(keras.engine.training.Model)
    if name in FOLLOW_GRADIENTS:
        record_functions(keras.backend)
    sys.path.insert(0, os.path.dirname(example))
    try:
        runpy.run_path(example, run_name="__main__")
    except Enough:
        pass
    from syncline import distributed

    if not histories:
        sys.exit("no training was seen")
    if distributed.rank() == 0:
        with open(output, "w", encoding="utf-8") as file:
            json.dump(histories, file)
        if not os.path.exists(batches):
            with open(batches, "wb") as file:
                pickle.dump(taken, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
