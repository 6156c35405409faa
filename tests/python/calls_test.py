"""Undocumented calls that programs for Keras 2 on TensorFlow make. Expected values are TensorFlow's."""

import numpy as np
import pytest

import syncline as K

X = np.random.RandomState(0).randn(2, 3, 4)
HALF = K.variable(0.5)


def test_matrix_products_per_batch():
    rng = np.random.RandomState(1)
    for a, b in [((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 6, 3, 4), (2, 6, 4, 5)), ((1, 3, 4), (2, 4, 5)),
                 ((2, 3, 4), (1, 4, 5)), ((3, 4), (4, 5)), ((3, 4), (4,)), ((2, 1, 3, 4), (6, 4, 5)), ((4,), (2, 4, 5)),
                 ((2, 0, 3, 4), (2, 1, 4, 5)), ((2, 6, 0, 4), (2, 6, 4, 5))]:  # fmt: skip
        x, y = rng.randn(*a), rng.randn(*b)
        expected = x @ y
        np.testing.assert_allclose(K.eval(K.constant(x) @ K.constant(y)), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(K.eval(K.constant(x) @ y), expected, rtol=1e-5, atol=1e-6)
        open_x, open_y = K.placeholder((None,) * x.ndim), K.placeholder((None,) * y.ndim)
        np.testing.assert_allclose(K.function([open_x, open_y], [open_x @ open_y])([x, y])[0], expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="matmul"):
        K.ones((2, 3, 4)) @ K.ones((3, 4, 5))
    a, b = K.variable(rng.randn(2, 3, 4)), K.variable(rng.randn(2, 4, 5))
    to_a = K.eval(K.gradients(K.sum(a @ b), [a])[0])
    np.testing.assert_allclose(to_a, np.broadcast_to(K.get_value(b).sum(-1)[:, None], to_a.shape), rtol=1e-5)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ((0.0, 2.0, 0.5), np.arange(0, 2, 0.5, "float32")),
        ((3.0,), np.arange(3, dtype="float32")),
        ((0, 1, 0.25), np.arange(0, 1, 0.25, "float32")),
        ((np.float64(0), 1, 0.5), np.arange(0, 1, 0.5)),
        ((np.int64(3),), np.arange(3, dtype="int64")),
        ((3,), np.arange(3, dtype="int32")),
        ((0.0, 2.0, 0.5, "float64"), np.arange(0, 2, 0.5)),
        ((0, 3, 1, "float32"), np.arange(3, dtype="float32")),
    ],
)
def test_arange_is_of_its_arguments_dtype(arguments, expected):
    value = K.eval(K.arange(*arguments))
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)


def test_numbers_beside_tensors_are_of_their_kind():
    flags, whole = K.variable([1.0, -1.0]) > 0, K.constant([1, 2], "int32")
    for wrong in (lambda: flags * 2.0, lambda: 2 * flags, lambda: K.equal(flags, 1), lambda: flags * np.ones(2), lambda: whole * 2.0,
                  lambda: 2.0 + whole, lambda: K.maximum(whole, 0.0)):  # fmt: skip
        with pytest.raises(TypeError, match="cast"):
            wrong()
    assert K.eval(whole * 2).tolist() == [2, 4] and K.eval(flags & True).tolist() == [True, False]
    assert K.eval(flags ^ (K.variable([1.0, 1.0]) > 0)).tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_division_rounded_down(dtype):
    x, y = np.array([5.5, -5.5, 5.5, -5.5, 6, -6, 0], dtype), np.array([2, 2, -2, -2, 3, 3, 2], dtype)
    a, b = K.variable(x, dtype), K.variable(y, dtype)
    np.testing.assert_array_equal(K.eval(a // b), x // y)
    np.testing.assert_array_equal(K.eval(a % b), x % y)
    np.testing.assert_array_equal(K.eval(7 % b), 7 % y)
    np.testing.assert_array_equal(K.eval(a // 2.0), x // 2)
    to_a, to_b = K.function([], K.gradients(K.sum(a % b), [a, b]))([])
    np.testing.assert_array_equal(to_a, np.ones_like(x))
    np.testing.assert_array_equal(to_b, -(x // y))
    assert K.gradients(K.sum(a // b), [a, b]) == [None, None]


def test_whole_numbers_modulo():
    x, y = np.array([7, -7, 7, -7, 5], "int32"), np.array([2, 2, -2, -2, 0], "int32")
    np.testing.assert_array_equal(K.eval(K.constant(x, "int32") % K.constant(y, "int32"))[:4], x[:4] % y[:4])
    assert K.eval(K.constant(x, "int32") % K.constant(y, "int32"))[4] == 5


def test_negative_zero_has_an_absolute_value():
    assert not np.signbit(K.eval(K.abs(K.constant([-0.0, 0.0])))).any()


def test_a_side_that_is_not_taken_refuses_nothing():
    x = K.placeholder((None, 2))
    row = K.switch(K.greater(K.sum(x), 5.0), lambda: K.gather(x, K.constant(3, "int32")), lambda: x[0])
    f = K.function([x], [row])
    np.testing.assert_array_equal(f([np.ones((2, 2))])[0], [1, 1])
    with pytest.raises(ValueError, match=r"gather: index 3 at position 0 of the indices is outside \[0, 3\)"):
        f([np.ones((3, 2))])


def test_switch_of_several_values():
    a, b, c = K.variable(1.0), K.variable(2.0), K.placeholder(())
    swapped = K.switch(c, lambda: [a, b * 1.0], lambda: (b, a))
    f = K.function([c], [*swapped, *K.gradients(swapped[0], [a])])
    assert f([1.0]) == [1, 2, 1] and f([0.0]) == [2, 1, 0]
    assert K.is_tensor(K.switch(c, lambda: [a], lambda: [b]))
    assert len(K.switch(c, [a, b], [b, a])) == 2
    with pytest.raises(ValueError, match="both must return the same number"):
        K.switch(c, lambda: [a, b], lambda: [a])


def test_what_a_function_returns_has_the_form_of_its_outputs():
    x = K.placeholder((None,))
    value = np.ones(2, "float32")
    assert K.function([x], x * 2)([value]).tolist() == [2, 2]
    assert K.function(x, x * 2)(value).tolist() == [2, 2]
    nested = K.function([x], [x, (x * 2, {"b": x * 3, "a": x * 4})])([value])
    assert nested[0][0] == 1 and nested[1][0][0] == 2 and nested[1][1]["b"][0] == 3 and nested[1][1]["a"][0] == 4
    assert isinstance(nested[1], tuple) and isinstance(K.function([x], (x,))([value]), tuple)
    assert isinstance(K.function([x], [x])([value]), list)


def test_a_tensor_within_the_graph_is_fed():
    x = K.placeholder((None, 2))
    hidden = K.exp(x)
    out = hidden * 3 + K.stop_gradient(hidden)
    total = K.variable(0.0)
    f = K.function([hidden], [out, hidden], [K.update_add(total, K.sum(hidden))])
    ours, same = f([np.ones((4, 2))])
    assert (ours == 4).all() and (same == 1).all() and K.get_value(total) == 8
    assert K.function([hidden, x], [out, x])([np.ones((1, 2)), np.zeros((1, 2))])[1].sum() == 0
    with pytest.raises(ValueError, match="placeholder"):
        K.function([total], [total * 2])


def test_nested_and_surplus_feeds():
    x, y, z = K.placeholder((None, 2)), K.placeholder((None,)), K.placeholder(())
    ones = np.ones((1, 2))
    assert K.function([x], [x * 2])(([ones], [], []))[0].sum() == 4  # as a model's _standardize_user_data returns them
    f = K.function([x, [y, z]], [x, y, z])
    for feeds in ([ones, [np.ones(3), 4.0]], [ones, [1.0, 1.0, 1.0], 4.0], [[ones, np.ones(3)], [4.0]], (ones, np.ones(3), 4.0, "surplus")):
        assert [v.shape for v in f(feeds)] == [(1, 2), (3,), ()] and f(feeds)[2] == 4
    assert K.function([x], [x])([[[1.0, 2.0]]])[0].tolist() == [[1, 2]]  # a list is one value if its axes fit
    for cut in ([[[1.0, 2.0], [3.0, 4.0]]], [[np.ones(2), np.ones(2)]]):
        refusal = "rows: input 0 of shape .* is fed a list of 2 axes, of which only 1 of 2 entries would be used"
        with pytest.raises(ValueError, match=refusal):
            K.function([y], [y * 2], name="rows")(cut)


def test_values_of_tensors_that_are_no_variables():
    assert K.get_value(HALF * 2) == 1 and K.get_value(3) == 3
    assert K.batch_get_value([HALF, HALF * 3, K.constant(2.0)]) == [0.5, 1.5, 2]


def test_parameters_of_activations_may_be_tensors():
    x = np.array([-2.0, 0.0, 1.0, 5.0], "float32")
    tall = K.constant(3.0)
    np.testing.assert_allclose(K.eval(K.relu(K.constant(x), alpha=HALF)), [-1, 0, 1, 5])
    np.testing.assert_allclose(K.eval(K.relu(K.constant(x), alpha=HALF, max_value=tall)), [-1, 0, 1, 3])
    np.testing.assert_allclose(K.eval(K.relu(K.constant(x), max_value=K.constant([1.0, 2.0, 3.0, 4.0]))), [0, 0, 1, 4])
    np.testing.assert_allclose(K.eval(K.relu(K.constant(x), alpha=0.5, threshold=tall)), [-2.5, -1.5, -1, 5])
    np.testing.assert_allclose(K.eval(K.elu(K.constant(x), alpha=HALF)), [0.5 * np.expm1(-2), 0, 1, 5], rtol=1e-6)
    np.testing.assert_allclose(K.eval(K.elu(K.constant(x), np.array([2.0, 2.0, 2.0, 2.0])))[0], 2 * np.expm1(-2), rtol=1e-6)
    slope = K.variable([0.1, 0.2, 0.3, 0.4])
    (gradient,) = K.gradients(K.sum(K.relu(K.constant(x), alpha=slope)), [slope])
    np.testing.assert_allclose(K.eval(gradient), [-2, 0, 0, 0])
    assert np.isnan(K.eval(K.relu(K.constant([np.nan]), alpha=HALF, threshold=tall)))[0]


def test_shapes_and_patterns_may_be_arrays():
    x = K.variable(X)
    assert K.reshape(x, np.array([4, 6])).shape == (4, 6) and K.reshape(x, np.int64(24)).shape == (24,)
    assert K.tile(x, np.array([1, 2, 1])).shape == (2, 6, 4)
    order = np.array([1, 2, 0])
    for pattern in (order, K.constant(order, "int32"), [np.int64(1), 2, 0]):
        np.testing.assert_allclose(K.eval(K.permute_dimensions(x, pattern)), X.transpose(order), rtol=1e-6)
    assert K.sum(x, axis=np.array([0, 1])).shape == (4,) and K.max(x, axis=np.int64(1)).shape == (2, 4)
    with pytest.raises(ValueError, match="known while the graph is built"):
        K.permute_dimensions(x, K.placeholder((3,), dtype="int32"))
    with pytest.raises(ValueError, match="out of range"):
        K.sum(x, axis=2**32)


def test_numbers_may_be_tensors():
    x = np.array([-1.0, 0.5, 9.0], "float32")
    low, high = np.array([0.0, 1.0, 5.0]), np.array([1.0, 1.0, 6.0])
    np.testing.assert_allclose(K.eval(K.clip(K.constant(x), low, high)), [0, 1, 6])
    np.testing.assert_allclose(K.eval(K.clip(K.constant(x), HALF, None)), [0.5, 0.5, 9])
    assert K.eval(K.in_top_k(K.constant([[0.1, 0.9]]), K.constant([0], "int32"), K.constant(2, "int32"))).tolist() == [True]
    assert K.eval(K.moving_average_update(K.variable(1.0), 3.0, HALF)) == 2
    assert K.temporal_padding(K.variable(X), K.constant([1, 2], "int32")).shape == (2, 6, 4)
    normal = K.batch_normalization(K.constant([[1.0, 2.0]]), K.zeros((2,)), K.ones((2,)), None, None, epsilon=K.constant(3.0))
    np.testing.assert_allclose(K.eval(normal), [[0.5, 1]])


def test_map_fn_of_one_tensor_may_give_several():
    twice, more = K.map_fn(lambda e: (e * 2, e + 1), K.constant([1.0, 2.0]), dtype=("float32", "float32"))
    assert K.eval(twice).tolist() == [2, 4] and K.eval(more).tolist() == [2, 3]


def test_argmax_without_an_axis_is_of_the_first():
    x = K.constant([[1.0, 5.0], [2.0, 3.0]])
    assert K.eval(K.argmax(x, axis=None)).tolist() == [1, 0] and K.eval(K.argmin(x, None)).tolist() == [0, 1]


def test_attributes_of_tensorflow():
    x, v = K.placeholder((None, 3)), K.variable(1.0)
    assert x.get_shape().as_list() == x.shape.as_list() == [None, 3] and x.shape == (None, 3)
    assert x.shape[1:].as_list() == [3] and x.shape.ndims == 2 and type(K.int_shape(x)) is tuple
    assert K.eval(v.assign(4.0)) == 4 and K.eval(v.assign_add(1.0)) == 5 and K.eval(v.assign_sub(2)) == 3 and K.get_value(v) == 3
    assert not hasattr(x, "op")


def test_a_tensor_is_no_array():
    for convert in (np.asarray, np.array, np.mean):
        with pytest.raises(NotImplementedError, match="K.eval"):
            convert(K.placeholder((2,), name="pixels"))


def test_sides_of_several_tensors_in_a_phase():
    x = K.placeholder((2,))
    first, second = K.in_train_phase(lambda: [x * 2.0, x], lambda: [x, x * 3.0])
    assert first._uses_learning_phase and second._uses_learning_phase
    f = K.function([x, K.learning_phase()], [first, second])
    assert [v.tolist() for v in f([[1, 2], 1])] == [[2, 4], [1, 2]] and [v.tolist() for v in f([[1, 2], 0])] == [[1, 2], [3, 6]]


def test_what_is_no_tensor_has_no_gradient():
    x = K.variable([1.0, 2.0])
    with pytest.raises(ValueError, match="gradients: 3 is not a tensor"):
        K.gradients(K.sum(x), [x, 3])


NO_INTEGERS = [1.5, "a", object(), None, [1.5], [None], K.constant(1.0)]


@pytest.mark.parametrize("wrong", NO_INTEGERS, ids=repr)
def test_what_is_no_integer_is_of_a_wrong_type(wrong):
    x, images = K.constant(np.ones((2, 3))), K.constant(np.ones((1, 4, 4, 1)))
    for call in (
        lambda: K.reshape(x, [wrong, 3] if wrong is not None else [1.5]),
        lambda: K.permute_dimensions(x, (0, wrong)),
        lambda: K.repeat_elements(x, wrong, 0),
        lambda: K.expand_dims(x, wrong),
        lambda: K.reverse(x, wrong),
        lambda: K.cumsum(x, wrong),
        lambda: K.batch_dot(x, x, axes=(1, wrong)),
        lambda: K.resize_images(images, wrong, 1, None),
        lambda: K.spatial_2d_padding(images, ((1, 1), (1, wrong))),
        lambda: K.pool2d(images, (1, wrong)),
        lambda: K.constant(1.0, shape=(2, wrong)),
        lambda: K.eye((2, wrong)),
        lambda: K.softmax(x, wrong),
        lambda: K.random_normal((2,), seed="5" if wrong is None else wrong),
    ):
        with pytest.raises(TypeError):
            call()


def test_seeds_are_integers_of_any_size():
    for seed, same in ((-1, 2**64 - 1), (2**64 + 3, np.int64(3)), (True, 1)):
        np.testing.assert_array_equal(K.eval(K.random_normal((3,), seed=seed)), K.eval(K.random_normal((3,), seed=same)))


def test_values_of_variables_come_in_pairs():
    v = K.variable([2.0])
    for wrong in ([(v, 1, 2)], [(v,)], [v], [3], [()], {v: 1}, 3):
        with pytest.raises(TypeError, match="pair|iterable"):
            K.batch_set_value(wrong)
    with pytest.raises(ValueError, match="not a variable"):
        K.batch_set_value([(v, 5.0), (v * 2, 1.0)])
    assert K.get_value(v) == 2
    K.batch_set_value([[v, [3.0]]])
    assert K.get_value(v) == 3


def test_what_is_no_tensor_is_neither_input_nor_output():
    x = K.placeholder((2,))
    for wrong in (lambda: K.function([None], [x]), lambda: K.function(["a"], [x]), lambda: K.function([3], [x]),
                  lambda: K.function([x], [None]), lambda: K.function([x], ["a"])):  # fmt: skip
        with pytest.raises(TypeError, match="tensor"):
            wrong()
    f = K.function([x], [x])
    for fed in (None, "a", object(), [1, "a"], [1, None]):
        with pytest.raises(TypeError, match="cannot become a tensor"):
            f([fed])
    for fed in (x, [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError):
            f([fed])


def test_a_phase_with_axes_chooses_element_by_element():
    ones, twos = K.constant([1.0, 1.0]), K.constant([2.0, 2.0])
    assert K.eval(K.in_train_phase(ones, twos, training=K.variable([1.0, 0.0]))).tolist() == [1, 2]
    assert K.eval(K.in_test_phase(ones, twos, training=K.variable([1.0, 0.0]))).tolist() == [2, 1]
    with pytest.raises(ValueError):
        K.in_train_phase(ones, twos, training=np.array([1.0, 0.0]))


def test_an_accumulator_keeps_its_dtype():
    for fold in (K.foldl, K.foldr):
        with pytest.raises(ValueError, match="must keep its dtype"):
            fold(lambda total, e: K.cast(total, "int32"), K.constant([1.0, 2.0]))
        with pytest.raises(TypeError, match="cannot become a tensor"):
            fold(lambda total, e: "a", K.constant([1.0, 2.0]))


def test_a_number_that_is_no_class_ends_the_labels():
    steps = [[[0.3, 0.3, 0.4]] * 2]
    none = K.eval(K.ctc_batch_cost([[2]], steps, [[2]], [[1]]))
    assert K.eval(K.ctc_batch_cost([[7]], steps, [[2]], [[1]])) == none
    for wrong, error in (([[7, 1]], "follows 7"), ([[-1, 1]], "negative")):
        with pytest.raises(ValueError, match=error):
            K.eval(K.ctc_batch_cost(wrong, steps, [[2]], [[2]]))


def test_a_beam_searchs_options_are_unused_if_greedy():
    steps = [[[0.3, 0.3, 0.4]] * 2]
    assert len(K.ctc_decode(steps, [2], greedy=True, beam_width=1, top_paths=2)[0]) == 1
    with pytest.raises(ValueError, match="top_paths must be from 1 to beam_width"):
        K.ctc_decode(steps, [2], greedy=False, beam_width=1, top_paths=2)


def test_a_size_of_minus_one_is_fed():
    assert K.placeholder((-1, 2)).shape == (None, 2)
    with pytest.raises(ValueError, match="negative size"):
        K.placeholder((-2, 2))


def test_epsilon_is_what_float_reads():
    before = K.epsilon()
    try:
        for given, number in ((1e-3, 1e-3), ("1e-4", 1e-4), (np.float32(0.5), 0.5), (1, 1.0)):
            K.set_epsilon(given)
            assert K.epsilon() == number
        for wrong, error in ((10**400, ValueError), ("abc", ValueError), (-1, ValueError), (None, TypeError), ([1.0], TypeError)):
            with pytest.raises(error):
                K.set_epsilon(wrong)
        assert K.epsilon() == 1
    finally:
        K.set_epsilon(before)


def test_a_tensor_is_cast_to_floatx():
    cast = K.cast_to_floatx(K.constant([1, 2], dtype="int32"))
    assert K.is_tensor(cast) and cast.dtype == K.floatx() and K.eval(cast).tolist() == [1, 2]
    assert K.cast_to_floatx([1, 2]).dtype == K.floatx()


def test_parameters_may_broadcast_x():
    x = K.constant([-1.0, 2.0])
    wide = K.constant([[1.0], [3.0]])
    assert K.eval(K.relu(x, alpha=wide)).tolist() == [[-1, 2], [-3, 2]]
    np.testing.assert_allclose(K.eval(K.elu(x, wide)), [[np.expm1(-1), 2], [3 * np.expm1(-1), 2]], rtol=1e-6)
    assert K.eval(K.clip(x, wide, None)).tolist() == [[1, 2], [3, 3]]
