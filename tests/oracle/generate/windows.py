"""Convolution and pooling in one and three dimensions; depthwise, separable and local convolution; padding and resizing."""

import numpy as np
import tensorflow as tf

from generate.oracle import array, case, real, whole

FLOATS = ("float32", "float64")
FORMATS = LAST, FIRST = ("channels_last", "channels_first")


def image(batch, space, channels, data_format, dtype):
    shape = (batch, *space, channels) if data_format == LAST else (batch, channels, *space)
    return real(*shape, dtype=dtype)


def dilated(kernel, rates):
    """The kernel with rate - 1 zeros between neighbours along each axis."""
    for axis, rate in enumerate(rates):
        apart = tf.expand_dims(kernel, axis + 1)
        zeros = tf.zeros_like(tf.repeat(apart, rate - 1, axis + 1))
        shape = kernel.shape.as_list()
        shape[axis] *= rate
        wide = tf.reshape(tf.concat([apart, zeros], axis + 1), shape)
        kernel = tf.split(wide, [shape[axis] - (rate - 1), rate - 1], axis)[0]
    return kernel


def conv1d(K, x, kernel, strides=1, padding="valid", data_format=LAST, dilation_rate=1):
    """conv1d by the documentation. TensorFlow rejects strides with dilation, and its causal padding of channels_first pads channels."""
    if padding == "causal" and data_format == FIRST:
        y = conv1d(K, tf.transpose(x, (0, 2, 1)), kernel, strides, padding, LAST, dilation_rate)
        return tf.transpose(y, (0, 2, 1))
    if strides > 1 and dilation_rate > 1:
        return K.conv1d(x, dilated(kernel, [dilation_rate]), strides, padding, data_format)
    return K.conv1d(x, kernel, strides, padding, data_format, dilation_rate)


LINES = [
    # length, channels, kernel, filters, options
    (7, 2, 3, 3, {}),
    (7, 2, 3, 2, dict(padding="same")),
    (8, 1, 4, 2, dict(padding="same")),
    (7, 2, 3, 2, dict(padding="causal")),
    (8, 2, 3, 2, dict(strides=2)),
    (8, 3, 2, 2, dict(strides=3, padding="same")),
    (9, 2, 4, 1, dict(strides=2, padding="same")),
    (9, 2, 3, 2, dict(strides=2, padding="causal")),
    (9, 1, 3, 2, dict(dilation_rate=2)),
    (9, 2, 3, 2, dict(dilation_rate=3, padding="same")),
    (9, 2, 2, 2, dict(dilation_rate=3, padding="causal")),
    (10, 2, 3, 2, dict(strides=2, dilation_rate=2)),
    (10, 2, 2, 2, dict(strides=3, dilation_rate=2, padding="same")),
    (10, 2, 3, 2, dict(strides=2, dilation_rate=3, padding="causal")),
    (3, 2, 3, 2, {}),
    (2, 2, 5, 2, dict(padding="same")),
    (4, 3, 1, 4, {}),
]
for length, channels, size, filters, options in LINES:
    for data_format in FORMATS:
        for dtype in FLOATS:
            case("conv1d", [image(2, (length,), channels, data_format, dtype), real(size, channels, filters, dtype=dtype)],
                 call=conv1d, data_format=data_format, **options)
case("conv1d", [real(0, 5, 2), real(3, 2, 2)], label="empty", oracle=lambda x, kernel: np.zeros((0, 3, 2), "float32"))
case("conv1d", [real(1, 5, 2), real(3, 2, 2)], label="defaults")
case("conv1d", [array([[[1.0], [np.inf], [2.0], [0.0], [np.nan], [1.0]]]), array([[[1.0]], [[2.0]]])], label="special")


def conv3d(K, x, kernel, strides=(1, 1, 1), padding="valid", data_format=LAST, dilation_rate=(1, 1, 1)):
    if max(dilation_rate) > 1:
        return K.conv3d(x, dilated(kernel, dilation_rate), strides, padding, data_format)
    return K.conv3d(x, kernel, strides, padding, data_format)


VOLUMES = [
    # space, channels, kernel, filters, options
    ((3, 4, 3), 1, (2, 2, 2), 2, {}),
    ((3, 3, 4), 2, (3, 2, 3), 1, dict(padding="same")),
    ((4, 3, 4), 1, (2, 3, 2), 2, dict(strides=(2, 1, 2))),
    ((4, 3, 5), 1, (2, 2, 4), 2, dict(strides=(2, 2, 3), padding="same")),
    ((5, 3, 4), 1, (2, 2, 2), 1, dict(dilation_rate=(3, 1, 2))),
    ((4, 4, 3), 1, (3, 2, 2), 2, dict(dilation_rate=(2, 2, 2), padding="same")),
    ((5, 4, 4), 1, (2, 2, 2), 2, dict(strides=(2, 1, 2), dilation_rate=(2, 2, 1), padding="same")),
    ((2, 3, 2), 3, (1, 1, 1), 2, {}),
]
for space, channels, size, filters, options in VOLUMES:
    for data_format in FORMATS:
        for dtype in FLOATS:
            case("conv3d", [image(2, space, channels, data_format, dtype), real(*size, channels, filters, dtype=dtype)],
                 call=conv3d, data_format=data_format, **options)
case("conv3d", [real(0, 2, 2, 2, 1), real(2, 2, 2, 1, 2)], label="empty",
     oracle=lambda x, kernel: np.zeros((0, 1, 1, 1, 2), "float32"))
case("conv3d", [real(1, 3, 3, 3, 1), real(2, 2, 2, 1, 1)], label="defaults")

BACKWARDS = [
    # space, space of the result, channels, kernel, filters, options
    ((2, 2, 3), (3, 3, 4), 2, (2, 2, 2), 1, {}),
    ((2, 3, 2), (2, 3, 2), 1, (2, 3, 2), 2, dict(padding="same")),
    ((2, 2, 1), (4, 3, 2), 1, (2, 2, 2), 2, dict(strides=(2, 1, 2))),
    ((2, 2, 2), (3, 4, 2), 1, (3, 2, 2), 2, dict(strides=(2, 2, 1), padding="same")),
    ((2, 1, 2), (5, 3, 3), 2, (3, 2, 2), 1, dict(strides=(2, 2, 1))),
]
for space, result, channels, size, filters, options in BACKWARDS:
    for data_format in FORMATS:
        shape = (2, *result, filters) if data_format == LAST else (2, filters, *result)
        for dtype in FLOATS:
            case("conv3d_transpose",
                 [image(2, space, channels, data_format, dtype), real(*size, filters, channels, dtype=dtype)],
                 call=lambda K, x, kernel, output_shape, **options: K.conv3d_transpose(x, kernel, tuple(output_shape),
                                                                                      **options),
                 output_shape=shape, data_format=data_format, **options)


def depthwise(K, x, kernel, strides=(1, 1), padding="valid", data_format=LAST, dilation_rate=(1, 1)):
    """One convolution per channel for unequal strides and for strides with dilation, which TensorFlow's function rejects."""
    if len(set(strides)) == 1 and (max(strides) == 1 or max(dilation_rate) == 1):
        return K.depthwise_conv2d(x, kernel, tuple(strides), padding, data_format, tuple(dilation_rate))
    axis = 3 if data_format == LAST else 1
    parts = zip(tf.split(x, x.shape[axis], axis), tf.split(kernel, kernel.shape[2], 2))
    return tf.concat([K.conv2d(channel, dilated(own, dilation_rate), tuple(strides), padding, data_format)
                      for channel, own in parts], axis)


def separable(K, x, depthwise_kernel, pointwise_kernel, strides=(1, 1), padding="valid", data_format=LAST,
              dilation_rate=(1, 1)):
    y = depthwise(K, x, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return K.conv2d(y, pointwise_kernel, data_format=data_format)


CHANNELWISE = [
    # space, channels, kernel, multiplier, options
    ((5, 4), 2, (3, 3), 1, {}),
    ((5, 4), 2, (2, 3), 2, dict(padding="same")),
    ((4, 5), 3, (2, 2), 1, dict(padding="same")),
    ((6, 5), 2, (3, 2), 2, dict(strides=(2, 2))),
    ((6, 5), 1, (3, 3), 3, dict(strides=(2, 2), padding="same")),
    ((6, 5), 2, (2, 3), 1, dict(strides=(1, 2), padding="same")),
    ((6, 6), 2, (2, 3), 1, dict(dilation_rate=(2, 2))),
    ((5, 6), 2, (3, 2), 2, dict(dilation_rate=(2, 2), padding="same")),
    ((7, 6), 2, (2, 2), 1, dict(strides=(2, 2), dilation_rate=(2, 3), padding="same")),
]
for space, channels, size, multiplier, options in CHANNELWISE:
    for data_format in FORMATS:
        for dtype in FLOATS:
            x, own = image(2, space, channels, data_format, dtype), real(*size, channels, multiplier, dtype=dtype)
            case("depthwise_conv2d", [x, own], call=lambda K, x, depthwise_kernel, **o: depthwise(K, x, depthwise_kernel, **o),
                 data_format=data_format, **options)
            case("separable_conv2d", [x, own, real(1, 1, channels * multiplier, 2, dtype=dtype)], call=separable,
                 data_format=data_format, **options)
case("depthwise_conv2d", [real(0, 3, 3, 2), real(2, 2, 2, 2)], label="empty",
     oracle=lambda x, kernel: np.zeros((0, 2, 2, 4), "float32"))
case("separable_conv2d", [real(0, 3, 3, 2), real(2, 2, 2, 1), real(1, 1, 2, 3)], label="empty",
     oracle=lambda x, own, mix: np.zeros((0, 2, 2, 3), "float32"))


def separable_1d(K, x, depthwise_kernel, pointwise_kernel, strides=1, padding="valid", data_format=LAST, dilation_rate=1):
    """On images of one row, because TensorFlow's function passes a format that its operation does not know."""
    row = 1 if data_format == LAST else 2
    y = separable(K, tf.expand_dims(x, row), depthwise_kernel[None], pointwise_kernel[None], (1, strides), padding,
                  data_format, (1, dilation_rate))
    return tf.squeeze(y, row)


for length, channels, size, multiplier, options in [
        (6, 2, 3, 1, {}),
        (6, 2, 2, 2, dict(padding="same")),
        (7, 2, 3, 2, dict(strides=2)),
        (7, 1, 4, 2, dict(strides=2, padding="same")),
        (8, 2, 3, 1, dict(dilation_rate=2)),
        (8, 2, 2, 2, dict(dilation_rate=3, padding="same")),
        (9, 2, 3, 2, dict(strides=2, dilation_rate=2, padding="same")),
]:
    for data_format in FORMATS:
        for dtype in FLOATS:
            case("separable_conv1d",
                 [image(2, (length,), channels, data_format, dtype), real(size, channels, multiplier, dtype=dtype),
                  real(1, channels * multiplier, 3, dtype=dtype)], call=separable_1d, data_format=data_format, **options)

for length, channels, size, stride, filters in [(6, 2, 3, 1, 2), (7, 2, 3, 2, 3), (5, 1, 1, 1, 2), (4, 3, 4, 1, 2),
                                                (8, 2, 2, 3, 1)]:
    for data_format in FORMATS:
        for dtype in FLOATS:
            positions = (length - size) // stride + 1
            case("local_conv1d",
                 [image(2, (length,), channels, data_format, dtype),
                  real(positions, size * channels, filters, dtype=dtype)],
                 open_batch=[0], kernel_size=[size], strides=[stride], data_format=data_format)
case("local_conv1d", [real(1, 5, 2), real(4, 4, 2)], label="defaults", open_batch=[0], kernel_size=[2], strides=[1])
case("local_conv1d", [real(0, 5, 2), real(4, 4, 2)], label="empty", open_batch=[0], kernel_size=[2], strides=[1],
     oracle=lambda inputs, kernel, kernel_size, strides: np.zeros((0, 4, 2), "float32"))

for space, channels, size, strides, positions, filters in [
        ((4, 4), 2, (2, 2), (1, 1), (3, 3), 2),
        ((4, 5), 1, (3, 2), (1, 2), (2, 2), 3),
        ((5, 4), 2, (2, 3), (2, 1), (2, 2), 2),
        ((3, 3), 2, (3, 3), (1, 1), (1, 1), 2),
        ((5, 5), 1, (2, 2), (2, 2), (1, 2), 2),  # fewer positions than would fit
        ((3, 4), 3, (1, 1), (1, 2), (3, 2), 1),
]:
    for data_format in FORMATS:
        for dtype in FLOATS:
            case("local_conv2d",
                 [image(2, space, channels, data_format, dtype),
                  real(positions[0] * positions[1], size[0] * size[1] * channels, filters, dtype=dtype)],
                 open_batch=[0], kernel_size=size, strides=strides, output_shape=positions, data_format=data_format)
case("local_conv2d", [real(0, 3, 3, 1), real(4, 4, 2)], label="empty", open_batch=[0], kernel_size=(2, 2), strides=(1, 1),
     output_shape=(2, 2), oracle=lambda inputs, kernel, **options: np.zeros((0, 2, 2, 2), "float32"))


def pooled(x, pool_size, strides=(1, 1, 1), padding="valid", data_format=LAST, pool_mode="max"):
    """Pooling window by window in NumPy, because TensorFlow pools volumes in float32 only."""
    image = x if data_format == LAST else np.moveaxis(x, 1, -1)
    starts = []
    for size, pool, stride in zip(image.shape[1:4], pool_size, strides):
        positions = -(-size // stride) if padding == "same" else (size - pool) // stride + 1
        zeros = max((positions - 1) * stride + pool - size, 0) if padding == "same" else 0
        starts.append([i * stride - zeros // 2 for i in range(positions)])
    fold = np.max if pool_mode == "max" else np.mean
    y = np.zeros((image.shape[0], *map(len, starts), image.shape[4]), x.dtype)
    for i, top in enumerate(starts[0]):
        for j, left in enumerate(starts[1]):
            for k, front in enumerate(starts[2]):
                corner = zip((top, left, front), pool_size)
                d, h, w = (slice(max(start, 0), start + pool) for start, pool in corner)
                y[:, i, j, k] = fold(image[:, d, h, w], axis=(1, 2, 3))
    return y if data_format == LAST else np.moveaxis(y, -1, 1)


for space, pool, options in [
        ((4, 4, 2), (2, 2, 2), dict(strides=(2, 2, 2))),
        ((3, 4, 3), (2, 3, 2), {}),
        ((3, 3, 4), (2, 2, 2), dict(padding="same")),
        ((5, 3, 4), (3, 2, 2), dict(strides=(2, 1, 3), padding="same")),
        ((3, 5, 2), (1, 4, 2), dict(strides=(2, 3, 1), padding="same")),
        ((3, 2, 4), (1, 1, 1), dict(strides=(2, 1, 3))),
]:
    for data_format in FORMATS:
        for mode in ("max", "avg"):
            for dtype in FLOATS:
                case("pool3d", [image(2, space, 2, data_format, dtype)], oracle=pooled if dtype == "float64" else None,
                     pool_size=pool, data_format=data_format, pool_mode=mode, **options)
case("pool3d", [real(0, 2, 2, 2, 1)], label="empty", oracle=pooled, pool_size=(2, 2, 2))
case("pool3d", [real(1, 3, 2, 2, 1)], label="defaults", pool_size=(2, 2, 2))
case("pool3d", [array(-np.inf * np.ones((1, 2, 2, 2, 1)))], label="below_all", oracle=pooled, pool_size=(2, 2, 2))
case("pool3d", [array([[[[[1.0], [np.nan]]], [[[np.inf], [2.0]]]]])], label="special", oracle=pooled, pool_size=(2, 1, 1))

for padding in (((1, 1), (1, 1), (1, 1)), ((0, 0), (0, 0), (0, 0)), ((2, 0), (1, 0), (0, 3)), ((0, 1), (2, 1), (0, 0))):
    for data_format in FORMATS:
        for dtype in FLOATS:
            case("spatial_3d_padding", [real(2, 2, 1, 2, 2, dtype=dtype)], padding=padding, data_format=data_format)
case("spatial_3d_padding", [real(1, 1, 2, 2, 1)], label="defaults")
case("spatial_3d_padding", [whole(1, 2, 1, 2, 1)], padding=((1, 0), (0, 1), (0, 0)))
case("spatial_3d_padding", [real(0, 1, 2, 2, 1)], label="empty")


def bilinear(K, x, height_factor, width_factor, data_format, interpolation):
    """Keras 2's bilinear interpolation, which aligns the corners. TensorFlow's copy of Keras aligns the centres of pixels."""
    last = x if data_format == LAST else tf.transpose(x, (0, 2, 3, 1))
    height, width = last.shape[1] * height_factor, last.shape[2] * width_factor
    if x.dtype == tf.float32:
        y = tf.raw_ops.ResizeBilinear(images=last, size=(height, width))
    else:  # ResizeBilinear returns float32
        y = tf.einsum("ij,kl,njlc->nikc", weights(last.shape[1], height_factor), weights(last.shape[2], width_factor), last)
    return y if data_format == LAST else tf.transpose(y, (0, 3, 1, 2))


def weights(size, factor):
    """The weights (size * factor, size) of the elements of a line in the elements of the enlarged line."""
    table = np.zeros((size * factor, size))
    for i in range(size * factor):
        table[i, i // factor] += 1 - i % factor / factor
        table[i, min(i // factor + 1, size - 1)] += i % factor / factor
    return table


for factors in ((2, 2), (1, 3), (3, 1), (2, 3), (1, 1), (4, 2)):
    for data_format in FORMATS:
        for dtype in FLOATS:
            x = real(2, 3, 2, 2, dtype=dtype)
            case("resize_images", [x], height_factor=factors[0], width_factor=factors[1], data_format=data_format)
            case("resize_images", [x], call=bilinear, height_factor=factors[0], width_factor=factors[1],
                 data_format=data_format, interpolation="bilinear")
case("resize_images", [whole(1, 2, 3, 1)], height_factor=2, width_factor=2, data_format=LAST)
case("resize_images", [real(0, 2, 3, 1)], label="empty", height_factor=2, width_factor=2, data_format=LAST,
     oracle=lambda x, **factors: np.zeros((0, 4, 6, 1), "float32"))
case("resize_images", [real(0, 2, 3, 1)], label="empty", height_factor=2, width_factor=2, data_format=LAST,
     interpolation="bilinear", oracle=lambda x, **factors: np.zeros((0, 4, 6, 1), "float32"))

for factors in ((2, 2, 2), (1, 2, 3), (3, 1, 1), (1, 1, 1)):
    for data_format in FORMATS:
        for dtype in FLOATS:
            case("resize_volumes", [real(2, 2, 1, 2, 2, dtype=dtype)], depth_factor=factors[0], height_factor=factors[1],
                 width_factor=factors[2], data_format=data_format)
for operand in (whole(1, 2, 1, 2, 1), real(0, 1, 2, 2, 1)):
    case("resize_volumes", [operand], depth_factor=2, height_factor=1, width_factor=2, data_format=LAST)

# Cases of functions of images that generate/image.py does not have.

for strides, rates, padding in (((2, 2), (2, 2), "valid"), ((2, 1), (1, 3), "same"), ((3, 2), (2, 3), "same")):
    for data_format in FORMATS:
        for dtype in FLOATS:
            case("conv2d", [image(2, (7, 8), 2, data_format, dtype), real(3, 2, 2, 2, dtype=dtype)], open_batch=[0],
                 call=lambda K, x, kernel, dilation_rate, strides, **o: K.conv2d(x, dilated(kernel, dilation_rate),
                                                                                 tuple(strides), **o),
                 strides=strides, dilation_rate=rates, padding=padding, data_format=data_format)


def transposed(K, x, kernel, output_shape, strides, padding, data_format, dilation_rate=(1, 1)):
    """output_shape[0] is None: the number of images. TensorFlow ignores strides beside dilation and rejects unequal rates."""
    shape = (x.shape[0], *output_shape[1:])
    return K.conv2d_transpose(x, dilated(kernel, dilation_rate), shape, tuple(strides), padding, data_format)


for space, result, strides, rates, padding in (((3, 3), (9, 7), (2, 2), (2, 1), "valid"),
                                               ((3, 2), (5, 6), (2, 3), (2, 2), "same"),
                                               ((4, 3), (8, 6), (2, 2), (1, 1), "same")):
    for data_format in FORMATS:
        shape = (None, *result, 2) if data_format == LAST else (None, 2, *result)
        for dtype in FLOATS:
            case("conv2d_transpose", [image(2, space, 1, data_format, dtype), real(3, 2, 2, 1, dtype=dtype)],
                 call=transposed, open_batch=[0], output_shape=shape, strides=strides, dilation_rate=rates,
                 padding=padding, data_format=data_format)

for shape in ((2, 4, 3), (2, 3, 4, 2), (1, 2, 3, 2, 2)):
    for dtype in FLOATS:
        case("bias_add", [real(*shape, dtype=dtype), real(*shape[2:], shape[1], dtype=dtype)], label="places",
             open_batch=[0], data_format=FIRST)


def pooled_image(x, pool_size, **options):
    return pooled(x[:, None], (1, *pool_size), **options)[:, 0]


case("pool2d", [array(-np.inf * np.ones((1, 2, 3, 1)))], label="below_all", oracle=pooled_image, pool_size=(2, 2))
case("pool2d", [array([[[[1.0], [np.nan], [np.inf]], [[-np.inf], [0.0], [2.0]]]])], label="special", oracle=pooled_image,
     pool_size=(2, 2))
case("pool2d", [array([[[[1.0], [np.nan], [np.inf]], [[-np.inf], [0.0], [2.0]]]])], label="special", oracle=pooled_image,
     pool_size=(2, 2), pool_mode="avg")
