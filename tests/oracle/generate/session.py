"""Configuration, names, functions, gradients and the learning phase: scripts of calls."""

import numpy as np

from generate.oracle import array, case, real


def set_and_back(get, set_value, values):
    """The results of `get` before and after each value is set. Restores the first one."""
    before, seen = get(), []
    for value in values:
        set_value(value)
        seen.append(get())
    set_value(before)
    return [before, *seen]


for values in ([], ["float64"], ["float32"], ["float32", "float64"], ["float64", "float32"]):
    for name in ("floatx", "set_floatx"):
        case(name, call=lambda K, values: set_and_back(K.floatx, K.set_floatx, values), values=values)
for values in ([], [1e-5], [0.5], [1e-3, 1e-8], [0.0]):
    for name in ("epsilon", "set_epsilon"):
        case(name, call=lambda K, values: set_and_back(K.epsilon, K.set_epsilon, values), values=values)
for values in ([], ["channels_first"], ["channels_last"], ["channels_first", "channels_last"],
               ["channels_last", "channels_first"]):
    for name in ("image_data_format", "set_image_data_format"):
        case(name, call=lambda K, values: set_and_back(K.image_data_format, K.set_image_data_format, values), values=values)
case("backend", oracle=lambda: "syncline")


def cast_to_floatx(K, x, floatx):
    before = K.floatx()
    K.set_floatx(floatx)
    y = K.cast_to_floatx(x)
    K.set_floatx(before)
    return y


for floatx in ("float32", "float64"):
    for values, dtype in (([1, 2, 3], "int32"), ([[1.5, -2.25]], "float64"), ([[1.5], [-2.25]], "float32"),
                          ([True, False], "bool"), ([], "int64")):
        case("cast_to_floatx", [array(values, dtype)], script=cast_to_floatx, floatx=floatx)


def uids(K, prefixes):
    K.reset_uids()
    return [K.get_uid(p) if p is not None else K.reset_uids() or 0 for p in prefixes]


for prefixes in ([""], ["dense", "dense"], ["a", "b", "a", "b", "a"], ["", "", "x"], ["dense", None, "dense"],
                 ["a", "a", None, "a", None, "b"], ["a_1", "a", "a_1"]):
    for name in ("get_uid", "reset_uids", "clear_session"):
        # clear_session resets the uids, too.
        case(name, call=lambda K, prefixes: [np.array(uids(K, prefixes), np.int32)], prefixes=prefixes)


def differentiated(K, *tensors, loss):
    x, y = (list(tensors) + [None])[:2]
    value = {"square": lambda: K.sum(K.square(x)), "elements": lambda: K.square(x), "product": lambda: K.sum(x * y),
             "unused": lambda: K.sum(K.exp(x)) + 0 * K.sum(y), "chain": lambda: K.mean(K.tanh(K.dot(x, y))),
             "twice": lambda: K.sum(K.square(K.gradients(K.sum(x * x * x), [x])[0]))}[loss]()
    return K.gradients(value, list(tensors))


for dtype in ("float32", "float64"):
    for loss in ("square", "elements", "twice"):
        for shape in ((3,), (2, 3)):
            case("gradients", [real(*shape, dtype=dtype)], call=differentiated, loss=loss)
    for loss in ("product", "unused"):
        case("gradients", [real(2, 3, dtype=dtype), real(2, 3, dtype=dtype)], call=differentiated, loss=loss)
    case("gradients", [real(2, 3, dtype=dtype), real(3, 4, dtype=dtype)], call=differentiated, loss="chain")


def called(K, x, y, kind):
    """The results of a function by kind: of several outputs (two calls), a constant, equal outputs, an update (two calls)."""
    a, b = (K.placeholder(shape=t.shape, dtype=t.dtype.name) for t in (x, y))
    if kind == "outputs":
        f = K.function([a, b], [a + b, a * 2, K.sum(b)])
        return [*f([x, y]), *f([y, x])]
    if kind == "constant":
        return K.function([], [K.constant(2.0) * 3])([])
    if kind == "same":
        return K.function([a, b], [a + 1, a + 1, b + 1])([x, y])
    n = K.variable(np.zeros(x.shape), dtype=x.dtype.name)
    f = K.function([a, b], [a - b], [K.update_add(n, a)])
    return [*f([x, y]), *f([y, x]), K.get_value(n)]


for kind in ("outputs", "constant", "same", "update"):
    for dtype in ("float32", "float64"):
        case("function", [real(2, 3, dtype=dtype), real(2, 3, dtype=dtype)], script=called, kind=kind)


def in_phase(function):
    def call(K, x, alt, phase, training=None):
        if phase is not None:
            K.set_learning_phase(phase)
        return getattr(K, function)(x, alt, training)

    return call


for name in ("in_train_phase", "in_test_phase"):
    for dtype in ("float32", "float64"):
        for phase in (0, 1):
            case(name, [real(2, 3, dtype=dtype), real(2, 3, dtype=dtype)], call=in_phase(name), phase=phase)
            for training in (0, 1):
                case(name, [real(4, dtype=dtype), real(4, dtype=dtype)], call=in_phase(name), phase=phase, training=training)


def phases(K, values):
    """The values of in_train_phase for each learning phase that is set."""
    seen = []
    for value in values:
        K.set_learning_phase(value)
        seen.append(K.eval(K.in_train_phase(K.constant(1.0), K.constant(2.0))))
    return [np.array(seen, np.float32)]


for values in ([0], [1], [0, 1], [1, 0], [1, 1, 0]):
    case("set_learning_phase", script=phases, values=values)



for values in ([0], [1], [0, 1], [1, 0], [1, 1, 0]):
    case("learning_phase", oracle=lambda values: np.array([1.0 if v else 2.0 for v in values], np.float32), values=values)
for dtype in ("float32", "float64"):
    # TensorFlow cannot call a function without outputs.
    case("function", [real(2, 3, dtype=dtype), real(2, 3, dtype=dtype)], oracle=lambda x, y, kind: 0, kind="none")


def phase_of_functions(function):
    """A call with functions as sides and `training` as a tensor or None."""

    def call(K, x, alt, training, phase):
        if phase is not None:
            K.set_learning_phase(phase)
        return getattr(K, function)(lambda: K.exp(x), lambda: x * alt, training)

    return call


for name in ("in_train_phase", "in_test_phase"):
    for dtype in ("float32", "float64"):
        for value in (0, 1):
            x, alt = real(3, 2, dtype=dtype), real(3, 2, dtype=dtype)
            case(name, [x, alt, None], call=phase_of_functions(name), phase=value)
            case(name, [x, alt, array(value, "int32")], call=phase_of_functions(name), phase=None)
            case(name, [x, alt, array(value, "bool")], call=phase_of_functions(name), phase=None)
