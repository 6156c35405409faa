"""Functions of several operands: broadcasting, products, losses; and tensors made from numbers."""

import math

import numpy as np

from calls import Operand, Size
from check import Later, RefusedIfKnown
from entry import Entry, no_axis_of_scalar, require

OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "power", "lt", "le", "gt", "ge")
FUNCTIONS = ("maximum", "minimum", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal", "pow")
ELEMENTWISE = ("square", "abs", "sqrt", "exp", "log", "round", "sign", "sin", "cos", "relu", "elu", "softplus", "softsign",
               "sigmoid", "hard_sigmoid", "tanh", "identity", "zeros_like", "ones_like", "stop_gradient")  # fmt: skip


# ---- element by element ----
def pair(d):
    x = d.sizes(d.integer(0, 6))
    y = d.damaged(d.broadcasting(x), 0.45)
    operands = [Operand(d.broadcasting(x) if d.chance(0.3) else x), Operand(y)]
    d.random.shuffle(operands)
    return tuple(operands)


def clipping(d):
    x = d.sizes(d.integer(0, 6))
    bounds = [0.5 if d.chance(0.3) else Operand(d.damaged(d.broadcasting(x), 0.2)) for _ in range(2)]
    return (Operand(d.broadcasting(x) if d.chance(0.3) else x), *bounds)


def choosing(d):
    shape = d.sizes(d.integer(1, 5))
    condition = tuple(1 if d.chance(0.3) else n for n in shape[: d.integer(0, len(shape))])
    sides = [Operand(d.damaged(shape, 0.1)), Operand(d.damaged(shape, 0.1))]
    return Operand(d.damaged(condition, 0.1) if condition else condition), *sides


def chosen(condition, x, alt):
    # Keras 2's rule: the condition has the first axes of x. A scalar takes one side; the other side's shape does not matter.
    if condition.ndim == 0 and x.shape != alt.shape and x.ndim == alt.ndim:
        raise RefusedIfKnown(x.shape)
    require(x.shape == alt.shape and condition.ndim <= x.ndim)
    return np.broadcast_to(condition.reshape(condition.shape + (1,) * (x.ndim - condition.ndim)), x.shape)


def dropping(d):
    x = d.operand()
    noise = [d.choice([1, n]) for n in x.shape]
    return x, 0.5, None if d.chance(0.1) else d.damaged(noise, 0.3)


def dropped(x, level, noise_shape):
    return x if noise_shape is None else np.broadcast_to(np.zeros(noise_shape, bool), x.shape)


def biased(d):
    x = d.operand(1, 5)
    ndim = len(x.shape)
    data_format = "channels" if d.wrong(0.05) else d.choice(("channels_last", "channels_first"))
    channel = 1 if data_format == "channels_first" and ndim > 2 else ndim - 1
    shape = (x.shape[channel],) if ndim else ()
    if d.chance(0.5):
        shape = tuple(n for axis, n in enumerate(x.shape) if axis not in (0, channel)) + shape
    return x, Operand(d.damaged(shape, 0.2)), data_format


def bias_added(x, bias, data_format):
    # The documented rule: a vector of the channels, or a value for each position and channel.
    require(data_format in ("channels_last", "channels_first") and x.ndim >= 1)
    first = data_format == "channels_first" and x.ndim > 2
    channels, space = (x.shape[1], x.shape[2:]) if first else (x.shape[-1], x.shape[1:-1])
    require(bias.shape == (channels,) or (x.ndim > 2 and bias.shape == space + (channels,)))
    return x


def normalizing(d):
    x = d.operand(1, 5)
    ndim = len(x.shape)
    axis = d.axis(ndim, 0.12)
    statistics = []
    for _ in range(4):
        vector = (x.shape[axis],) if -ndim <= axis < ndim else (2,)
        shape = vector if d.chance(0.6) else tuple(1 if d.chance(0.5) else n for n in x.shape)
        statistics.append(Operand(d.damaged(shape, 0.08)))
    return (x, *statistics, axis)


def batch_normalized(x, mean, var, beta, gamma, axis):
    # The documented rule: vectors lie along the axis, other shapes broadcast.
    no_axis_of_scalar(x, axis)
    along = [1] * x.ndim
    along[axis] = -1
    statistics = [v.reshape(along) if v.ndim == 1 else v for v in (mean, var, beta, gamma)]
    return np.broadcast_shapes(x.shape, *(v.shape for v in statistics))


def normalizing_a_batch(d):
    x = d.operand(1, 5)
    axes = d.axes(len(x.shape)) if d.chance(0.9) else []
    axes = [axes] if isinstance(axes, int) else axes
    kept = [n for axis, n in enumerate(x.shape) if axis not in (axes or []) and axis - len(x.shape) not in (axes or [])]
    weights = [Operand(d.damaged(kept, 0.08)) if d.chance(0.8) else None for _ in range(2)]
    return (x, *weights, axes)


def normalized_batch(x, gamma, beta, reduction_axes):
    # Keras 2's rule: scale and offset have the elements of x's remaining axes, or broadcast with x.
    require(reduction_axes, "no axes")
    mean = np.sum(x, axis=tuple(reduction_axes), keepdims=True)
    shapes = [v.shape if v.ndim >= x.ndim else np.reshape(v, mean.shape).shape for v in (gamma, beta) if v is not None]
    return [np.broadcast_shapes(x.shape, *shapes)] + 2 * [np.sum(x, axis=tuple(reduction_axes))]


# ---- products ----
def dotting(d):
    sparse = d.chance(0.2)
    x, y = list(d.sizes(2 if sparse else d.rank(1, 4))), list(d.sizes(d.integer(0, 2) if sparse else d.rank(1, 4)))
    if x and y and not d.wrong(0.2):
        y[-2 if len(y) > 1 else 0] = x[-1]
    return Operand(x, sparse=sparse), Operand(y)


def dotted(x, y):
    require(x.ndim > 0 and y.ndim > 0)  # the documented rule; NumPy multiplies by scalars
    return np.dot(x, y)


def batch_dotting(d):
    x, y = list(d.sizes(d.rank(2, 5))), list(d.sizes(d.rank(2, 5)))
    axes = None if d.chance(0.3) else (d.axis(len(x), 0.08), d.axis(len(y), 0.08))
    if x and y:
        if not d.wrong(0.1):
            y[0] = x[0]
        a, b = axes or (-1, -2 if len(y) > 2 else -1)
        if not d.wrong(0.15) and -len(x) <= a < len(x) and -len(y) <= b < len(y):
            y[b] = x[a]
    if axes and axes[0] == axes[1] and d.chance(0.5):
        axes = axes[0]
    return Operand(x), Operand(y), axes


def batch_dotted(x, y, axes):
    # Keras's rule, sample by sample; without axes the last of x and the last but one of y.
    require(x.ndim >= 2 and y.ndim >= 2 and x.shape[0] == y.shape[0])
    a, b = (-1, -1 if y.ndim == 2 else -2) if axes is None else (axes, axes) if isinstance(axes, int) else axes
    a, b = np.core.numeric.normalize_axis_index(a, x.ndim), np.core.numeric.normalize_axis_index(b, y.ndim)
    require(a > 0 and b > 0)
    sample = np.tensordot(np.zeros(x.shape[1:]), np.zeros(y.shape[1:]), axes=(a - 1, b - 1))
    return x.shape[:1] + (sample.shape or (1,))


def multiplying(d):
    leading = d.sizes(d.integer(0, 3))
    m, k, n = d.sizes(3)
    x, y = d.broadcasting(leading) + (m, k), leading + (k, n)
    x, y = x[-1:] if d.chance(0.1) else x, y[-2:-1] if d.chance(0.1) else y
    if d.chance(0.5) and len(x) > 1 and len(y) > 1:
        x, y = y[:-2] + x[-2:], x[:-2] + y[-2:]
    return Operand(d.damaged(x, 0.15)), Operand(d.damaged(y, 0.15))


def gathering(d):
    indices = d.operand(0, 3)
    return d.operand(1, 4), Operand(indices.shape, "int32")


def gathered(reference, indices):
    require(reference.ndim > 0)
    if len(reference) == 0 and indices.size > 0:
        raise Later("an index is no row")
    return np.take(reference, indices, axis=0)


# ---- losses ----
def classifying(d):
    x = d.operand(1, 5)
    return Operand(d.damaged(x.shape, 0.25)), x, d.chance(0.5), d.axis(len(x.shape), 0.12)


def crossentropy(target, output, from_logits, axis):
    no_axis_of_scalar(output, axis)
    np.sum(output, axis=axis)
    from_end = axis if axis < 0 else axis - output.ndim
    return np.sum(target * output, axis=from_end)


def numbering(d):
    x = d.operand(1, 5)
    axis = d.axis(len(x.shape), 0.12)
    shape = list(x.shape)
    if -len(shape) <= axis < len(shape):
        if d.chance(0.3):
            shape[axis] = 1
        else:
            del shape[axis]
    return Operand(d.damaged(shape, 0.25), "int32"), x, d.chance(0.5), axis


def sparse_crossentropy(target, output, from_logits, axis):
    no_axis_of_scalar(output, axis)
    sums = np.sum(output, axis=axis)
    require(target.shape in (sums.shape, np.sum(output, axis=axis, keepdims=True).shape))
    if sums.size > 0 and output.shape[axis] == 0:
        raise Later("a target is no class")
    return sums


def ranking(d):
    x = d.operand(2, 2)
    return x, Operand(d.damaged(x.shape[:1], 0.2), "int32"), d.integer(1, 3)


def among_largest(predictions, targets, k):
    require(predictions.ndim == 2 and targets.shape == predictions.shape[:1])
    return targets


# ---- from numbers ----
def encoding(d):
    indices = d.operand(0, 5)
    return Operand(indices.shape, "int32"), Size(d.choice((0, 1, 2, 5, -1, -3)))


def encoded(indices, n):
    require(n >= 0)
    return np.stack([np.equal(indices, i) for i in range(n)], axis=-1) if n else np.zeros(indices.shape + (0,))


def counting(d):
    fractions = d.chance(0.3)
    number = lambda: d.integer(-12, 12) / 4 if fractions else Size(d.integer(-9, 9))
    step = (0.0 if fractions else 0) if d.wrong(0.25) else number()
    return number(), None if d.chance(0.2) else number(), step


def counted(start, stop, step):
    start, stop = (0, start) if stop is None else (start, stop)
    require(step != 0)
    return np.arange(start, stop, step)


def shaping(d):
    sizes = list(d.sizes(d.integer(0, 5)))
    if sizes and d.wrong(0.3):
        sizes[d.integer(0, len(sizes) - 1)] = d.choice((-1, -2, -7))
    return (d.numbers(sizes),)


def random_shaping(d):
    if d.chance(0.5):
        return shaping(d)
    sizes = d.sizes(d.integer(0, 5))
    return d.numbers(sizes), Operand(d.damaged(d.broadcasting(sizes), 0.3))


def random_numbers(shape, mean=0.0):
    return np.broadcast_to(mean, shape)


def filling(d):
    shape = d.sizes(d.integer(0, 4))
    value = np.zeros(shape if d.chance(0.5) else ()).tolist()
    return value, "float32", d.damaged(shape, 0.4)


def filled(value, dtype, shape):
    # The documented rule: one value fills the shape.
    return np.full(shape, np.ravel(value)[0]) if np.size(value) == 1 else np.reshape(value, shape)


def diagonal(d):
    number = lambda: -2 if d.wrong(0.25) else d.integer(0, 6)
    return (number() if d.chance(0.5) else (number(), number()),)


ENTRIES = [
    Entry(OPERATORS + FUNCTIONS, pair, lambda x, y: np.broadcast_shapes(x.shape, y.shape)),
    Entry(("binary_crossentropy",), pair, lambda x, y: np.broadcast_shapes(x.shape, y.shape)),
    Entry(ELEMENTWISE, lambda d: (d.operand(),), lambda x: x),
    Entry(("clip",), clipping, lambda x, low, high: np.broadcast_shapes(x.shape, np.shape(low), np.shape(high))),
    Entry(("switch",), choosing, chosen),
    Entry(("dropout",), dropping, dropped),
    Entry(("bias_add",), biased, bias_added),
    Entry(("batch_normalization",), normalizing, batch_normalized),
    Entry(("normalize_batch_in_training",), normalizing_a_batch, normalized_batch),
    Entry(("dot",), dotting, dotted),
    Entry(("batch_dot",), batch_dotting, batch_dotted),
    Entry(("matmul",), multiplying, np.matmul),
    Entry(("gather",), gathering, gathered),
    Entry(("categorical_crossentropy",), classifying, crossentropy),
    Entry(("sparse_categorical_crossentropy",), numbering, sparse_crossentropy),
    Entry(("in_top_k",), ranking, among_largest),
    Entry(("one_hot",), encoding, encoded),
    Entry(("arange",), counting, counted),
    Entry(("zeros", "ones"), shaping, np.zeros),
    Entry(("random_uniform", "random_normal", "truncated_normal", "random_binomial"), random_shaping, random_numbers),
    Entry(("constant",), filling, filled),
    Entry(("eye",), diagonal, lambda size: np.eye(*size) if isinstance(size, tuple) else np.eye(size)),
]
