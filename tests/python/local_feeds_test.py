"""Under `local_feeds` the order of batches, the epochs of Sequences and the random states after it are the same on all ranks."""

import pytest

from launching import run

BEGIN = """
    import random
    import time
    import numpy as np
    import keras
    from keras import layers, models
    from syncline import distributed as d

    rank, size = d.rank(), d.size()

    class Batches(keras.utils.Sequence):
        def __init__(self, batches=5):
            self.batches, self.epochs, self.taken = batches, 0, []
        def __len__(self):
            return self.batches
        def __getitem__(self, i):
            return np.full((2, 1), i), np.ones((2, 1))
        def on_epoch_end(self):
            self.epochs += 1

    class Slow(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(self.seconds)
        on_test_batch_end = on_train_batch_end
        def __init__(self, seconds):
            super().__init__()
            self.seconds = seconds

    def network():
        x = layers.Input((1,))
        model = models.Model(x, layers.Dense(1, use_bias=False, kernel_initializer="ones")(x))
        model.compile(keras.optimizers.SGD(0.01), "mse")
        return model
"""

PROGRAMS = {
    # A loop ends before or after Keras's thread notices the end of the epoch, every 0.1 seconds.
    "epochs_are_counted": """
    for seconds in 0, 0.15:
        source = Batches()
        model = network()
        model.evaluate_generator(source, callbacks=[Slow(seconds)])
        assert source.epochs == 1, source.epochs
        model.fit_generator(source, steps_per_epoch=5, epochs=2, verbose=0, callbacks=[Slow(seconds)])
        assert source.epochs == 3, source.epochs
        model.fit_generator(source, epochs=2, verbose=0, callbacks=[Slow(seconds)])
        assert source.epochs == 5, source.epochs
        model.fit_generator(source, steps_per_epoch=3, epochs=1, verbose=0, callbacks=[Slow(seconds)])
        assert source.epochs == 5, source.epochs
        stop = keras.callbacks.EarlyStopping("loss", patience=0, baseline=-1)
        model.fit_generator(source, epochs=9, verbose=0, callbacks=[Slow(seconds), stop])
        assert source.epochs == 6, source.epochs
        model.predict_generator(source)
        assert source.epochs == 7, source.epochs

    class Duck:  # Keras takes it for a Sequence
        use_sequence_api = True
        def __len__(self):
            return 2
        def __getitem__(self, i):
            return np.ones((2, 1)), np.ones((2, 1))
    network().evaluate_generator(Duck())
    """,
    "batches_are_shuffled_alike": """
    class Drawing(Batches):
        def __getitem__(self, i):
            random.random()
            if size > 1 and rank == 0:
                random.random()
            self.taken.append(i)
            return super().__getitem__(i)

    source = Drawing(40)
    for seed in 1, 2:
        random.seed(seed + 10 * rank)
        with d.local_feeds():
            network().fit_generator(source, epochs=3, verbose=0, workers=1)
        orders = [source.taken[i : i + 40] for i in range(0, 120, 40)]
        assert all(sorted(order) == list(range(40)) != order for order in orders) and orders[0] != orders[1]
        assert d.broadcast(orders) == orders
        first = list(range(40))
        random.seed(seed)
        random.shuffle(first)
        assert orders[0] == first  # as in one process
        source.taken.clear()
    """,
    "random_states_are_aligned": """
    with d.local_feeds():
        random.seed(rank)
        np.random.seed(rank)
        with d.local_feeds():
            pass
        own = np.random.random()
        assert size == 1 or d.all_reduce(own, "max") != d.all_reduce(own, "min")
    for number in random.random(), np.random.random():
        assert d.broadcast(number) == number
    """,
    "batches_without_rows_are_evaluated": """
    def two_inputs(x):
        return [x, x]
    def named(x):
        return {"a": x, "b": x}
    for inputs in None, two_inputs, named:
        x = layers.Input((1,), name="a")
        y = x if inputs is None else layers.add([x, layers.Input((1,), name="b")])
        all_inputs = x if inputs is None else [x, y._keras_history[0].input[1]]
        model = models.Model(all_inputs, layers.Dense(1, kernel_initializer="ones")(y))
        model.compile(keras.optimizers.SGD(0.0), "mse", metrics=["mean_absolute_error"])
        rows = np.arange(24.0).reshape(6, 4, 1)
        form = inputs or (lambda x: x)
        class Own(keras.utils.Sequence):
            def __len__(self):
                return 4 - 2 * rank
            def __getitem__(self, i):
                return form(rows[i]), rows[i]
        total = rows[:4].ravel() * (1 if inputs is None else 2)
        expected = np.average(abs(total - rows[:4].ravel()), weights=np.repeat([size, size, 1, 1], 4))
        for workers in 0, 1:
            with d.local_feeds():
                loss, error = model.evaluate_generator(d.EvenSteps(Own()), workers=workers)
                history = model.fit_generator(
                    d.EvenSteps(Own()), epochs=1, verbose=0, validation_data=d.EvenSteps(Own()), workers=workers
                ).history
            np.testing.assert_allclose(error, expected, 1e-5)
            np.testing.assert_allclose(history["val_mean_absolute_error"], expected, 1e-5)
    """,
    # Functions that are not the loop's compare their feeds at each call.
    "functions_of_callbacks": """
    import warnings
    from keras import backend as K
    x = K.placeholder((None, 1))
    double = K.function([x], [2 * x])
    class Calls(keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            value = double([np.full((2, 1), 1.0 + (rank if batch == 2 else 0))])[0]
            assert (value == 2).all(), value

    other = network()
    class Predicts(keras.callbacks.Callback):
        def on_batch_end(self, batch, logs=None):
            value = other.predict_on_batch(np.full((2, 1), 1.0 + (rank if batch == 2 else 0)))
            assert (value == 1).all(), value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for callback in Calls(), Predicts():
            network().fit(np.ones((8, 1)), np.ones((8, 1)), batch_size=2, verbose=0, callbacks=[callback])
    """,
}


@pytest.mark.parametrize("ranks", [0, 2])
@pytest.mark.parametrize("program", PROGRAMS)
def test_local_feeds(program, ranks):
    assert run(ranks, BEGIN + PROGRAMS[program].rstrip() + "\n    print('done')\n", limit=180) == "done\n"
