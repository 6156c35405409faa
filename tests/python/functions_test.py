"""The module agrees with the documentation: names, signatures, docstrings, error types."""

import ast
import inspect
import pathlib
import pickle
import re
import typing

import numpy as np
import pytest

import syncline as K

ORACLE = pathlib.Path(__file__).parent.parent / "oracle"
# Undocumented functions that Keras 2.3.1 calls.
UNDOCUMENTED = {"is_variable", "name_scope", "size", "control_dependencies"}
# Parameters that are not documented, but that TensorFlow's functions have, too.
EXTENDED = {"function": {"name", "kwargs"}, "ctc_decode": {"merge_repeated"}}


def documented():
    rows = (ORACLE / "functions.tsv").read_text().splitlines()[1:]
    return [tuple(row.split("\t")[:2]) for row in rows]


@pytest.mark.parametrize("name, signature", documented())
def test_signature(name, signature):
    function = getattr(K, name)
    wanted = ast.parse(f"def f{signature}: pass").body[0].args
    defaults = [inspect.Parameter.empty] * (len(wanted.args) - len(wanted.defaults))
    defaults += [ast.literal_eval(d) for d in wanted.defaults]
    extra = EXTENDED.get(name, set())
    ours = [(p.name, p.default) for p in inspect.signature(function).parameters.values() if p.name not in extra]
    assert ours == [(a.arg, d) for a, d in zip(wanted.args, defaults)]
    assert inspect.getdoc(function)


@pytest.mark.parametrize("name", [name for name, _ in documented()])
def test_annotations(name):
    function = getattr(K, name)
    hints = typing.get_type_hints(function)
    assert set(hints) == set(inspect.signature(function).parameters) | {"return"}


def test_types_are_shipped():
    folder = pathlib.Path(K.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "_core.pyi").read_text()
    for name in ("class Tensor", "class Variable", "def __matmul__", "class Function", "def batch_dot"):
        assert name in stub


def test_version_is_the_projects():
    project = (pathlib.Path(__file__).parent.parent.parent / "CMakeLists.txt").read_text()
    assert K.__version__ == re.search(r"project\(syncline VERSION ([0-9.]+)", project)[1]


def test_there_are_152():
    assert len(documented()) == 152


def test_every_name_is_in_the_modules_dict():
    assert (UNDOCUMENTED | {name for name, _ in documented()}) <= set(vars(K))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: K.dot(K.placeholder((2, 3)), K.placeholder((4, 5))), ValueError, "dot"),
        (lambda: K.placeholder((2,)) + K.placeholder((2,), dtype="int32"), TypeError, "cast"),
        (lambda: K.exp("text"), TypeError, "dtype"),
        (lambda: K.exp(None), TypeError, "exp: does not take x of type NoneType"),
        (lambda: K.dot(K.ones((2, 2)), None), TypeError, "dot: does not take x of type Variable and shape (2, 2), y of type NoneType"),
        (lambda: K.dot(K.ones((2, 2))), TypeError, "missing 1 required"),
        (lambda: K.concatenate([K.ones((2, 2)), None]), TypeError, "concatenate: expected a tensor, got None"),
        (lambda: K.stack([K.ones((2, 3)), K.ones((3, 2))]), ValueError, "stack: concatenate: shapes (1, 2, 3)"),
        (lambda: K.zeros((None, 2)), ValueError, "zeros: fill: the shape (?, 2)"),
        (lambda: K.argmax(K.constant(1.0)), ValueError, "argmax: axis -1 is out of range for a scalar"),
        (lambda: K.rnn(lambda x, s: (K.sum(x), s), K.ones((2, 3, 4)), []), ValueError, "rnn: the step function returns a scalar"),
        (lambda: K.sum(K.placeholder((2,)), axis=3), ValueError, "axis"),
        (lambda: K.cast(K.placeholder((2,)), "float31"), TypeError, "float31"),
        (lambda: K.conv2d(K.placeholder((1, 3, 3, 1)), K.ones((2, 2, 1, 1)), padding="full"), ValueError, "full"),
        (lambda: K.conv2d(K.placeholder((1, 3, 3, 1)), K.ones((2, 2, 1, 1)), data_format="last"), ValueError, "last"),
        (lambda: K.pool2d(K.placeholder((1, 3, 3, 1)), (2, 2), pool_mode="mean"), ValueError, "mean"),
        (lambda: K.rnn(lambda x, s: (x, s), K.placeholder((2, 3)), []), ValueError, "rnn"),
        (lambda: K.rnn(lambda x, s: (x, s), K.placeholder((2, 3, 1)), [], mask=K.ones((2, 3))), ValueError, "mask"),
        (lambda: K.is_keras_tensor(np.ones(2)), ValueError, "ndarray"),
        (lambda: K.set_learning_phase(2), ValueError, "2"),
        (lambda: K.set_floatx("float31"), ValueError, "float31"),
        (lambda: K.set_image_dim_ordering("channels"), ValueError, "channels"),
        (lambda: K.function([K.ones((2,))], []), ValueError, "placeholder"),
        (lambda: K.function([], [], unknown=1), ValueError, "unknown"),
        (lambda: K.get_value(K.placeholder((2,), name="pixels")), ValueError, "pixels"),
        (lambda: K.set_value(K.ones((2,)), np.ones(3)), ValueError, "(3,)"),
        (lambda: bool(K.placeholder((2,))), TypeError, "truth"),
        (lambda: iter(K.placeholder((2,))), TypeError, "not iterable"),
        (lambda: len(K.placeholder((2,))), TypeError, "len"),
        (lambda: np.float32(1) + K.placeholder((2,), dtype="int32") + "x", TypeError, "unsupported"),
        (lambda: K.get_value(K.gather(K.ones((2, 2)), K.constant([5], "int32"))), ValueError, "5"),
        (lambda: K.eval(K.gather(K.ones((2, 2)), K.constant([5], "int32"))), ValueError, "5"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_functions_can_be_pickled_and_inspected():
    assert pickle.loads(pickle.dumps(K.relu)) is K.relu
    assert inspect.getfullargspec(K.relu).args == ["x", "alpha", "max_value", "threshold"]
    # Keras writes these of a Lambda layer's function as JSON.
    assert K.square.__closure__ is None and K.square.__defaults__ is None


def test_an_error_of_the_programs_function_is_left_alone():
    error = ValueError("of the program")

    def step(x, states):
        raise error

    with pytest.raises(ValueError) as caught:
        K.rnn(step, K.ones((2, 3, 4)), [])
    assert caught.value is error and str(error) == "of the program"


def test_feeds_are_checked():
    x = K.placeholder((None, 3), name="x")
    f = K.function([x], [x * 2])
    for feeds in ([np.ones((2, 4))], []):
        with pytest.raises(ValueError):
            f(feeds)
    assert f([np.ones((2, 3))])[0].shape == (2, 3)
    assert f([np.ones((2, 3)), 1])[0].shape == (2, 3)  # surplus values are ignored, as in TensorFlow


def test_configuration_is_followed():
    try:
        K.set_floatx("float64")
        assert K.dtype(K.placeholder((1,))) == K.dtype(K.zeros((1,))) == K.dtype(K.constant(1.5)) == "float64"
        assert K.cast_to_floatx([1]).dtype == np.float64
    finally:
        K.set_floatx("float32")
    try:
        K.set_image_data_format("channels_first")
        assert K.conv2d(K.placeholder((1, 2, 5, 5)), K.ones((3, 3, 2, 4))).shape == (1, 4, 3, 3)
        assert K.image_dim_ordering() == "th"
    finally:
        K.set_image_data_format("channels_last")
    try:
        K.set_epsilon(1e-3)
        loss = K.eval(K.binary_crossentropy(K.constant([1.0]), K.constant([0.0])))
        np.testing.assert_allclose(loss, -np.log(2e-3), rtol=1e-4)  # epsilon is the lower bound, and is added in the logarithm
    finally:
        K.set_epsilon(1e-7)


def test_crossentropy_of_logits_keeps_its_digits():
    x = np.array([-16, -8, -4, 0, 4, 8, 10, 12, 16.0])
    for target in 0.0, 0.25, 1.0:
        true = np.maximum(x, 0) - x * target + np.log1p(np.exp(-np.abs(x)))
        for dtype, rtol in ("float32", 2e-6), ("float16", 3e-3):
            logits = K.constant(x, dtype=dtype)
            loss = K.eval(K.binary_crossentropy(K.constant(np.full(9, target), dtype=dtype), logits, from_logits=True))
            np.testing.assert_allclose(loss, true, rtol=rtol, atol=1e-7 if dtype == "float16" else 0)


def test_crossentropies_of_softmax_and_sigmoid_keep_their_gradients():
    x = K.variable([[-50.0, 50.0, 0.0]])
    for loss, value, gradient in (
        (K.categorical_crossentropy(K.constant([[1.0, 0.0, 0.0]]), K.softmax(x)), [100], [[-1, 1, 0]]),
        (K.sparse_categorical_crossentropy(K.constant([0], dtype="int32"), K.softmax(x)), [100], [[-1, 1, 0]]),
        (K.binary_crossentropy(K.constant([[1.0, 0.0, 1.0]]), K.sigmoid(x)), [[50, 50, np.log(2)]], [[-1, 1, -0.5]]),
    ):
        np.testing.assert_allclose(K.eval(loss), value, rtol=1e-6)
        np.testing.assert_allclose(K.eval(K.gradients(loss, [x])[0]), gradient, rtol=1e-6, atol=1e-20)


def test_a_class_masked_by_minus_infinity_costs_nothing():
    x = K.variable([[-np.inf, 1.0, 2.0]])
    loss = K.categorical_crossentropy(K.constant([[0.0, 1.0, 0.0]]), K.softmax(x))
    np.testing.assert_allclose(K.eval(loss), np.log1p(np.e), rtol=1e-6)
    np.testing.assert_allclose(K.eval(K.gradients(loss, [x])[0]), [[0, -1 / (1 + np.exp(-1)), 1 / (1 + np.exp(-1))]], rtol=1e-6)


def test_a_tensor_kept_from_a_body_is_named():
    kept = []
    K.eval(K.map_fn(lambda row: (kept.append(row * 2), row)[1], K.constant([1.0, 2.0])))
    with pytest.raises(ValueError, match="belongs to one call of a function of map_fn"):
        K.eval(kept[0])
