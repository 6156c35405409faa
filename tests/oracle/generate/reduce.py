"""Reductions and scans."""

import numpy as np

from generate.oracle import array, case, real, truth, whole

INF, NAN = np.inf, np.nan
CASES = [((5,), None), ((5,), 0), ((3, 4), None), ((3, 4), 0), ((3, 4), 1), ((3, 4), -1), ((2, 3, 4), 1), ((2, 3, 4), [0, 2]),
         ((2, 3, 4), [-1, 0]), ((2, 3, 4), [0, 1, 2]), ((2, 1, 3, 2), [1, 3]), ((1, 1), 0), ((33, 2), 0), ((2, 65), 1)]


def reduction(function, draw, differentiable=True, dtypes=(), empty=True):
    """Axes with and without keepdims, floating and other dtypes, size 0."""
    for shape, axis in CASES:
        case(function, [draw(*shape)], axis=axis)
    for shape, axis in CASES[:10]:
        case(function, [draw(*shape)], axis=axis, keepdims=True)
    if differentiable:
        for shape, axis in CASES[1:10]:
            case(function, [draw(*shape, dtype="float64")], axis=axis, keepdims=len(shape) == 3)
    case(function, [draw()], label="scalar")
    for dtype in dtypes:
        for axis in (None, 0, -1):
            case(function, [whole(3, 4, dtype=dtype, low=0, high=4)], axis=axis)
    if empty:
        case(function, [draw(0, 3)], label="empty", axis=1)
        case(function, [draw(3, 0)], label="empty_axis", axis=1)
        case(function, [draw(0, 2)], label="empty_axis", axis=0)


NUMBERS = ("int32", "int64", "uint8", "int8")
for name in ("sum", "prod"):
    reduction(name, real, dtypes=NUMBERS)
    case(name, [array([[INF, 1.0], [-INF, INF], [NAN, 0.0], [0.0, INF]])], label="special", axis=1)
case("prod", [array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]], "float64")], label="zeros", axis=1)
case("sum", [array([[1e8, 1.0, -1e8, 1.0]], "float64")], label="cancel", axis=1)

for name in ("max", "min"):
    reduction(name, real, dtypes=NUMBERS)
    case(name, [array([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [-1.0, 0.0, 0.0]], "float64")], label="ties", axis=1)
    case(name, [array([[INF, 1.0], [-INF, 3.0], [-INF, -INF]])], label="special", axis=1)

MOMENTS = {"mean": np.mean, "var": np.var, "std": np.std}


def moment(name):
    """A moment of whole numbers by the documentation. TensorFlow rejects their variance and truncates their mean."""

    def compute(x, axis=None):
        return np.asarray(MOMENTS[name](x.astype("float32"), axis), "float32")

    return compute


for name in ("mean", "var", "std"):
    reduction(name, real)
    for dtype in ("int32", "uint8", "int64"):
        for axis in (None, 0, -1):
            case(name, [whole(3, 4, dtype=dtype, low=0, high=4)], oracle=moment(name), axis=axis)
    for axis in (None, 0):
        case(name, [truth(4, 3)], label="bool", axis=axis)
    case(name, [array([[INF, 1.0], [NAN, 0.0]])], label="special", axis=1)
case("var", [array([[1e4, 1e4 + 1, 1e4 + 2]])], label="offset", axis=1)
case("std", [array([[2.0, 2.0, 2.0]])], label="constant", axis=1)

reduction("logsumexp", real)
case("logsumexp", [array([[1000.0, 1000.0], [-1000.0, -1000.0], [-1000.0, 0.0]])], label="large", axis=1)
case("logsumexp", [array([[-INF, -INF], [-INF, 0.0], [INF, 0.0], [NAN, 0.0]])], label="special", axis=1)

for name in ("any", "all"):
    for shape, axis in CASES:
        case(name, [truth(*shape)], axis=axis)
    for shape, axis in CASES[:10]:
        case(name, [truth(*shape)], axis=axis, keepdims=True)
    for dtype in ("float32", "int32", "float64", "uint8"):
        case(name, [whole(4, 3, dtype=dtype, low=0, high=1)], axis=1)
        case(name, [whole(4, 3, dtype=dtype, low=0, high=1)], axis=0)
    case(name, [truth(0, 3)], label="empty_axis", axis=0)
    case(name, [truth(0, 3)], label="empty", axis=1)
    case(name, [array([[NAN, 0.0], [-0.0, 0.0], [INF, 1.0]])], label="special", axis=1)

for name in ("argmax", "argmin"):
    for shape in ((5,), (3, 4), (2, 3, 4), (2, 1, 3, 2)):
        for axis in range(-1, len(shape)):
            case(name, [real(*shape)], axis=axis)
        case(name, [real(*shape, dtype="float64")])
    for dtype in ("int32", "int64", "uint8"):
        case(name, [whole(4, 5, dtype=dtype, low=0, high=2)], label="ties", axis=1)
        case(name, [whole(4, 5, dtype=dtype, low=0, high=2)], label="ties", axis=0)
    case(name, [array([[INF, -INF, 0.0], [0.0, 0.0, 0.0], [-INF, -INF, INF]])], label="special")
    case(name, [real(0, 3)], label="empty")


def slope_of_cumprod(weights, x):
    """Along the last axis: the product before an element times the weighted products after it. TensorFlow's gradient is 0 at zeros."""
    slope = np.zeros_like(x)
    for j in range(x.shape[-1]):
        behind = np.cumprod(np.concatenate([np.ones_like(x[..., :1]), x[..., j + 1:]], -1), -1)
        slope[..., j] = x[..., :j].prod(-1) * (weights[0][..., j:] * behind).sum(-1)
    return [slope]


for name in ("cumsum", "cumprod"):
    for shape in ((6,), (3, 4), (2, 3, 4), (1, 5)):
        for axis in range(-1, len(shape)):
            case(name, [real(*shape)], axis=axis)
            case(name, [real(*shape, dtype="float64", low=0.5)], axis=axis)
    for dtype in ("int32", "int64"):
        case(name, [whole(3, 4, dtype=dtype, low=-3, high=3)])
    case(name, [real(0, 3)], label="empty")
    case(name, [real(3, 0)], label="empty", axis=0)
    case(name, [array([1.0, INF, -INF, 2.0, NAN, 1.0])], label="special",
         gradient=slope_of_cumprod if name == "cumprod" else None)

case("cumprod", [array([[1.0, 0.0, 3.0, 2.0], [0.0, 0.0, 1.0, 2.0]], "float64")], label="zeros", gradient=slope_of_cumprod,
     axis=1)
