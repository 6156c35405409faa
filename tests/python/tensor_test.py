"""Tensors as Python values: operators, subscripts, attributes, NumPy on either side."""

import gc
import operator
import weakref

import numpy as np
import pytest

import syncline as K

X = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.0]], np.float32)
Y = np.array([[2.0, 3.0, -1.0], [0.5, 2.0, 2.0]], np.float32)

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip


def value(tensor, x, x_value):
    return K.function([x], [tensor])([x_value])[0]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_operators(op):
    x = K.placeholder((None, 3))
    for other in (Y, Y[0], 2, 2.5, np.float32(2.5), np.float64(2.5), [1.0, 2.0, 3.0], K.constant(Y)):
        plain = Y if isinstance(other, K.Tensor) else np.asarray(other, np.float32)
        np.testing.assert_allclose(value(op(x, other), x, X), op(X, plain), rtol=1e-6)
        if not isinstance(other, list):
            np.testing.assert_allclose(value(op(other, x), x, X), op(plain, X), rtol=1e-6)


def test_powers_products_and_signs():
    x = K.placeholder((None, 3))
    np.testing.assert_allclose(value(x**2, x, X), X**2)
    np.testing.assert_allclose(value(2.0**x, x, X), np.float32(2) ** X, rtol=1e-6)
    np.testing.assert_allclose(value(-x, x, X), -X)
    np.testing.assert_allclose(value(abs(x), x, X), np.abs(X))
    np.testing.assert_allclose(value(x @ np.ones((3, 2)), x, X), X @ np.ones((3, 2)), rtol=1e-6)
    flags = (x > 0) & (x < 2) | ~(x > -3)
    np.testing.assert_array_equal(value(flags, x, X), (X > 0) & (X < 2) | ~(X > -3))


def test_whole_numbers():
    x = K.placeholder((None,), dtype="int32")
    numbers = np.array([7, -7, 8], np.int32)
    np.testing.assert_array_equal(value(x // 2, x, numbers), numbers // 2)
    np.testing.assert_array_equal(value(x % 3, x, numbers), numbers % 3)
    assert (x / 2).dtype == "float64"
    with pytest.raises(TypeError):
        x + 0.5


@pytest.mark.parametrize(
    "key",
    [
        0, -1, slice(None), slice(1, None), slice(None, -1), slice(None, None, 2), slice(None, None, -1), None, ...,
        (0, 1), (slice(None), 0), (..., -1), (None, 0, ...), (slice(0, 1), slice(1, 3)), (0, None, slice(1, 2)),
        np.array([1, 0, 1]), np.array([0, 1]), np.int64(1),
    ],
    ids=str,
)  # fmt: skip
def test_subscripts(key):
    x = K.placeholder(X.shape)
    np.testing.assert_array_equal(value(x[key], x, X), X[key])
    rows = K.placeholder((None, 3))
    np.testing.assert_array_equal(value(rows[key], rows, X), X[key])


def test_a_list_is_read_as_a_tuple_of_subscripts():
    x = K.placeholder(X.shape)
    assert value(x[[1, 2]], x, X) == X[1, 2]
    np.testing.assert_array_equal(value(x[[slice(None), 0]], x, X), X[:, 0])


def test_subscripts_by_tensors():
    x, n = K.placeholder((None, 3)), K.constant(1, "int32")
    np.testing.assert_array_equal(value(x[n], x, X), X[1])
    np.testing.assert_array_equal(value(x[: K.shape(x)[0] - 1], x, X), X[:1])


def test_a_size_by_a_vector_keeps_the_known_sizes():
    x, y = K.placeholder((None, 2, 3)), K.placeholder((None, 6))
    z = K.reshape(y, K.shape(x))
    assert K.int_shape(z) == (None, 2, 3)
    assert K.int_shape(K.reshape(x, K.concatenate([K.shape(x)[:1], K.constant([6], "int32")]))) == (None, 6)
    assert K.int_shape(K.reshape(x, K.stack([K.shape(y)[0], K.shape(x)[2], 2]))) == (None, 3, 2)
    assert K.int_shape(K.reshape(x, K.concatenate([[-1], K.shape(x)[1:][::-1]]))) == (None, 3, 2)
    assert K.int_shape(K.reshape(y, (-1, K.shape(x)[-1], 2))) == (None, 3, 2)
    assert K.int_shape(K.zeros(K.shape(x)[1:])) == (2, 3) and K.is_variable(K.zeros(K.shape(x)[1:]))
    results = K.function([x, y], [z])([np.zeros((4, 2, 3)), np.arange(24).reshape(4, 6)])
    np.testing.assert_array_equal(results[0], np.arange(24).reshape(4, 2, 3))


def test_a_tensor_is_compared_by_identity():
    x, y = K.placeholder((2,)), K.placeholder((2,))
    assert x == x and x != y and x in [y, x] and {x: 1}[x] == 1 and x not in {0, False}


def test_attributes():
    x = K.placeholder((None, 3), name="images")
    x._keras_history = ("layer", 0, 0)
    assert (x.name, x.shape, x.ndim, x.dtype, x._keras_history[0]) == ("images:0", (None, 3), 2, "float32", "layer")
    assert "float16" in str(K.zeros((1,), dtype="float16").dtype)
    assert repr(x) == "<Placeholder 'images:0' shape=(?, 3) dtype=float32>"
    assert "exp" in repr(K.exp(x)) and "images" in repr(K.exp(x))
    assert not hasattr(x, "__len__")


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_arrays_of_every_dtype_and_layout(dtype):
    x = K.placeholder((None, 2), dtype=dtype)
    array = np.array([[0, 1], [2, 3], [4, 5]]).astype(dtype)
    for given in (
        array,
        np.asfortranarray(array),
        array[::-1],
        array[::2],
        array[:0],
        array.tolist(),
        array.astype(">f4"),
    ):
        result = K.function([x], [K.identity(x)])([given])[0]
        np.testing.assert_array_equal(result, np.asarray(given).astype(dtype))
        assert result.dtype == dtype


def test_feeds_take_the_placeholders_dtype():
    x = K.placeholder((), dtype="int64")
    assert K.function([x], [x + 1])([2.9])[0] == 3
    assert isinstance(K.function([x], [x + 1])([2])[0], np.int64)


def test_results_are_not_overwritten_by_the_next_call():
    x = K.placeholder((None,))
    f = K.function([x], [x + 1])
    first = f([np.zeros(1000)])[0]
    f([np.ones(1000)])
    assert first.max() == 1


def test_unaligned_and_read_only_arrays():
    x = K.placeholder((None,))
    bytes_ = np.zeros(4 * 100 + 1, np.uint8)
    unaligned = bytes_[1:].view(np.float32)
    unaligned[:] = 3
    unaligned.flags.writeable = False
    assert K.function([x], [x + 1])([unaligned])[0].sum() == 400


def test_a_list_of_tensors_is_stacked():
    assert K.eval(K.prod([K.constant(3.0), K.constant(4.0)])) == 12
    np.testing.assert_array_equal(K.eval(K.stack([K.constant(3, "int32"), 4])), [3, 4])


def test_graphs_are_freed():
    x = K.placeholder((2, 2))
    y = x
    for _ in range(100_000):  # freed without recursion
        y = y + 1
    y._keras_history = [y]  # a cycle, as in Keras
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("dtype", ["i2", "i4", "i8", "f4", "f8"])
def test_big_endian_arrays_keep_their_dtype(dtype):
    values = np.array([1, -2, 2**14 + 1], ">" + dtype) if dtype != "i8" else np.array([1, -2, 2**62 + 1], ">i8")
    found = K.eval(K.variable(values, dtype=values.dtype.name))
    assert found.dtype == values.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, values)
