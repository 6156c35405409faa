"""Choice, maps, folds and print_tensor. tests/oracle/calls_control.cc has the same functions by the same names."""

import numpy as np
import tensorflow as tf

from generate.oracle import array, case, real, truth, whole


def sides(K, kind, condition, a, b):
    """The condition and both sides, by kind."""

    def nested():
        return K.switch(K.sum(b) > 0, lambda: K.exp(a), lambda: b)

    return {"tensors": (condition, a, b),
            "then_function": (condition, lambda: a * b, b),
            "else_function": (condition, a, lambda: K.square(b)),
            "functions": (condition, lambda: K.exp(a), lambda: a + b),
            "logarithm": (condition, lambda: K.log(a), lambda: a * b),
            "mixing": (condition, lambda: a - K.mean(a, 0), lambda: K.softmax(b)),
            "nested": (condition, nested, lambda: K.tanh(b)),
            "data": (K.sum(a) > K.sum(b), lambda: a * a, lambda: b * a)}[kind]


def choose(K, condition, a, b, kind):
    return K.switch(*sides(K, kind, condition, a, b))


KINDS = ("tensors", "then_function", "else_function", "functions", "mixing", "nested", "data")
for kind in KINDS:
    for dtype in ("float32", "float64"):
        for condition in (array(1, "int32"), array(0, "int32"), array(True, "bool"), array(0.5, "float64")):
            case("switch", [condition, real(3, 2, dtype=dtype), real(3, 2, dtype=dtype)], call=choose, gradient=None,
                 kind=kind)
# The side that is not taken has an infinite derivative.
case("switch", [array(0, "int32"), array([0.0, -1.0, 2.0], "float64"), real(3, dtype="float64")], call=choose, kind="logarithm")
for value in (np.nan, np.inf, -0.0, 1e-300):
    case("switch", [array(value, "float64"), real(4), real(4)], call=choose, kind="tensors")
for dtype in ("int8", "int32", "int64", "uint8"):
    case("switch", [array(dtype == "int8", "bool"), whole(4, dtype=dtype, low=0), whole(4, dtype=dtype, low=0)], call=choose,
         kind="tensors")
# TensorFlow cannot tile bool.
case("switch", [array(1, "uint8"), truth(3, 2), truth(3, 2)], oracle=lambda condition, a, b, kind: a, kind="tensors")
case("switch", [array(1, "int64"), real(), real()], call=choose, kind="tensors")
case("switch", [array(0, "int64"), real(0, 3), real(0, 3)], call=choose, kind="tensors")


def rows(condition, a, b, kind):
    """switch with a vector as its condition, which chooses whole rows."""
    condition = condition.astype(bool).reshape(-1, *[1] * (a.ndim - 1))
    return np.where(condition, np.exp(a), a + b) if kind == "functions" else np.where(condition, a, b)


def rows_gradient(weights, condition, a, b, kind="tensors"):
    condition = condition.reshape(-1, *[1] * (a.ndim - 1))
    return [None, np.where(condition, weights[0], 0), np.where(condition, 0, weights[0])]


# Element by element: the condition has the expressions' first axes.
for condition, shape in (((3,), (3, 2)), ((2,), (2, 2)), ((4,), (4, 2, 3)), ((0,), (0, 2)), ((1,), (3, 2))):
    for dtype in ("float32", "float64"):
        case("switch", [truth(*condition), real(*shape, dtype=dtype), real(*shape, dtype=dtype)], oracle=rows,
             gradient=rows_gradient if dtype == "float64" else None, kind="tensors")
    case("switch", [whole(*condition, low=-1, high=1), real(*shape), real(*shape)], oracle=rows, kind="functions")
case("switch", [array([True, False], "bool"), array([[np.nan, 1], [2, 3]]), array([[4, np.inf], [np.nan, 5]])], oracle=rows,
     kind="tensors")
for condition, shape in (((3,), (3,)), ((3, 2), (3, 2)), ((3, 1), (3, 2)), ((1, 2), (3, 2)), ((3, 2), (3, 2, 4)),
                         ((3, 1, 2), (3, 4, 2)), ((1, 1), (3, 2)), ((0, 2), (0, 2))):
    for dtype in ("float32", "float64"):
        case("switch", [truth(*condition), real(*shape, dtype=dtype), real(*shape, dtype=dtype)], call=choose, kind="tensors")
    case("switch", [whole(*condition, low=-1, high=1), real(*shape, dtype="float64"), real(*shape, dtype="float64")],
         call=choose, kind="functions")
case("switch", [truth(4), whole(4, dtype="int64"), whole(4, dtype="int64")], call=choose, kind="tensors")


def mapped(K, x, y, weights, kind, dtype=None):
    fn = {"square": lambda e: e * e, "sum": lambda e: K.sum(e * e), "product": lambda e: K.dot(e, weights),
          "affine": lambda e: e * weights + K.sum(e), "softmax": lambda e: K.exp(e) / K.sum(K.exp(e)),
          "cast": lambda e: K.cast(e, "float32") * 0.5, "compare": lambda e: K.greater(K.sum(e), 0),
          "pair": lambda e: e[0] * e[1], "two": lambda e: (e[0] + e[1], K.sum(e[0]))}[kind]
    if kind == "two":
        return list(K.map_fn(fn, (x, y), dtype=(dtype, dtype)))
    return K.map_fn(fn, (x, y) if kind == "pair" else x, dtype=dtype)


for dtype in ("float32", "float64"):
    for shape in ((4, 3), (1, 3), (3, 2, 2)):
        case("map_fn", [real(*shape, dtype=dtype), None, None], call=mapped, kind="square")
        case("map_fn", [real(*shape, dtype=dtype), None, None], call=mapped, kind="sum")
    case("map_fn", [real(4, dtype=dtype), None, None], call=mapped, kind="square")
    case("map_fn", [real(4, 3, dtype=dtype), None, real(3, dtype=dtype)], call=mapped, kind="affine", open_batch=[0])
    case("map_fn", [real(4, 2, 3, dtype=dtype), None, real(3, 2, dtype=dtype)], call=mapped, kind="product", open_batch=[0])
    case("map_fn", [real(4, 3, dtype=dtype), None, None], call=mapped, kind="softmax")
    case("map_fn", [real(4, 3, dtype=dtype), real(4, 3, dtype=dtype), None], call=mapped, kind="pair", dtype=dtype)
    case("map_fn", [real(4, 3, dtype=dtype), real(4, 3, dtype=dtype), None], call=mapped, kind="two", dtype=dtype)
    case("map_fn", [real(4, 3, dtype=dtype), None, None], call=mapped, kind="compare", dtype="bool")
case("map_fn", [whole(5), None, None], call=mapped, kind="cast", dtype="float32")
case("map_fn", [whole(5, 2, dtype="int64"), None, None], call=mapped, kind="cast", dtype="float32")
case("map_fn", [array([[1, np.nan], [np.inf, -1]]), None, None], call=mapped, kind="square")
case("map_fn", [np.zeros((0, 3), np.float32), None, None], oracle=lambda x, y, w, kind: x, kind="square", label="nothing")
case("map_fn", [np.zeros((0, 3), np.float32), None, None], oracle=lambda x, y, w, kind: np.zeros(0, np.float32), kind="sum",
     label="nothing")


def folded(name):
    def call(K, x, y, first, second, kind):
        fn = {"add": lambda a, e: a + e, "sub": lambda a, e: e - a, "decay": lambda a, e: a * 0.5 + K.tanh(e),
              "product": lambda a, e: K.dot(a, e), "count": lambda a, e: a + 1, "norm": lambda a, e: a + K.sum(e * e),
              "two": lambda a, e: (a[0] * e[1] + a[1], e[0] - a[1])}[kind]
        fold = getattr(K, name)
        if kind == "two":
            return list(fold(fn, (x, y), initializer=None if first is None else (first, second)))
        return fold(fn, x, initializer=first)

    return call


for name in ("foldl", "foldr"):
    call = folded(name)
    for dtype in ("float32", "float64"):
        for kind in ("add", "sub", "decay"):
            case(name, [real(4, 3, dtype=dtype), None, None, None], call=call, kind=kind)
            case(name, [real(4, 3, dtype=dtype), None, real(3, dtype=dtype), None], call=call, kind=kind, open_batch=[0])
            case(name, [real(5, dtype=dtype), None, None, None], call=call, kind=kind)
        case(name, [real(1, 3, dtype=dtype), None, None, None], call=call, kind="sub")
        case(name, [real(3, 2, 2, dtype=dtype), None, None, None], call=call, kind="product")
        case(name, [real(4, 3, dtype=dtype), None, real(dtype=dtype), None], call=call, kind="norm")
        case(name, [real(4, 3, dtype=dtype), real(4, 3, dtype=dtype), None, None], call=call, kind="two")
        case(name, [real(4, 3, dtype=dtype), real(4, 3, dtype=dtype), real(3, dtype=dtype), real(3, dtype=dtype)], call=call,
             kind="two", open_batch=[0, 1])
    case(name, [whole(6, dtype="int64"), None, None, None], call=call, kind="sub")
    case(name, [whole(6), None, array(3, "int32"), None], call=call, kind="count")
    case(name, [array([1, np.nan, 2]), None, None, None], call=call, kind="add")
    case(name, [np.zeros((0, 3), np.float32), None, real(3), None], call=call, kind="decay", open_batch=[0])


def printed(x, message):
    """The text that NumPy prints. format() of a scalar array would give Python's text."""
    return [x, f"{message} {str(x)}\n" if message else f"{str(x)}\n"]


TEXTS = (array([[1]]), array([0.1, 1 / 3, -2.5, 1000]), array([1e-5, 1], "float64"), array([1e8, 2.5, -1], "float64"),
         array([1e100, 1e-7, np.nan, -np.inf], "float64"), array([np.nan, 1.5, np.inf]), array([[1, -20], [300, 4]], "int64"),
         array([True, False]), array(np.arange(30) * 1000, "int32"), array(np.arange(12).reshape(2, 3, 2), "uint8"),
         array(0.1), array(3, "float64"), array(True, "bool"), array(7, "int8"), array([0.1, 0.7, 65504], "float16"),
         array([[0.5, 1.25]], "float16"), np.zeros((0, 3), np.float32), array([123456.789, 0.25, 1.123456789012], "float64"))
for index, value in enumerate(TEXTS):
    case("print_tensor", [value], oracle=printed, message="x is:" if index % 3 else "", ranks=False)
for shape in ((5,), (2, 3), (2, 2, 2), (1, 1)):
    case("print_tensor", [real(*shape, dtype="float64")], oracle=printed, message="msg", ranks=False)
    case("print_tensor", [whole(*shape, low=-200, high=1000)], oracle=printed, message="msg", ranks=False)
    case("print_tensor", [real(*shape)], oracle=printed, message="msg", ranks=False)
for shape in ((2,), (2, 2)):
    # The value that passes through. The printed text appears in the test's output.
    case("print_tensor", [real(*shape, dtype="float64")], oracle=lambda x, message, through: x,
         gradient=lambda weights, x: weights, message="through", through=True)
