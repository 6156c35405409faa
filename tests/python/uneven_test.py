"""Ranks with different numbers of batches agree on the number of steps before the epoch."""

import pytest

from launching import run

PROGRAM = """
    import numpy as np
    import keras
    from keras import layers, models
    from syncline import distributed as d

    keras.backend.set_floatx("float64")
    random = np.random.RandomState(5)
    rows = [10, 23, 5][: d.size()]
    x, y = random.uniform(-1, 1, (sum(rows), 3)), random.uniform(-1, 1, (sum(rows), 2))
    begins = np.cumsum([0] + rows)
    parts = [[(x[a:b][i : i + 4], y[a:b][i : i + 4]) for i in range(0, b - a, 4)] for a, b in zip(begins, begins[1:])]

    class Batches(keras.utils.Sequence):
        def __init__(self, batches):
            self.batches = batches
        def __len__(self):
            return len(self.batches)
        def __getitem__(self, i):
            return self.batches[i]

    def network():
        start = np.random.RandomState(6)
        model = models.Sequential([layers.Dense(4, activation="tanh", input_shape=(3,)), layers.BatchNormalization(), layers.Dense(2)])
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", metrics=["mae"])
        model.set_weights([start.uniform(0.1, 1, w.shape) for w in model.get_weights()])
        return model

    def join(steps):
        batches = [[part[i] for part in parts if i < len(part)] for i in range(steps)]
        return Batches([(np.concatenate([b[0] for b in batch]), np.concatenate([b[1] for b in batch])) for batch in batches])

    own = Batches(parts[d.rank()])
    for how, steps in [("max", max(map(len, parts))), ("min", min(map(len, parts)))]:
        assert d.agree_steps(len(own), how) == steps
        model, whole = network(), network()
        with d.local_feeds():
            history = model.fit_generator(d.EvenSteps(own, how), epochs=2, shuffle=False, verbose=0).history
        expected = whole.fit_generator(join(steps), epochs=2, shuffle=False, verbose=0).history
        assert history.keys() == expected.keys()
        for name in history:
            np.testing.assert_allclose(history[name], expected[name], 1e-10, err_msg=how + " " + name)
        for a, b in zip(model.get_weights(), whole.get_weights()):
            np.testing.assert_allclose(a, b, 1e-10, 1e-10)

    # Logs of an epoch that was broken off do not count in the next one.
    logger = keras.callbacks.BaseLogger()
    logger.set_params({"metrics": ["loss"]})
    with d.local_feeds():
        for loss in 100, 1:
            logger.on_epoch_begin(0)
            logger.on_batch_end(0, {"size": 2, "loss": loss})
        logs = {}
        logger.on_epoch_end(0, logs)
    assert logs == {"loss": 1}, logs

    # The same by hand.
    model = network()
    for epoch in range(2):
        with d.local_feeds():
            for i in range(d.agree_steps(len(own), "max")):
                model.train_on_batch(*(own[i] if i < len(own) else (x[:0], y[:0])))
    whole = network()
    whole.fit_generator(join(max(map(len, parts))), epochs=2, shuffle=False, verbose=0)
    for a, b in zip(model.get_weights(), whole.get_weights()):
        np.testing.assert_allclose(a, b, 1e-10, 1e-10)

    no_batches = lambda: d.EvenSteps([own[0]][d.rank() :] if d.size() > 1 else [])
    for wrong in [lambda: d.agree_steps(-1), lambda: d.agree_steps(1, "mean"), no_batches]:
        try:
            wrong()
            raise SystemExit("no error")
        except ValueError as e:
            assert str(e).startswith(("agree_steps: ", "EvenSteps: ")), e
    print("same")
"""


@pytest.mark.parametrize("ranks", [0, 2, 3])
def test_is_one_process_on_all_rows(ranks):
    assert run(ranks, PROGRAM) == "same\n"
