"""Properties of tensors, placeholder, manual_variable_initialization."""

import numpy as np

from generate.oracle import case, real, truth, whole

SHAPES = ((), (3,), (2, 3), (0, 4), (2, 1, 3), (2, 1, 1, 2), (1, 2, 1, 2, 2))

for shape in SHAPES:
    case("ndim", [real(*shape)])
    case("int_shape", [real(*shape)], open_batch=False)
    case("int_shape", call=lambda K, shape: K.int_shape(K.variable(np.zeros(shape))), shape=shape)
    case("get_variable_shape", [real(*shape)], oracle=lambda x: np.array(x.shape, np.int32), open_batch=False)
    case("get_variable_shape", oracle=lambda shape: np.array(shape, np.int32), shape=shape)
case("int_shape", call=lambda K, shape: K.int_shape(K.placeholder(shape)), label="placeholder", shape=[None, 3])
case("int_shape", call=lambda K, shape: K.int_shape(K.placeholder(shape)), label="placeholder", shape=[None, None, 2])

for dtype in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"):
    case("dtype", [whole(2, 3, dtype=dtype, low=0, high=5)], call=lambda K, x: K.dtype(x), ranks=False)
case("dtype", [truth(3)], call=lambda K, x: K.dtype(x), ranks=False)

# The kinds of values that made() returns.
KINDS = ("placeholder", "variable", "constant", "computed", "gradient")


def made(K, kind):
    x = K.placeholder(shape=(2, 3))
    return {"placeholder": x, "variable": K.variable(np.ones((2, 3))), "constant": K.constant(np.ones((2, 3))),
            "computed": K.exp(x), "gradient": K.gradients(K.sum(x * x), [x])[0]}[kind]


for kind in KINDS:
    # TensorFlow's function does not return for a variable.
    case("is_placeholder", call=lambda K, kind: bool(kind != "variable" and K.is_placeholder(made(K, kind))), kind=kind)
    case("is_keras_tensor", call=lambda K, kind: bool(K.is_keras_tensor(made(K, kind))), kind=kind)
    case("is_tensor", oracle=lambda kind: np.array(True), kind=kind)
for kind in ("array", "number", "text"):
    case("is_tensor", oracle=lambda kind: np.array(False), kind=kind)


def of_placeholder(K, shape, ndim, dtype, feed):
    """The placeholder's static shape, its dtype, and x + x for a feed."""
    x = K.placeholder(shape=shape, ndim=ndim, dtype=dtype)
    value = np.arange(int(np.prod(feed)), dtype=dtype or K.floatx()).reshape(feed)
    return [np.array([-1 if d is None else d for d in K.int_shape(x)], np.int32), K.dtype(x), K.function([x], [x + x])([value])[0]]


for shape, ndim, dtype, feed in [
        ([2, 3], None, None, (2, 3)), ([None, 3], None, None, (4, 3)), ([None, None], None, "float64", (1, 2)), ([], None, None, ()),
        (None, 1, None, (3,)), (None, 3, None, (2, 1, 2)), (None, 2, "int32", (2, 2)), ([3], None, "int64", (3,)),
        ([None], None, "uint8", (0,)), (None, 4, "float64", (1, 2, 1, 2))]:
    case("placeholder", call=of_placeholder, shape=shape, ndim=ndim, dtype=dtype, feed=feed)


def initialized(K, values):
    """The values of variables that are made after each setting: the initial values, for every setting."""
    seen = []
    for value in values:
        K.manual_variable_initialization(value)
        v = K.variable([1.0, 2.0])
        if value:
            K.get_session().run(v.initializer)
        seen.append(K.get_value(v))
    K.manual_variable_initialization(False)
    return seen


for values in ([False], [True], [True, False], [False, True], [True, True, False]):
    case("manual_variable_initialization", call=initialized, values=values)
