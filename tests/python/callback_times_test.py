"""syncline.keras_support.callback_times: Keras's medians equal numpy's, and Keras still warns of slow callbacks."""

import collections
import os
import time

import numpy as np
import pytest

os.environ["KERAS_BACKEND"] = "syncline"

import keras  # noqa: E402
import keras.callbacks.callbacks as callbacks  # noqa: E402


def test_medians():
    assert callbacks.deque is not collections.deque and collections.deque.__module__ == "collections"
    random, times = np.random.RandomState(1), callbacks.deque([], maxlen=10)
    for _ in range(25):
        times.append(random.rand())
        assert np.median(times) == pytest.approx(np.median(list(times)), rel=1e-15)
    assert np.mean(times) == np.mean(list(times)) and np.median(times, axis=0) == np.median(list(times), axis=0)
    with pytest.warns(RuntimeWarning):  # from numpy, for an empty deque
        assert np.isnan(np.median(callbacks.deque()))


def test_a_slow_callback_is_reported():
    model = keras.models.Sequential([keras.layers.Dense(1, input_shape=(2,))])
    model.compile("sgd", "mse")
    slow = keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: time.sleep(0.15))
    x = np.ones((6, 2))
    with pytest.warns(RuntimeWarning, match="Method .* is slow compared to the batch update"):
        model.fit(x, x[:, :1], batch_size=1, verbose=0, callbacks=[slow])
