"""Elementwise functions and functions of rows at the edges of their domains: one list of values per dtype, with gradients."""

import functools

import numpy as np

from generate.normalization import along
from generate.oracle import array, case
from generate.reduce import slope_of_cumprod

FLOATS = ("float32", "float64")


def edges(dtype):
    """Zeros, infinities, NaN, the numbers next to 0 and infinity, subnormal numbers, numbers whose exp overflows, ties with the bounds
    below. The loss (oracle.weights_of) gives the sixth of each eleven elements the weight 0; these are ordinary numbers."""
    info = np.finfo(dtype)
    beyond_exp = 100 if dtype == "float32" else 1000
    return [0.0, -0.0, np.inf, -np.inf, np.nan, 2.0, info.max, info.tiny / 3, 1.0, -1.0, info.tiny,
            -info.tiny / 3, -info.max, info.smallest_subnormal, beyond_exp, -beyond_exp, 2.0, 2.5, -2.5, -info.tiny]


FIRST = slice(11)  # the most important values: functions of two operands have cases of all pairs


def edge(function, inputs, **options):
    case(function, inputs, label="edges", tolerance="edge", **options)


# ---- one operand ----
ONE = [("abs", {}), ("sign", {}), ("square", {}), ("sqrt", {}), ("exp", {}), ("round", {}), ("sin", {}), ("cos", {}),
       ("sigmoid", {}), ("hard_sigmoid", {}), ("tanh", {}), ("softplus", {}), ("softsign", {}),
       ("relu", {}), ("relu", dict(alpha=0.25)), ("relu", dict(max_value=2.5)),
       ("clip", dict(min_value=-1.0, max_value=2.5)), ("clip", dict(min_value=0.0, max_value=np.inf)),
       ("clip", dict(min_value=1.0, max_value=1.0)),
       *(("pow", dict(a=a)) for a in (0, 1, 2, 3, -1, -2, 0.5, -0.5)),
       *(("cast", dict(dtype=dtype)) for dtype in ("bool", "float16", *FLOATS))]
for name, options in ONE:
    for dtype in FLOATS:
        edge(name, [array(edges(dtype), dtype)], **options)


def rectified(x, alpha=0.0, max_value=None, threshold=0.0):
    """relu by the documentation. TensorFlow multiplies x by a mask of 0 and 1, and infinity times 0 is NaN."""
    below = x.dtype.type(alpha) * (x - x.dtype.type(threshold)) if alpha else np.where(np.isnan(x), x, 0)
    return np.where(x >= threshold, x if max_value is None else np.clip(x, 0, max_value), below).astype(x.dtype)


def slope_of_rectified(weights, x, alpha=0.0, max_value=None, threshold=0.0):
    kept = (x >= threshold) & (True if max_value is None else (x >= 0) & (x <= max_value))
    return [(weights[0] * np.where(x < threshold, alpha, kept)).astype(x.dtype)]


def exponential(x, alpha=1.0):
    """elu by the documentation. TensorFlow's kernel treats numbers next to 0 as 0."""
    return np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, 0)))


def reciprocals(weights, x):
    """The gradient of log. TensorFlow's gradient in float32 loses subnormal numbers."""
    return [(weights[0] / x).astype(x.dtype)]


for dtype in FLOATS:
    values = array(edges(dtype), dtype)
    for options in (dict(threshold=1.0), dict(alpha=0.25, max_value=2.5, threshold=-1.0), dict(alpha=-0.5, threshold=1.0)):
        edge("relu", [values], oracle=rectified, gradient=functools.partial(slope_of_rectified, **options), **options)
    for options in ({}, dict(alpha=0.5)):
        edge("elu", [values], oracle=exponential, gradient="tensorflow", **options)
    edge("log", [values], gradient=reciprocals)

# ---- two operands ----
for name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    for dtype in FLOATS:
        edge(name, [array(edges(dtype), dtype)[:, None], array(edges(dtype), dtype)])
for name in ("maximum", "minimum", "pow"):
    for dtype in FLOATS:
        values = array(edges(dtype), dtype)[FIRST]
        edge(name, [np.repeat(values, len(values)), np.tile(values, len(values))])
for dtype in FLOATS:
    values = array(edges(dtype), dtype)
    for logits in (False, True):
        for target in (0.0, 1.0):
            edge("binary_crossentropy", [np.full_like(values, target), values], from_logits=logits)
        edge("binary_crossentropy", [values, np.full_like(values, 0.25)], from_logits=logits)
    for condition in (True, False):
        edge("switch", [array(condition, "bool"), values, values[::-1]], call=lambda K, c, a, b, kind: K.switch(c, a, b),
             kind="tensors")
    edge("switch", [np.isnan(values) | (values > 0), values, values[::-1]], call=lambda K, c, a, b, kind: K.switch(c, a, b),
         kind="tensors")

# ---- rows: an edge beside ordinary numbers, which set the scale of the tolerance ----


def beside(function, inputs, **options):
    case(function, inputs, label="edges", **options)


REDUCTIONS = ("softmax", "l2_normalize", "logsumexp", "sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "cumsum")
# docs/differences.md: argmax and argmin return the first NaN; cumprod has gradients where TensorFlow's are 0.
OWN = {"argmax": dict(oracle=lambda x, axis: np.argmax(x, axis)), "argmin": dict(oracle=lambda x, axis: np.argmin(x, axis)),
       "cumprod": dict(gradient=slope_of_cumprod)}
for dtype in FLOATS:
    values = array(edges(dtype), dtype)
    rows = np.stack([values, np.full_like(values, 0.25), np.full_like(values, 0.5)], 1)
    for name in (*REDUCTIONS, *OWN):
        beside(name, [rows], axis=1, **OWN.get(name, {}))
    for logits in (False, True):
        for share in ([1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]):
            beside("categorical_crossentropy", [array(np.tile(share, (len(rows), 1)), dtype), rows], from_logits=logits)
        for label in (0, 1):
            beside("sparse_categorical_crossentropy", [np.full(len(rows), label, "int32"), rows], from_logits=logits)
for dtype in FLOATS:
    values = array(edges(dtype), dtype)
    plain = [np.full_like(values, number) for number in (0.5, 4, 0.5, 0.5)]  # mean, variance, beta, gamma
    x = np.stack([np.full_like(values, 0.25), np.full_like(values, 2)])
    beside("batch_normalization", [np.stack([values, values]), *plain])
    for place in range(4):  # the documented formula; TensorFlow expands it to differences of infinities
        beside("batch_normalization", [x, *plain[:place], values, *plain[place + 1:]], oracle=along, axis=-1)
    beside("bias_add", [x, values])
    beside("bias_add", [np.stack([values, values[::-1]]), values])
for label in (0, 1):
    for k in (1, 2):  # TensorFlow has float32 only
        values = array(edges("float32"), "float32")
        rows = np.stack([values, np.full_like(values, 0.25), np.full_like(values, 0.5)], 1)
        beside("in_top_k", [rows, np.full(len(rows), label, "int32")], k=k)
