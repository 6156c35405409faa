"""Feeds of functions: values that need a conversion are converted for each call."""

import threading

import numpy as np
import pytest

import syncline as K

LARGE = 40_000  # elements; so many are converted by several threads


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64", "uint8", "bool", "uint32", ">f4"])
def test_converted_values(dtype):
    x = K.placeholder((None, None))
    function = K.function([x], [x, x * 2])
    random, below = np.random.RandomState(3), 2 if dtype == "bool" else 100
    values = [random.randint(0, below, (4, LARGE // 4)).astype(dtype) for _ in range(3)]
    values.append(values[0][:, ::3])  # another shape, not contiguous
    results = [function([value]) for value in values]
    for value, (same, twice) in zip(values, results):  # later calls do not change earlier results
        assert same.dtype == twice.dtype == np.float32
        np.testing.assert_array_equal(same, value.astype("float32"))
        np.testing.assert_array_equal(twice, 2 * value.astype("float32"))


def test_numbers_and_arrays_in_turn():
    x = K.placeholder(())
    function = K.function([x], [x + 1])
    for value in (1, 2.5, np.float64(3), np.array(4), np.float32(5), True, np.float32(6), np.float64(7), np.array(8)):
        assert function([value]) == [float(value) + 1]


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_own_and_other_dtypes_in_turn(shape):
    """A value of the placeholder's dtype is read in place and leaves no buffer for the conversion of the next value."""
    x = K.placeholder(shape)
    function = K.function([x], [x * 2])
    for dtype in ("float32", "float64", "float64", "float32", "int8", "float16", "float32", "bool"):
        np.testing.assert_array_equal(function([np.ones(shape, dtype)])[0], np.full(shape, 2.0))


def test_a_failed_call_changes_nothing():
    x, y = K.placeholder((None, 2)), K.placeholder((None, 3))
    function = K.function([x, y], [K.sum(x), K.sum(y)])
    for _ in range(2):
        assert function([np.ones((4, 2)), np.ones((4, 3))]) == [8, 12]
        with pytest.raises(ValueError):
            function([np.full((4, 2), 7.0), np.full((4, 4), 7.0)])


def test_calls_from_several_threads():
    x = K.placeholder((None,))
    function = K.function([x], [K.min(x), K.max(x)])
    wrong = []

    def call(number):
        value = np.full(LARGE, number, "float64")
        for _ in range(50):
            if function([value]) != [number, number]:
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=100)
        assert not thread.is_alive()
    assert wrong == []
