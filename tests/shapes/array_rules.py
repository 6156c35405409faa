"""Reductions, and functions that move elements: NumPy is the model."""

import warnings

import numpy as np

from calls import Operand, Size
from check import Later
from entry import Entry, no_axis_of_scalar, require

REDUCTIONS = ("max", "min", "sum", "prod", "var", "std", "mean", "any", "all", "logsumexp")
FORMATS = ("channels_last", "channels_first")


# ---- along axes ----
def reduction(d):
    x = d.operand()
    return x, d.axes(len(x.shape)), d.chance(0.5)


def reduced(x, axis, keepdims):
    # np.sum for all reductions: NumPy rejects the maximum of no elements; the backend has one, like TensorFlow.
    no_axis_of_scalar(x, axis)
    return np.sum(x, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)


def along_axis(d):
    x = d.operand()
    return x, d.axis(len(x.shape))


def index_of_extremum(d):
    x, axis = along_axis(d)
    return x, None if d.chance(0.1) else axis


def argmax(x, axis):
    axis = 0 if axis is None else axis  # Keras 2 passes None to TensorFlow, which uses axis 0
    no_axis_of_scalar(x, axis)
    return np.argmax(x, axis=axis)


def scanned(x, axis):
    no_axis_of_scalar(x, axis)
    return np.cumsum(x, axis=axis)


def several_axes(d):
    x = d.operand()
    return x, d.axes(len(x.shape))


def normalized(x, axis):
    reduced(x, axis, True)
    return x


def reversed_along(x, axes):
    require(axes is not None, "no axes")  # the documentation requires them
    no_axis_of_scalar(x, axes)
    return np.flip(x, tuple(axes) if isinstance(axes, list) else axes)


# ---- views ----
def reshaping(d):
    x = d.operand()
    sizes, rest = [], int(np.prod(x.shape, dtype=int))
    for _ in range(d.integer(0, 4)):
        sizes.append(d.choice([n for n in range(1, 9) if rest % n == 0]) if rest else d.choice((0, 1, 2, 3)))
        rest = rest // max(1, sizes[-1])
    sizes.append(rest)
    if d.wrong(0.3):
        sizes = list(d.damaged(sizes, 1))
    if sizes and d.chance(0.4):
        for _ in range(2 if d.wrong(0.2) else 1):
            sizes[d.integer(0, len(sizes) - 1)] = d.choice([-1, None])
    return x, tuple(sizes) if None in sizes else d.numbers(sizes)


def reshaped(x, shape):
    return np.reshape(x, [-1 if n is None else n for n in shape])


def permutation(d):
    x = d.operand()
    ndim = len(x.shape)
    pattern = [axis - ndim if d.chance(0.2) else axis for axis in d.random.sample(range(ndim), ndim)]
    if d.wrong(0.4):
        pattern = d.choice([pattern + [0], pattern[1:], pattern[:-1] + [ndim], pattern[:1] + pattern[:-1]])
    return x, tuple(pattern)


def expansion(d):
    x = d.operand()
    return x, d.axis(len(x.shape) + 1, 0.35)


def squeezing(d):
    x = d.operand()
    ones = [axis for axis, n in enumerate(x.shape) if n == 1]
    if ones and d.chance(0.8):
        return x, d.choice(ones) - (len(x.shape) if d.chance(0.5) else 0)
    return x, d.axis(len(x.shape))


def squeezed(x, axis):
    no_axis_of_scalar(x, axis)
    return np.squeeze(x, axis=axis)


def batch_flattened(x):
    require(x.ndim > 0, "a scalar has no samples")
    return np.reshape(x, (len(x), int(np.prod(x.shape[1:]))))


# ---- joining, cutting, repeating ----
def joining(d):
    x = d.operand(1)
    axis = d.axis(len(x.shape), 0.12)
    at = axis % len(x.shape) if x.shape else 0
    parts = [x.shape]
    for _ in range(d.integer(0, 3)):
        shape = list(x.shape)
        if shape:
            shape[at] = d.choice((0, 1, 2, 3, 5))
        parts.append(d.damaged(shape, 0.12))
    sparse = d.chance(0.5)
    parts = [Operand(shape, sparse=len(shape) == 2 and sparse and d.chance(0.8)) for shape in parts]
    return [] if d.wrong(0.03) else parts, axis


def stacking(d):
    x = d.operand(0, 5)
    parts = [x] + [Operand(d.damaged(x.shape, 0.12)) for _ in range(d.integer(0, 3))]
    return [] if d.wrong(0.03) else parts, d.axis(len(x.shape) + 1, 0.12)


def slicing(d):
    x = d.operand()
    start, size = [], []
    for n in x.shape:
        start.append(d.integer(0, n))
        size.append(d.choice([-1, d.integer(0, n - start[-1])]))
        if d.wrong(0.1):
            start[-1] = d.choice([-1, -n - 1, n + 1])
        if d.wrong(0.1):
            size[-1] = d.choice([-2, n + 1, n + 3])
    if d.wrong(0.1):
        size = size[1:] if size else [1]
    return x, d.numbers(start), d.numbers(size)


def sliced(x, start, size):
    # The documented rule: slices that reach outside are rejected; NumPy cuts them off.
    require(len(start) == len(size) == x.ndim)
    key = []
    for n, first, count in zip(x.shape, start, size):
        last = n if count == -1 else first + count
        require(0 <= first <= last <= n and count >= -1)
        key.append(slice(first, last))
    return x[tuple(key)]


def bound(d, n):
    number = d.choice([None, 0, 1, -1, 2, n, n - 1, -n, n + 2, -n - 2])
    return None if number is None else Size(number)


def subscripts(d):
    x = d.operand(1)
    key, arrays, array = [], d.chance(0.2), None
    for n in x.shape[: d.integer(0, len(x.shape))]:
        way = d.integer(0, 5)
        if way <= 1 and not arrays:
            key.append(d.choice([0, n - 1, -1, -n, n, -n - 1] if d.wrong(0.5) else [n - 1, -n]))
            key[-1] = Size(key[-1]) if key[-1] >= 0 else key[-1]  # an index in a tensor counts from 0
        elif way == 2:
            key.append(None)
        elif way == 3 and arrays and not array:
            array = Operand(d.sizes(d.integer(0, 2)), "int32", fixed=True)
            key.append(array)
        else:
            step = 0 if d.wrong(0.05) else d.choice([None, 1, 1, 2, -1, -2, 3, -7, 9])
            key.append(slice(bound(d, n), bound(d, n), step))
    for _ in range(d.choice([0, 0, 1]) + d.wrong(0.06)):
        key.insert(d.integer(0, len(key)), Ellipsis)
    if d.wrong(0.06):
        key += [slice(None)] * (len(x.shape) + 1)
    return x, key[0] if len(key) == 1 and d.chance(0.5) else tuple(key)


def taken(x, key):
    keys = key if isinstance(key, tuple) else (key,)
    x[tuple(slice(None) if isinstance(k, np.ndarray) else k for k in keys)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy's, of an index outside the axis if nothing is taken
        try:
            return x[key]
        except (IndexError, DeprecationWarning) as error:
            raise Later("an index is outside") from error


def repeating(d):
    x = d.operand()
    return x, -1 if d.wrong() else d.integer(0, 4), d.axis(len(x.shape))


def repeated_elements(x, rep, axis):
    no_axis_of_scalar(x, axis)
    require(rep >= 0)  # NumPy accepts a negative number if there is nothing to repeat
    return np.repeat(x, rep, axis=axis)


def repeated(x, n):
    require(x.ndim == 2 and n >= 0)  # the documented rule: (samples, dim)
    return np.repeat(x[:, None], n, axis=1)


def tiling(d):
    x = d.operand(0, 5)
    n = [d.choice((0, 1, 1, 2, 3)) for _ in x.shape]
    n = n[1:] if d.chance(0.2) else n
    n = n + [1] if d.wrong() else n
    n = [-n[0] - 1] + n[1:] if n and d.wrong(0.2) else n
    return x, Size(n[0]) if len(n) == 1 and d.chance(0.5) else d.numbers(n)


def tiled(x, n):
    counts = np.atleast_1d(np.array(n, int))
    require(len(counts) <= x.ndim and (counts >= 0).all())  # the documented rule; NumPy would add axes
    return np.tile(x, n)


# ---- images ----
def padding_of(spatial):
    def draw(d):
        number = lambda: -1 if d.wrong(0.03) else d.integer(0, 3)
        pads = [(number(), number()) for _ in range(spatial)]
        pads = pads + pads if d.wrong(0.05) else pads
        x = d.operand(spatial + 2, spatial + 2)
        return (x, pads[0] if len(pads) == 1 else (1,)) if spatial == 1 else (x, tuple(pads), image_format(d))

    return draw


def image_format(d):
    return "channels" if d.wrong(0.05) else d.choice(FORMATS)


def padded_of(spatial):
    def model(x, pads, data_format="channels_last"):
        pads = [pads] if spatial == 1 else list(pads)
        require(x.ndim == spatial + 2 and data_format in FORMATS)
        require(len(pads) == spatial and all(len(pair) == 2 for pair in pads))
        none = [(0, 0)]
        return np.pad(x, none + pads + none if data_format == "channels_last" else none * 2 + pads)

    return model


def resizing_of(spatial):
    def draw(d):
        factors = [d.choice((0, -1)) if d.wrong(0.06) else d.integer(1, 3) for _ in range(spatial)]
        x = d.operand(spatial + 2, spatial + 2)
        how = [d.choice(("nearest", "bilinear") if d.chance(0.95) else ("cubic",))] if spatial == 2 else []
        return (x, *factors, image_format(d), *how)

    return draw


def resized_of(spatial):
    def model(x, *arguments):
        factors, data_format = arguments[:spatial], arguments[spatial]
        require(x.ndim == spatial + 2 and data_format in FORMATS and min(factors) >= 1 and arguments[-1] != "cubic")
        for axis, factor in enumerate(factors, 1 if data_format == "channels_last" else 2):
            x = np.repeat(x, factor, axis=axis)
        return x

    return model


def one(least):
    return lambda d: (d.operand(least),)


ENTRIES = [
    Entry(REDUCTIONS, reduction, reduced),
    Entry(("argmax", "argmin"), index_of_extremum, argmax),
    Entry(("cumsum", "cumprod", "softmax"), along_axis, scanned),
    Entry(("l2_normalize",), several_axes, normalized),
    Entry(("reverse",), several_axes, reversed_along),
    Entry(("reshape",), reshaping, reshaped),
    Entry(("permute_dimensions",), permutation, np.transpose),
    Entry(("transpose",), one(0), np.transpose),
    Entry(("flatten",), one(0), np.ravel),
    Entry(("batch_flatten",), one(1), batch_flattened),
    Entry(("expand_dims",), expansion, np.expand_dims),
    Entry(("squeeze",), squeezing, squeezed),
    Entry(("concatenate",), joining, np.concatenate),
    Entry(("stack",), stacking, np.stack),
    Entry(("slice",), slicing, sliced),
    Entry(("getitem",), subscripts, taken),
    Entry(("repeat_elements",), repeating, repeated_elements),
    Entry(("repeat",), lambda d: (d.operand(2, 2), Size(d.integer(-1, 4))), repeated),
    Entry(("tile",), tiling, tiled),
    Entry(("temporal_padding",), padding_of(1), padded_of(1)),
    Entry(("spatial_2d_padding",), padding_of(2), padded_of(2)),
    Entry(("spatial_3d_padding",), padding_of(3), padded_of(3)),
    Entry(("resize_images",), resizing_of(2), resized_of(2)),
    Entry(("resize_volumes",), resizing_of(3), resized_of(3)),
]
