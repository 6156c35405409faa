"""Layers that are called several times: a shared weight is updated once per step, and each call has its own updates."""

import os

os.environ["KERAS_BACKEND"] = "syncline"

import keras
import keras.utils.generic_utils
import numpy as np
import pytest

import syncline as K
from syncline import distributed

X, Y = np.random.RandomState(0).rand(16, 5, 3), np.random.RandomState(1).rand(16, 5, 2)


def trained(wrappers, optimizer, accumulated=0):
    """Trains a dense layer in this number of wrappers. Returns its weights and the number of products in the training function's plan."""
    inner = keras.layers.Dense(2, kernel_initializer=keras.initializers.RandomNormal(seed=3))
    i, j = keras.layers.Input((5, 3)), keras.layers.Input((5, 3))
    layers = [keras.layers.TimeDistributed(inner) for _ in range(wrappers)]
    outputs = [layers[n % wrappers](x) for n, x in enumerate([i, j])]
    model = keras.Model([i, j], keras.layers.add(outputs))
    optimizer = keras.optimizers.get(optimizer)
    model.compile(distributed.accumulate_gradients(optimizer, accumulated) if accumulated else optimizer, "mse")
    assert len(model.trainable_weights) == 2 * wrappers
    model.fit([X, X + 1], Y, epochs=2, batch_size=8, verbose=0, shuffle=False)
    return inner.get_weights(), sum("dot" in step["label"] for step in model.train_function.steps())


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "rmsprop"])
def test_one_gradient_one_step(optimizer):
    once, products = trained(1, optimizer)
    twice, products_of_two = trained(2, optimizer)
    assert products == products_of_two
    for a, b in zip(once, twice):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_with_accumulated_gradients():
    for a, b in zip(trained(1, "sgd", 2)[0], trained(2, "sgd", 2)[0]):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_running_statistics_move_once_a_call():
    normalize = keras.layers.BatchNormalization(momentum=0.5)
    i, j = keras.layers.Input((3,)), keras.layers.Input((3,))
    model = keras.Model([i, j], keras.layers.add([normalize(i), normalize(j)]))
    model.compile("sgd", "mse")
    model.train_on_batch([np.full((4, 3), 8.0), np.full((4, 3), 16.0)], np.zeros((4, 3)))
    np.testing.assert_allclose(K.get_value(normalize.moving_mean), 0.5 * (0.5 * 0 + 0.5 * 8) + 0.5 * 16)


def test_keras_distinguishes_tensors_that_are_gone():
    keys = {keras.utils.generic_utils.object_list_uid([K.placeholder((None, 1)), None]) for _ in range(1000)}
    assert len(keys) == 1000
    x = K.placeholder((None, 1))
    assert keras.utils.generic_utils.object_list_uid(x) == keras.utils.generic_utils.object_list_uid([x])


def test_updates_belong_to_the_inputs_of_their_call():
    layer = keras.layers.BatchNormalization()
    layer.build((None, 1))
    for _ in range(100):
        layer.call(K.placeholder((None, 1)), training=True)
    assert not layer.get_updates_for(K.placeholder((None, 1)))
