"""Numbers of Python and NumPy: a tensor gets exactly the number, or the number is refused."""

import numpy as np
import pytest

import syncline as K
from syncline import _core

LARGE = 2**40  # beyond int32
ODD = 2**53 + 1  # not representable as float64


def value(tensor):
    return K.eval(tensor)


def whole(*numbers):
    return K.constant(np.array(numbers, "int64"), dtype="int64")


@pytest.mark.parametrize(
    "compute, expected",
    [
        (lambda: K.clip(K.constant([1.0, 5e9]), 0, 3_000_000_000), np.float32([1, 3e9])),
        (lambda: K.clip(whole(-LARGE, 2 * LARGE), -1, LARGE), np.int64([-1, LARGE])),
        (lambda: K.clip(whole(ODD + 5), 0, ODD), np.int64([ODD])),
        (lambda: K.clip(K.constant([1, 5, 9], dtype="int32"), 2, LARGE), np.int32([2, 5, 9])),
        (lambda: K.clip(K.constant([1, 5, 9], dtype="uint8"), -1, 7), np.uint8([1, 5, 7])),
        (lambda: K.clip(K.constant([1, 5], dtype="int8"), 200, 300), np.int8([127, 127])),
        (lambda: K.clip(K.constant([1.0, 5.0]), None, np.nan), np.float32([np.nan, np.nan])),
        (lambda: K.clip(K.constant([1.0, 5.0]), -np.inf, np.inf), np.float32([1, 5])),
        (lambda: K.relu(K.constant([1.0, 5e9]), max_value=3_000_000_000), np.float32([1, 3e9])),
        (lambda: K.relu(K.constant([1.0, 5e9]), threshold=3_000_000_000), np.float32([0, 5e9])),
        (lambda: K.relu(K.constant([-1.0]), alpha=LARGE), np.float32([-LARGE])),
        (lambda: K.elu(K.constant([-np.inf]), alpha=LARGE), np.float32([-LARGE])),
        (lambda: K.cast(LARGE, "int64"), np.int64(LARGE)),
        (lambda: K.cast(LARGE, "float64"), np.float64(LARGE)),
        (lambda: K.any([2**32, 0]), np.bool_(True)),
        (lambda: K.stack([LARGE, 1]), np.int64([LARGE, 1])),
        (lambda: K.sum([LARGE, 1]), np.int64(LARGE + 1)),
        (lambda: K.one_hot([2**32, 1], 3), np.float32([[0, 0, 0], [0, 1, 0]])),
        (lambda: K.arange(LARGE, LARGE + 2), np.int64([LARGE, LARGE + 1])),
        (lambda: K.arange(ODD, ODD + 2, dtype="int64"), np.int64([ODD, ODD + 1])),
        (lambda: K.arange(-(2**63), 2**63 - 1, 2**62, dtype="int64"), np.arange(-(2**63), 2**63 - 1, 2**62)),
        (lambda: K.arange(2**63 - 1, -(2**63), -(2**62), dtype="int64"), np.arange(2**63 - 1, -(2**63), -(2**62))),
        (lambda: whole(0) + ODD, np.int64([ODD])),
        (lambda: whole(ODD) * 1 + 0, np.int64([ODD])),
        (lambda: K.equal(whole(ODD - 1, ODD), ODD), np.bool_([False, True])),
        (lambda: K.maximum(whole(0), ODD), np.int64([ODD])),
        (lambda: K.switch(K.constant(True, dtype="bool"), ODD, whole(1)[0]), np.int64(ODD)),
        (lambda: K.constant(1.0) * 2**70, np.float32(2.0**70)),
        (lambda: K.constant(2**70), np.float32(2.0**70)),
        (lambda: K.batch_normalization(K.ones((1,)), K.zeros((1,)), K.ones((1,)), None, None, epsilon=LARGE), np.float32([2.0**-20])),
    ],
)
def test_whole_numbers_are_kept(compute, expected):
    result = value(compute())
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-6 if expected.dtype.kind == "f" else 0)


def test_random_bounds_are_kept():
    normal = value(K.random_normal((1000,), mean=LARGE, stddev=LARGE // 8))
    assert 0.9 * LARGE < normal.mean() < 1.1 * LARGE and normal.std() > LARGE / 16
    uniform = value(K.random_uniform((1000,), minval=0, maxval=LARGE, dtype="int64"))
    assert uniform.min() >= 0 and LARGE / 2 < uniform.max() < LARGE
    assert value(K.random_uniform((1000,), 0, 2**63 - 1, dtype="int64")).max() > 2**62
    assert value(K.random_uniform_variable((1000,), 0, LARGE)).max() > LARGE / 2


def test_variables_take_each_whole_number():
    x = K.variable(np.zeros((2, 2)), dtype="int64")
    for set_to in (lambda: K.batch_set_value([(x, ODD)]), lambda: value(K.update(x, ODD)), lambda: K.set_value(x, [[ODD] * 2] * 2)):
        K.set_value(x, np.zeros((2, 2), "int64"))
        set_to()
        assert K.get_value(x).tolist() == [[ODD] * 2] * 2


FRACTIONS = [1.5, [1.5, 2.5], np.array([1.5, 2.5]), np.float32(1.5), np.array(np.nan)]


@pytest.mark.parametrize("fraction", FRACTIONS, ids=repr)
def test_fractions_beside_whole_numbers_are_refused(fraction):
    x, v = K.constant([3, 4], dtype="int32"), K.variable([3, 4], dtype="int32")
    for wrong in (
        lambda: x * fraction,
        lambda: fraction - x,
        lambda: K.maximum(x, fraction),
        lambda: K.equal(x, fraction),
        lambda: K.dot(K.reshape(x, (1, 2)), [[1.5], [2.5]]),
        lambda: K.stack([x, np.array([1.5, 2.5])]),
        lambda: K.update(v, fraction),
        lambda: K.update_add(v, fraction),
        lambda: K.update_sub(v, fraction),
    ):
        with pytest.raises(TypeError, match="cast|fit"):
            wrong()
    assert K.get_value(v).tolist() == [3, 4]


@pytest.mark.parametrize("half", [*FRACTIONS, 0.5, K.constant(2.0), K.variable(0.5), [K.variable(0.5), 2]], ids=repr)
def test_fractions_are_no_parameters_of_whole_numbers(half):
    x, v, shape = K.constant([3, 4], dtype="int32"), K.variable([3, 4], dtype="int32"), (2,)
    for wrong in (
        lambda: K.clip(x, half, None),
        lambda: K.clip(x, 1, half),
        lambda: K.relu(x, alpha=half),
        lambda: K.relu(x, max_value=half),
        lambda: K.relu(x, threshold=half, alpha=K.constant(2, "int32")),
        lambda: K.moving_average_update(v, [8, 8], half),
        lambda: K.random_uniform(shape, half, 9, dtype="int32"),
        lambda: K.random_uniform(shape, K.constant(0, "int32"), half, dtype="int32"),
    ):
        with pytest.raises(TypeError, match="cast|whole number"):
            wrong()


def test_a_parameter_of_the_wrong_dtype_is_to_be_cast():
    x, small = K.constant([3, 4], dtype="int32"), K.constant([3, 4], dtype="uint8")
    with pytest.raises(TypeError, match=r"expected a number or a tensor of int32, got a tensor of float32; cast it: K.cast\(x, 'int32'\)"):
        K.relu(x, alpha=K.variable(2.0))
    with pytest.raises(TypeError, match="tensor of uint8, got a tensor of int32"):  # it may hold 300
        K.relu(small, alpha=x)
    with pytest.raises(TypeError, match="tensor of uint8, got a tensor of int8"):
        K.relu(small, alpha=K.constant(1, "int8"))
    assert value(K.relu(-x, alpha=small)).tolist() == [-9, -16]
    # Whole numbers and other floating dtypes are parameters of floating tensors.
    for two in (2, [2.0], np.array([2, 2]), K.constant(2, "int64"), K.constant(2.0, "float64"), K.constant(2, "uint8")):
        for dtype in ("float16", "float32", "float64"):
            assert value(K.relu(K.constant([-1.0, 1.0], dtype=dtype), alpha=two)).tolist() == [-2, 1]
            assert value(K.clip(K.constant([-1.0, 9.0], dtype=dtype), two, None)).tolist() == [2, 9]


@pytest.mark.parametrize("wrong", [300, [300, 1], np.array([1, -1]), 1e20, float("inf")], ids=repr)
def test_a_parameter_is_in_the_range_of_the_dtype(wrong):
    x, v = K.constant([3, 4], dtype="uint8"), K.variable([3, 4], dtype="uint8")
    for call in (
        lambda: K.relu(x, alpha=wrong),
        lambda: K.relu(x, alpha=K.constant(2, "uint8"), threshold=wrong),
        lambda: K.moving_average_update(v, [8, 8], wrong),
    ):
        with pytest.raises(ValueError, match="does not fit a tensor of uint8"):
            call()


@pytest.mark.parametrize(
    "low, high, expected",
    [
        (-1, [300, 4], [3, 4]),
        ([-1, 4], 300, [3, 5]),
        (K.constant(4, "uint8"), 300, [4, 5]),
        (-1, K.constant(4, "uint8"), [3, 4]),
        (K.constant(-1, "int64"), K.constant(300, "int32"), [3, 5]),
        (np.array([300, -300]), None, [255, 5]),
        (None, np.array([-1e300, np.inf]), [0, 5]),
    ],
    ids=repr,
)
def test_bounds_beyond_the_dtype_limit_nothing(low, high, expected):
    assert value(K.clip(K.constant([3, 5], dtype="uint8"), low, high)).tolist() == expected
    assert value(K.clip(whole(ODD, -ODD), None, np.array([2**63 - 9, ODD - 2]))).tolist() == [ODD, -ODD]


def test_a_largest_value_beyond_the_dtype_limits_nothing():
    x = K.constant([-3, 100], dtype="int8")
    for largest in (300, [300, 400], K.constant(300, "int32")):
        assert value(K.relu(x, alpha=K.constant(2, "int8"), max_value=largest)).tolist() == [-6, 100]
    for negative in (-1, [1, -1]):
        with pytest.raises(ValueError, match="max_value is -1"):
            K.relu(x, alpha=K.constant(2, "int8"), max_value=negative)


def test_an_array_of_whole_numbers_stands_beside_a_tensor_of_such():
    x = K.constant([3, 4], dtype="int32")
    assert value(x * np.array([2.0, 3.0])).tolist() == [6, 12]
    assert value(x * np.array([2, 3])).tolist() == [6, 12]


@pytest.mark.parametrize("number, dtype", [(1.5, "int32"), ([1.5, 2], "int64"), (300, "int8"), (-1, "uint8"), ([2**31], "int32")], ids=repr)
def test_what_a_dtype_does_not_hold_is_refused(number, dtype):
    for wrong in (
        lambda: K.constant(number, dtype=dtype),
        lambda: K.variable(number, dtype=dtype),
        lambda: K.set_value(K.variable(np.zeros(np.shape(number)), dtype=dtype), number),
    ):
        with pytest.raises(TypeError, match=f"does not fit {dtype}"):
            wrong()
    # NumPy arrays with a requested dtype are converted as by astype, and so are feeds that are in range.
    assert value(K.constant(np.array(1.5), dtype="int32")) == 1
    x = K.placeholder((), dtype="int8")
    assert K.function([x], [x])([1.5])[0] == 1
    with pytest.raises(TypeError, match="does not fit int8"):
        K.function([x], [x])([300])


def test_numbers_beyond_64_bits():
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        whole(1) + 2**63
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        K.constant([1, 2])[2**63]
    with pytest.raises(TypeError, match="beyond int64"):
        K.constant(1.0) + np.array([2**63], "uint64")


def test_slices_are_cut_to_the_axis():
    x = K.constant([1, 2, 3])
    for bound in (2**31, 2**63 - 1, 2**70):
        assert value(x[:-bound]).tolist() == [] and value(x[-bound:]).tolist() == [1, 2, 3]
        assert value(x[:bound]).tolist() == [1, 2, 3] and value(x[bound:]).tolist() == []
    assert value(x[: -(2**63)]).tolist() == []


def test_an_unfed_learning_phase_is_testing():
    K.clear_session()
    x = K.placeholder((None, 3))
    try:
        f = K.function([x, K.learning_phase()], [K.in_train_phase(x * 2, x)])
        ones = np.ones((2, 3), "float32")
        assert f([ones, True])[0].max() == 2
        K.set_learning_phase(1)  # from now on Keras feeds no phase
        assert f([ones])[0].max() == 1
        with pytest.raises(ValueError, match="0 values are given for 2 inputs|1 values are given for 2 inputs"):
            K.function([x, K.placeholder((None, 3))], [x])([ones])
    finally:
        K.clear_session()


def test_results_own_their_memory():
    rows = K.eval(K.constant(np.arange(5000.0), shape=(1000, 5)))[999:]
    for _ in range(20):
        K.eval(K.zeros((1000, 5)))
    np.testing.assert_array_equal(rows, [[4995, 4996, 4997, 4998, 4999]])
    assert rows.flags.writeable and K.eval(whole(1)).dtype is np.dtype("int64")
    with pytest.raises(BufferError, match="no memory"):
        memoryview(_core.Memory.__new__(_core.Memory))


def test_slopes_of_unsigned_integers():
    x = K.constant([3, 5], dtype="uint8")
    assert K.eval(K.relu(x, alpha=1, max_value=200)).tolist() == [3, 5]
    assert K.eval(K.relu(x, alpha=1, threshold=3)).tolist() == [3, 5]
    assert K.eval(K.relu(x, alpha=K.constant(1, "uint8"), max_value=K.constant(200, "uint8"))).tolist() == [3, 5]
