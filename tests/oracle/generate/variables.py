"""Variables, their values and updates; tensors of one value."""

import numpy as np

from generate.oracle import array, case, real, truth, whole

FLOATS = ("float32", "float64")
SHAPES = [(), (3,), (2, 3), (2, 1, 2), (0, 3)]


for shape in SHAPES:
    for dtype in FLOATS:
        case("variable", [real(*shape, dtype=dtype)], script=lambda K, x: K.variable(x, dtype=x.dtype.name))
        case("get_value", [real(*shape, dtype=dtype)], script=lambda K, x: K.get_value(K.variable(x, dtype=x.dtype.name)))
        case("eval", [real(*shape, dtype=dtype)], script=lambda K, x: K.eval(K.constant(x, dtype=x.dtype.name) * 2))
for dtype in ("int32", "int64", "uint8", "bool"):
    case("variable", [whole(2, 3, dtype=dtype, low=0, high=1)], script=lambda K, x: K.variable(x, dtype=x.dtype.name))
    case("get_value", [whole(2, 3, dtype=dtype, low=0, high=1)],
         script=lambda K, x: K.get_value(K.variable(x, dtype=x.dtype.name)))


def set_value(K, x, new):
    v = K.variable(x, dtype=x.dtype.name)
    K.set_value(v, new)
    return [K.get_value(v), K.eval(v + v)]


def batch_set_value(K, *arrays):
    old, new = arrays[0::2], arrays[1::2]
    variables = [K.variable(x, dtype=x.dtype.name) for x in old]
    K.batch_set_value(list(zip(variables, new)))
    return K.batch_get_value(variables)


def batch_get_value(K, *arrays):
    return K.batch_get_value([K.variable(x, dtype=x.dtype.name) for x in arrays])


for shape in SHAPES:
    for dtype in FLOATS:
        case("set_value", [real(*shape, dtype=dtype), real(*shape, dtype=dtype)], script=set_value)
        if shape:
            case("batch_set_value", [real(*shape, dtype=dtype), real(*shape, dtype=dtype), real(2, dtype=dtype),
                                     real(2, dtype=dtype)], script=batch_set_value)
            case("batch_get_value", [real(*shape, dtype=dtype), real(2, 2, dtype=dtype)], script=batch_get_value)
case("batch_get_value", [real(2)], script=batch_get_value)


def by_hand(rule):
    """Two steps of a function that returns the variable and twice the feed; then the variable. TensorFlow may read a variable
    before or after its update; by the documentation the function returns the value before the update."""

    def oracle(x, change, **args):
        kind = x.dtype.type
        first = rule(x, change, **{k: kind(v) for k, v in args.items()})
        second = rule(first, change + kind(1), **{k: kind(v) for k, v in args.items()})
        return [x, first, (change + kind(1)) * kind(2), second]

    return oracle


UPDATES = {"update": (lambda x, new: new, [{}]), "update_add": (lambda x, d: x + d, [{}]), "update_sub": (lambda x, d: x - d, [{}]),
           "moving_average_update": (lambda x, value, momentum: x * momentum + value * (1 - momentum),
                                     [dict(momentum=0.9), dict(momentum=0.5), dict(momentum=0.0), dict(momentum=1.0)])}
for name, (rule, options) in UPDATES.items():
    for args in options:
        for shape in SHAPES:
            for dtype in FLOATS:
                case(name, [real(*shape, dtype=dtype), real(*shape, dtype=dtype)], oracle=by_hand(rule), **args)
    if name != "moving_average_update":
        for dtype in ("int32", "int64"):
            case(name, [whole(3, dtype=dtype), whole(3, dtype=dtype)], oracle=by_hand(rule))

for shape in ((), (3,), (2, 3), (0, 2), (1, 2, 3)):
    for name in ("zeros", "ones"):
        case(name, script=lambda K, shape, f=name: getattr(K, f)(shape), shape=shape)
    for dtype in FLOATS:
        for name in ("zeros_like", "ones_like", "identity"):
            case(name, [real(*shape, dtype=dtype)])
        case("count_params", [real(*shape, dtype=dtype)], script=lambda K, x: int(K.count_params(K.variable(x))))
        case("shape", [real(*shape, dtype=dtype)])
        case("stop_gradient", [real(*shape, dtype=dtype)], call=lambda K, x: x * x + K.stop_gradient(x * x) * x)
        for value in (0.0, -1.5):
            case("constant", script=lambda K, value, dtype, shape: K.constant(value, dtype, shape), value=value, dtype=dtype,
                 shape=shape)
for dtype in ("int32", "int64", "uint8", "bool"):
    for name in ("zeros_like", "ones_like", "identity"):
        case(name, [whole(2, 3, dtype=dtype, low=0, high=1)])
    case("shape", [whole(2, 0, 3, dtype=dtype, low=0, high=1)])
    case("constant", script=lambda K, value, dtype, shape: K.constant(value, dtype, shape), value=dtype == "bool" or 1,
         dtype=dtype, shape=(2,))
case("identity", [array([np.nan, np.inf, -0.0])], label="special")
case("zeros_like", [array([np.nan, np.inf])], label="special")
case("identity", [truth(3)])
for name in ("zeros", "ones"):
    for dtype in (*FLOATS, "float16", "int32", "int64", "uint8"):
        case(name, script=lambda K, shape, dtype, f=name: getattr(K, f)(shape, dtype), shape=(2, 3), dtype=dtype)
