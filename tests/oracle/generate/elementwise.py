"""Elementwise functions."""

import numpy as np

from generate.oracle import array, case, real, truth, whole

INF, NAN = np.inf, np.nan
SPECIAL = [[0.0, -0.0, 1.0, -1.0], [INF, -INF, NAN, 1e-30]]
SHAPES = [(), (1,), (5,), (2, 3), (3, 1, 4), (2, 3, 1, 2), (0,), (0, 3), (3, 0), (1, 17), (33, 2)]
INTEGERS = ("int8", "int16", "int32", "int64")


def unary(function, low=-3.0, high=3.0, integers=INTEGERS, special=SPECIAL):
    """Every shape, both floating dtypes, integers, special values."""
    for shape in SHAPES:
        case(function, [real(*shape, low=low, high=high)])
    for shape in SHAPES[:6]:
        case(function, [real(*shape, dtype="float64", low=low, high=high)])
    case(function, [array(special)], label="special")
    case(function, [array(special, "float64")], label="special")
    for dtype in integers:
        case(function, [whole(3, 4, dtype=dtype, low=-9, high=9)])


unary("square")
unary("abs")
unary("sign")
unary("exp", integers=())
unary("sin", integers=(), low=-7.0, high=7.0)
unary("cos", integers=(), low=-7.0, high=7.0)
unary("log", low=0.01, high=9.0, integers=())
unary("sqrt", low=0.01, high=9.0, integers=())
case("sqrt", [real(4, 5, low=-5.0, high=5.0)], label="negative")
case("exp", [array([-200.0, -90.0, -88.0, 88.0, 89.0, 200.0])], label="range")
case("exp", [array([-800.0, -745.0, 709.0, 710.0], "float64")], label="range")
case("sin", [array([1e3, -1e4, 3.14159265, 1e5])], label="large", tolerance="loose")
case("cos", [array([1e3, -1e4, 3.14159265, 1e5])], label="large", tolerance="loose")
case("log", [array([2e-38, 1e38, 1.0, 0.9999999])], label="range")

unary("round", integers=("int32", "int64"), special=[[0.5, 1.5, 2.5, -0.5], [INF, -INF, NAN, -2.5]])
case("round", [array([-3.5, -1.5, -1.4999, 0.49999997, 8388607.5, 1e20])], label="halves")

for a in (0, 1, 2, 3, -1, -2, 0.5, 1.5, 10):
    low = 0.1 if a != int(a) or a < 0 else -2.0
    case("pow", [real(3, 4, low=low)], a=a)
    case("pow", [real(4, dtype="float64", low=low)], a=a)
for dtype in ("int32", "int64"):
    case("pow", [whole(3, 3, dtype=dtype)], a=3)
    case("pow", [whole(3, 3, dtype=dtype)], a=0)
case("pow", [array(SPECIAL)], label="special", a=2)
case("pow", [array(SPECIAL)], label="special", a=0)
case("pow", [array([0.0, 4.0, INF, NAN])], label="special", a=0.5)
case("pow", [array([-8.0, -1.0])], label="negative_base", a=0.5)
case("pow", [real(0, 2)], label="empty", a=2)
case("pow", [real(2, 3, low=0.1), real(2, 3)], label="tensor")
case("pow", [real(2, 3, dtype="float64", low=0.1), real(3, dtype="float64")], label="tensor")

for low, high in ((-1, 1), (0, 1), (0.5, 0.5), (-0.25, 10), (-INF, 0.5), (-0.5, INF)):
    case("clip", [real(3, 4)], min_value=low, max_value=high)
    case("clip", [real(7, dtype="float64")], min_value=low, max_value=high)
for low, high in ((None, 0.5), (-0.5, None)):
    bounds = dict(min_value=low, max_value=high)
    inner = lambda x, min_value, max_value: np.clip(x, min_value, max_value)  # noqa: E731
    case("clip", [real(3, 4)], label="one_bound", oracle=inner, **bounds)
    case("clip", [real(3, 4, dtype="float64")], label="one_bound", oracle=inner, **bounds)
for dtype in INTEGERS:
    case("clip", [whole(3, 5, dtype=dtype, low=-9, high=9)], min_value=-3, max_value=4)
case("clip", [real(2, 3)], label="crossed", min_value=1.0, max_value=-1.0)
case("clip", [array([[NAN, INF, -INF, 0.0]])], label="special", min_value=-1.0, max_value=1.0)
case("clip", [real(0, 3)], label="empty", min_value=-1.0, max_value=1.0)

PAIRS = [((3, 4), (3, 4)), ((3, 4), (4,)), ((4,), (3, 4)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((), (2, 3)), ((5,), ()),
         ((0, 3), (3,)), ((2, 0), (2, 1)), ((1,), (1,))]


def binary(function, differentiable, bools=True):
    """Broadcasting shapes, dtypes, ties, special values."""
    for a, b in PAIRS:
        case(function, [real(*a), real(*b)])
    for a, b in PAIRS[:6]:
        case(function, [real(*a, dtype="float64"), real(*b, dtype="float64")], gradient=None if differentiable else False)
    for dtype in (*INTEGERS, "uint8"):
        case(function, [whole(4, 5, dtype=dtype, low=0, high=3), whole(5, dtype=dtype, low=0, high=3)], label="ties")
    if bools:
        case(function, [truth(3, 4), truth(4)])
        case(function, [truth(2), truth(2)])
    numbers = [0.0, -0.0, 1.0, INF, -INF, NAN]
    case(function, [array(np.repeat(numbers, 6)), array(np.tile(numbers, 6))], label="special")
    case(function, [array(np.repeat(numbers, 6), "float64"), array(np.tile(numbers, 6), "float64")], label="special")


for name in ("equal", "not_equal"):
    binary(name, False)
for name in ("greater", "greater_equal", "less", "less_equal"):
    binary(name, False, bools=False)
for name in ("maximum", "minimum"):
    binary(name, True, bools=False)

DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool")
for target in DTYPES:
    for source in ("float32", "float64", "int32", "int16"):
        operand = whole(3, 4, dtype=source, low=0, high=5) if "int" in source else real(3, 4, dtype=source, low=0, high=5)
        case("cast", [operand], dtype=target)
    case("cast", [truth(5)], dtype=target)
for target in ("int8", "int16", "int32", "int64"):
    case("cast", [real(4, 3, low=-100, high=100)], label="truncates", dtype=target)
case("cast", [array([NAN, INF, -INF, 0.0, -0.0])], label="special", dtype="float64")
case("cast", [array([NAN, INF, -INF, 0.0, -0.0])], label="special", dtype="bool")
case("cast", [array([1e300, 1e-300, 0.1], "float64")], label="range", dtype="float32")
case("cast", [real(0, 2)], label="empty", dtype="int32")
case("cast", [array(3.7)], label="scalar", dtype="int32")
