"""Seeds reproduce within a process: an operation's draws depend only on its seed and on how often it has run. Parameters of random
functions may be tensors."""

import os

os.environ["KERAS_BACKEND"] = "syncline"

import keras
import numpy as np
import pytest

import syncline as K
from launching import run

DRAWS = [
    lambda seed: K.random_normal((5,), seed=seed),
    lambda seed: K.random_uniform((5,), seed=seed),
    lambda seed: K.random_binomial((50,), 0.5, seed=seed),
    lambda seed: K.truncated_normal((5,), seed=seed),
    lambda seed: K.dropout(K.ones((50,)), 0.5, seed=seed),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_equal_seeds_draw_equal_sequences_whatever_else_has_run(draw):
    a, b = draw(3), draw(3)
    first, second = K.eval(a), K.eval(a)
    assert not np.array_equal(first, second)
    K.eval(K.random_uniform((2,)))
    np.testing.assert_array_equal(K.eval(b), first)
    np.testing.assert_array_equal(K.eval(b), second)


def test_functions_share_an_operation():
    a = K.random_normal((5,), seed=3)
    one, other = K.function([], [a]), K.function([], [a * 1.0])
    drawn = [one([])[0], other([])[0], one([])[0]]
    again = K.function([], [K.random_normal((5,), seed=3)])
    for numbers in drawn:
        np.testing.assert_array_equal(again([])[0], numbers)


def test_a_loop_draws_what_an_equal_loop_draws():
    def loop():
        x = K.constant(np.ones((2, 3, 40)))
        outputs = K.rnn(lambda e, s: (K.dropout(e, 0.5, seed=3), s), x, [])[1]
        return K.function([], [outputs])

    a, b = loop(), loop()
    first, second = a([])[0], a([])[0]
    assert not np.array_equal(first, second) and not np.array_equal(first[:, 0], first[:, 1])
    np.testing.assert_array_equal(b([])[0], first)
    np.testing.assert_array_equal(b([])[0], second)


def test_equal_initializers_give_equal_weights():
    layers = [keras.layers.Dense(2, kernel_initializer=keras.initializers.RandomNormal(seed=3)) for _ in range(2)]
    for layer in layers:
        layer.build((None, 4))
    np.testing.assert_array_equal(*(layer.get_weights()[0] for layer in layers))


@pytest.mark.parametrize("clear", [False, True])
def test_a_rebuilt_model_trains_alike(clear):
    x, y = np.random.RandomState(0).rand(40, 6), np.random.RandomState(1).rand(40, 1)

    def losses():
        np.random.seed(1)
        inner = keras.layers.LSTM(4, dropout=0.5, recurrent_dropout=0.5)
        model = keras.Sequential([keras.layers.Reshape((3, 2), input_shape=(6,)), inner, keras.layers.Dropout(0.5), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        return model.fit(x, y, epochs=3, batch_size=8, verbose=0).history["loss"]

    first = losses()
    K.eval(K.random_normal((3,)))
    if clear:
        K.clear_session()
    assert losses() == first


def test_parameters_may_be_tensors_and_arrays():
    rate, wide = K.variable(0.25), K.variable([0.0, 100.0])
    assert abs(K.eval(K.random_binomial((20000,), p=rate)).mean() - 0.25) < 0.02
    assert K.eval(K.random_binomial((20000,), p=rate, dtype="int32")).dtype == np.int32
    kept = K.eval(K.dropout(K.ones((20000,)), level=rate))
    assert set(np.unique(kept)) == {np.float32(0), np.float32(4 / 3)} and abs((kept == 0).mean() - 0.25) < 0.02
    shared = K.eval(K.dropout(K.ones((200, 4)), rate, noise_shape=(200, 1)))
    assert (shared == shared[:, :1]).all() and 0 < (shared == 0).mean() < 1
    for normal in (K.random_normal, K.truncated_normal):
        drawn = K.eval(normal((20000, 2), mean=wide, stddev=K.sqrt(rate)))
        np.testing.assert_allclose(drawn.mean(axis=0), [0, 100], atol=0.05)
        numbers = K.eval(normal((3,), mean=2.0, stddev=0.5, seed=1))
        np.testing.assert_allclose(K.eval(normal((3,), mean=K.constant(2.0), stddev=0.5, seed=1)), numbers, rtol=1e-6)
    uniform = K.eval(K.random_uniform((20000, 2), minval=wide, maxval=wide + 2))
    assert (uniform >= [0, 100]).all() and (uniform < [2, 102]).all()
    whole = K.eval(K.random_uniform((1000,), K.constant(-3, "int32"), K.constant(4, "int32"), dtype="int32"))
    assert set(whole) == set(range(-3, 4))
    drawn = K.eval(K.random_normal((2,), mean=np.array([1.0, 2.0]), stddev=np.float32(0)))
    np.testing.assert_array_equal(drawn, [1, 2])


NO_UNIFORM = [
    (K.constant(0, "int8"), 1000, "int8"),
    (-1, K.constant(4, "uint8"), "uint8"),
    (K.constant(0, "int32"), 5e9, "int32"),
    ([0, 1], [300, 301], "int8"),
    (K.constant(3, "int32"), 3, "int32"),
    (0, 1e6, "float16"),
    (K.constant(0, "float16"), 1e6, "float16"),
    (K.constant(0.0), float("nan"), "float32"),
    (float("-inf"), K.variable(1.0), "float32"),
    (K.variable(1.0), 1e39, "float32"),
    (1, [5, 0], "float32"),
    (K.constant(-3e38), 3e38, "float32"),
]


@pytest.mark.parametrize("low, high, dtype", NO_UNIFORM, ids=repr)
def test_numbers_beside_a_tensor_are_bounds_of_the_dtype(low, high, dtype):
    with pytest.raises(ValueError, match="does not fit|range|finite|interval"):
        K.random_uniform((2,), low, high, dtype)


def test_parameters_that_are_known_are_checked_beside_tensors():
    mean = K.variable(0.0)
    for draw in (K.random_normal, K.truncated_normal):
        for stddev in (-1, [1, -1], K.constant(-1.0)):
            with pytest.raises(ValueError, match="stddev is -1"):
                draw((2,), mean, stddev)
        with pytest.raises(TypeError, match="cannot draw numbers of int32"):
            draw((2,), mean, 1.0, "int32")
    for p in ([0.5, 2], np.array([-1, 1])):
        with pytest.raises(ValueError, match="give a probability"):
            K.random_binomial((2,), p)


def test_the_range_of_halves_may_be_beyond_their_dtype():
    for low in (-60000, K.constant(-60000, "float16")):
        drawn = K.eval(K.random_uniform((5000,), low, 60000, "float16")).astype("float32")
        assert -60000 <= drawn.min() < -59000 and 59000 < drawn.max() <= 60000 and abs(drawn.mean()) < 3000


def test_parameters_have_gradients():
    mean, stddev = K.variable(1.0), K.variable(2.0)
    drawn = K.random_normal((1000,), mean, stddev, seed=3)
    value, to_mean, to_stddev = K.function([], [drawn, *K.gradients(K.sum(drawn), [mean, stddev])])([])
    assert to_mean == 1000
    np.testing.assert_allclose(to_stddev, (value - 1).sum() / 2, rtol=1e-4)


def test_a_level_that_is_changed():
    level = K.variable(0.0)
    f = K.function([], [K.dropout(K.ones((1000,)), level)])
    assert f([])[0].min() == 1
    K.set_value(level, 0.9)
    assert 0.8 < (f([])[0] == 0).mean() < 0.97
    with pytest.raises(ValueError, match="scalar"):
        K.dropout(K.ones((2,)), K.variable([0.1, 0.2]))


# NumPy's generators differ between ranks, as after draws by threads.
PROGRAM = """
    import numpy as np, keras
    from syncline import distributed
    np.random.seed(10 + distributed.rank())
    for _ in range(2):
        model = keras.Sequential([keras.layers.Dense(3, input_shape=(4,)), keras.layers.Dropout(0.5)])
        model.compile("sgd", "mse")
        model.fit(np.ones((8, 4)), np.ones((8, 3)), epochs=2, verbose=0, shuffle=False)
        print(float(sum(np.abs(w).sum() for w in model.get_weights())))
"""


def test_seeds_are_rank_0s():
    together, alone = ([float(line) for line in run(ranks, PROGRAM).split()] for ranks in (2, 0))
    assert len(alone) == 2
    np.testing.assert_allclose(together, alone, rtol=1e-5)


SHUFFLED = """
import keras, numpy as np
from syncline import distributed

class Plots(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs):
        if distributed.rank() == 0:
            np.random.choice(100, 5)

np.random.seed(3)
x = np.random.rand(24, 4)
model = keras.Sequential([keras.layers.Dense(1, input_shape=(4,))])
model.compile(keras.optimizers.SGD(0.5), "mse")
history = model.fit(x, x.sum(axis=1), batch_size=4, epochs=4, verbose=0, callbacks=[Plots()])
print(*history.history["loss"])
"""


def test_a_callback_of_one_rank_may_draw():
    together, alone = ([float(loss) for loss in run(ranks, SHUFFLED).split()] for ranks in (2, 0))
    assert len(alone) == 4
    np.testing.assert_allclose(together, alone, rtol=1e-4)


def test_the_range_of_integers_may_be_beyond_their_dtype():
    drawn = K.eval(K.random_uniform((5000,), K.constant(-100, "int8"), K.constant(100, "int8"), dtype="int8"))
    assert drawn.min() < -90 and drawn.max() > 90 and -100 <= drawn.min() and drawn.max() < 100


def test_a_level_of_one_has_gradients_of_zero():
    x, level = K.variable(np.ones((3, 4))), K.variable(1.0)
    for gradient in K.gradients(K.sum(K.dropout(x, level)), [x, level]):
        assert not K.eval(gradient).any()
