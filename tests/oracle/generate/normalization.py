"""Batch normalization: with given statistics, and with those of the batch."""

import numpy as np
import tensorflow as tf

from generate.oracle import array, case, real

AFFINE = [(True, True), (True, False), (False, True), (False, False)]


def vector(n, present, dtype):
    return real(n, dtype=dtype, low=0.5) if present else None


def plain_formula(K, x, mean, var, beta, gamma, axis=-1, epsilon=1e-3):
    """TensorFlow's own formula, without the fused kernel that Keras calls, which accepts only float32."""
    return tf.nn.batch_normalization(x, mean, var, beta, gamma, epsilon)


for dtype in ("float32", "float64"):
    for beta, gamma in AFFINE:
        for shape in ((5, 3), (2, 4, 3), (2, 3, 3, 2)):
            n = shape[-1]
            case("batch_normalization", [real(*shape, dtype=dtype), real(n, dtype=dtype), real(n, dtype=dtype, low=0.2),
                                         vector(n, beta, dtype), vector(n, gamma, dtype)],
                 call=plain_formula if len(shape) == 4 else None)
    for epsilon in (1e-5, 0.1):
        case("batch_normalization", [real(4, 3, dtype=dtype), real(3, dtype=dtype), real(3, dtype=dtype, low=0.2),
                                     real(3, dtype=dtype), real(3, dtype=dtype)], epsilon=epsilon)


def along(x, mean, var, beta, gamma, axis, epsilon=1e-3):
    """In NumPy, because TensorFlow ignores `axis` where its fused kernel does not apply."""
    shape = [1] * x.ndim
    shape[axis] = -1
    wide = [None if v is None else v.astype("float64").reshape(shape) for v in (mean, var, beta, gamma)]
    y = (x.astype("float64") - wide[0]) / np.sqrt(wide[1] + epsilon)
    y = y * (1 if wide[3] is None else wide[3]) + (0 if wide[2] is None else wide[2])
    return y.astype(x.dtype)


for dtype in ("float32", "float64"):
    for shape, axis in (((4, 3), 1), ((2, 3, 4), 1), ((2, 3, 4), -2), ((2, 3, 2, 4), 1), ((2, 3, 2, 4), -1)):
        n = shape[axis]
        case("batch_normalization", [real(*shape, dtype=dtype), real(n, dtype=dtype), real(n, dtype=dtype, low=0.2),
                                     real(n, dtype=dtype), real(n, dtype=dtype)], label="axis", oracle=along, axis=axis)
    case("batch_normalization", [real(2, 3, 4, dtype=dtype), real(1, 3, 1, dtype=dtype),
                                 real(1, 3, 1, dtype=dtype, low=0.2), real(1, 3, 1, dtype=dtype), real(1, 3, 1, dtype=dtype)],
         label="broadcast", axis=1)
case("batch_normalization", [real(0, 3), real(3), real(3, low=0.2), real(3), real(3)], label="empty")


def statistics(x, gamma, beta, reduction_axes, epsilon=1e-3):
    """In NumPy, because TensorFlow's fused kernel returns the unbiased variance; the documented one is the batch's own."""
    axes = tuple(reduction_axes)
    wide = x.astype("float64")
    mean, var = wide.mean(axes), wide.var(axes)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    y = (wide - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + epsilon)
    y = y * (1 if gamma is None else gamma.reshape(shape)) + (0 if beta is None else beta.reshape(shape))
    return [y.astype(x.dtype), mean.astype(x.dtype), var.astype(x.dtype)]


for dtype in ("float32", "float64"):
    for gamma, beta in AFFINE:
        for shape, axes in (((6, 3), [0]), ((2, 4, 3), [0, 1]), ((2, 3, 3, 2), [0, 1, 2])):
            fused = len(shape) == 4
            case("normalize_batch_in_training",
                 [real(*shape, dtype=dtype), vector(shape[-1], gamma, dtype), vector(shape[-1], beta, dtype)],
                 oracle=statistics if fused else None, reduction_axes=axes)
    for shape, axes in (((3, 4, 2), [0, 2]), ((2, 3, 2, 2), [0, 2, 3])):
        n = shape[1]
        case("normalize_batch_in_training", [real(*shape, dtype=dtype), real(n, dtype=dtype), real(n, dtype=dtype)],
             label="inner", oracle=statistics if len(shape) == 4 else None, reduction_axes=axes)
    case("normalize_batch_in_training", [real(5, 2, dtype=dtype), real(2, dtype=dtype), real(2, dtype=dtype)],
         label="epsilon", reduction_axes=[0], epsilon=0.5)
case("normalize_batch_in_training", [array(np.ones((4, 2))), array([2.0, 3.0]), array([0.5, -0.5])], label="constant",
     reduction_axes=[0])
case("normalize_batch_in_training", [real(1, 3), real(3), real(3)], label="one_row", reduction_axes=[0])
