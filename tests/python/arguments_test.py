"""Axes and sizes as Python values: lists, arrays, None, and numbers out of range."""

import numpy as np
import pytest

import syncline as K

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
REDUCTIONS = [K.sum, K.mean, K.max, K.min, K.prod]


def value(tensor):
    return np.asarray(K.eval(tensor))


@pytest.mark.parametrize("none", [[], (), np.array([], dtype="int64")])
def test_no_axes_reduce_nothing(none):
    x = K.constant(X, dtype="float64")
    for function in REDUCTIONS + [K.logsumexp]:
        np.testing.assert_allclose(value(function(x, axis=none)), X, rtol=1e-12)
    for function in (K.var, K.std):
        np.testing.assert_array_equal(value(function(x, axis=none)), np.zeros_like(X))
    np.testing.assert_array_equal(value(K.any(K.constant(X - 1), axis=none)), X != 1)
    np.testing.assert_array_equal(value(K.all(K.constant(X - 1), axis=none)), X != 1)
    np.testing.assert_allclose(value(K.l2_normalize(x, axis=none)), np.ones_like(X), rtol=1e-12)
    np.testing.assert_array_equal(value(K.reverse(x, none)), X)
    np.testing.assert_array_equal(value(K.gradients(K.sum(K.sum(x, axis=none)), [x])[0]), np.ones_like(X))


def test_none_is_every_axis():
    for function, numpy_function in zip(REDUCTIONS, [np.sum, np.mean, np.max, np.min, np.prod]):
        np.testing.assert_allclose(value(function(K.constant(X, dtype="float64"))), numpy_function(X), rtol=1e-12)


@pytest.mark.parametrize("axis", [np.array([0, 1]), [np.int64(0), np.int32(1)], (1, 0), range(2)])
def test_arrays_of_axes(axis):
    assert value(K.sum(K.constant(X), axis=axis)) == X.sum()


@pytest.mark.parametrize("axis", [np.int64(1), np.array(1), np.array([1]), -1])
def test_arrays_of_one_axis(axis):
    np.testing.assert_array_equal(value(K.sum(K.constant(X), axis=axis)), X.sum(axis=1))


@pytest.mark.parametrize("number", [2**32, -(2**32), 2**32 + 1, 2**63 - 1])
def test_axes_beyond_32_bits(number):
    x, batch = K.constant(X), K.constant(np.ones((2, 3, 3)))
    calls = [
        lambda: K.sum(x, axis=number),
        lambda: K.mean(x, axis=[0, number]),
        lambda: K.reverse(x, number),
        lambda: K.permute_dimensions(x, (1, number)),
        lambda: K.batch_dot(batch, batch, axes=(1, number)),
        lambda: K.l2_normalize(x, axis=number),
        lambda: K.temporal_padding(batch, (number, 1)),
        lambda: K.pool2d(K.constant(np.ones((1, 4, 4, 1))), (2, 2), strides=(number, 1)),
        lambda: K.conv1d(batch, K.constant(np.ones((1, 3, 1))), strides=number),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="out of range"):
            call()


def test_sizes_beyond_memory():
    many = 2**32
    for call in (
        lambda: K.eye(many),
        lambda: K.zeros((many, many)),
        lambda: K.ones((many, many)),
        lambda: K.constant(1.0, shape=(many, many)),
        lambda: K.placeholder((many, many)),
        lambda: K.random_uniform((many, many)),
        lambda: K.tile(K.constant(X), (2**62, 1)),
        lambda: K.repeat(K.constant(X), 2**62),
        lambda: K.arange(2**62),
        lambda: K.one_hot(K.constant([1], dtype="int32"), 2**62),
        lambda: K.reshape(K.constant(X), (many, many, -1)),
    ):
        with pytest.raises(ValueError, match=r"2\^47"):
            call()
    with pytest.raises(MemoryError, match="bytes"):
        K.eval(K.zeros((2**23, 2**23)))


def test_no_classes_are_an_empty_axis():
    assert value(K.one_hot(K.constant([1, 2], dtype="int32"), 0)).shape == (2, 0)


def test_an_empty_list_does_not_meet_two_elements():
    y = K.placeholder(shape=(None,))
    for compare in (K.greater, K.maximum, K.equal):
        with pytest.raises(ValueError, match="do not broadcast"):
            K.function([y], [compare(K.constant([]), y)])([np.ones(2)])
        assert K.function([y], [compare(K.constant([]), y)])([np.ones(1)])[0].shape == (0,)


def test_the_gradient_of_a_loss_over_an_open_class_axis():
    output, target = K.placeholder(shape=(None, None), dtype="float64"), K.placeholder(shape=(None,), dtype="int32")
    loss = K.sum(K.sparse_categorical_crossentropy(target, output, from_logits=True))
    gradient = K.function([output, target], [K.gradients(loss, [output])[0]])([X, np.array([2, 0])])[0]
    share = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(gradient, share - np.array([[0, 0, 1], [1, 0, 0]]), rtol=1e-10)


@pytest.mark.parametrize("true", [np.True_, 1])
def test_flags_of_any_type(true):
    x, classes = np.array([[0.5, 1.0], [2.0, 3.0]], "float32"), np.array([[0.0, 1.0], [1.0, 0.0]], "float32")
    for reduce in K.max, K.min, K.sum, K.prod, K.var, K.std, K.mean, K.logsumexp:
        assert K.int_shape(reduce(K.constant(x), 1, true)) == (2, 1)
    for reduce in K.any, K.all:
        assert K.int_shape(reduce(K.constant(x > 1), 1, true)) == (2, 1)
    for loss in K.categorical_crossentropy, K.binary_crossentropy:
        assert (K.eval(loss(classes, x, true)) == K.eval(loss(classes, x, True))).all()
    labels = np.array([1, 0])
    of_labels = [K.eval(K.sparse_categorical_crossentropy(labels, x, flag)) for flag in (true, True)]
    assert (of_labels[0] == of_labels[1]).all()
    steps = np.full((1, 4, 3), 1 / 3, "float32")
    assert len(K.ctc_decode(steps, [4], greedy=true, merge_repeated=true)[0]) == 1


def test_the_cost_of_sequences_has_no_second_derivative():
    logits = K.variable(np.random.RandomState(0).uniform(0.1, 1, (2, 4, 3)))
    cost = K.ctc_batch_cost(np.array([[0, 1], [1, 0]]), K.softmax(logits), np.array([[4], [4]]), np.array([[2], [1]]))
    gradient = K.gradients(K.sum(cost), [logits])[0]
    with pytest.raises(ValueError, match="ctc_batch_cost has no second derivative"):
        K.eval(K.gradients(K.sum(K.square(gradient)), [logits])[0])
    assert np.isfinite(K.eval(K.gradients(K.sum(logits * K.stop_gradient(gradient)), [logits])[0])).all()
    # By the factor of each sample's cost, of which the gradient is linear.
    factor = K.variable(np.array([[2.0], [3.0]]))
    scaled = K.gradients(K.sum(cost * factor), [logits])[0]
    by_factor = K.eval(K.gradients(K.sum(scaled * scaled / 2), [factor])[0])
    np.testing.assert_allclose(by_factor.ravel(), [2, 3] * (K.eval(gradient) ** 2).sum((1, 2)), 1e-5)
    # A loop needs no derivative by its elements here.
    w = K.variable(2.0)
    norms = K.map_fn(lambda f: w * K.sum(K.square(f * gradient)), factor)
    np.testing.assert_allclose(K.eval(K.gradients(K.sum(norms), [w])[0]), 13 * (K.eval(gradient) ** 2).sum(), 1e-5)
