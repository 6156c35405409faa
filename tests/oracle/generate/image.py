"""Convolution, pooling and biases of images."""

import tensorflow as tf

from generate.oracle import case, real

FLOATS = ("float32", "float64")
LAST, FIRST = "channels_last", "channels_first"


def image(n, h, w, c, data_format, dtype):
    return real(n, h, w, c, dtype=dtype) if data_format == LAST else real(n, c, h, w, dtype=dtype)


CONVOLUTIONS = [
    # height, width, channels, kernel, filters, options
    (5, 5, 2, (3, 3), 3, {}),
    (5, 5, 2, (3, 3), 3, dict(padding="same")),
    (6, 5, 1, (2, 2), 2, dict(padding="same")),
    (6, 7, 2, (3, 2), 2, dict(strides=(2, 2))),
    (6, 7, 2, (3, 2), 2, dict(strides=(2, 2), padding="same")),
    (7, 6, 2, (4, 4), 1, dict(strides=(2, 3), padding="same")),
    (7, 7, 1, (3, 3), 2, dict(dilation_rate=(2, 2))),
    (7, 7, 2, (3, 3), 2, dict(dilation_rate=(2, 2), padding="same")),
    (7, 8, 1, (2, 3), 2, dict(dilation_rate=(3, 1), padding="same")),
    (4, 4, 3, (1, 1), 4, {}),
    (4, 4, 3, (1, 1), 4, dict(strides=(2, 2))),
    (3, 3, 1, (3, 3), 1, {}),
    (3, 9, 2, (1, 5), 2, dict(padding="same")),
]
for h, w, c, kernel, filters, options in CONVOLUTIONS:
    for data_format in (LAST, FIRST):
        for dtype in FLOATS:
            case("conv2d", [image(2, h, w, c, data_format, dtype), real(*kernel, c, filters, dtype=dtype)],
                 open_batch=[0], data_format=data_format, **options)
case("conv2d", [real(0, 4, 4, 2), real(3, 3, 2, 2)], label="empty", open_batch=[0])
case("conv2d", [real(1, 4, 4, 2), real(3, 3, 2, 2)], label="defaults", open_batch=[0])


def transposed(K, x, kernel, output_shape, data_format=LAST, strides=(1, 1), padding="valid", dilation_rate=(1, 1)):
    """The gradient of conv2d as a function, by the documentation, also with dilation, which TensorFlow rejects."""
    if tuple(dilation_rate) == (1, 1):
        return K.conv2d_transpose(x, kernel, tuple(output_shape), strides, padding, data_format)
    big = tf.zeros(output_shape, x.dtype)
    y = K.conv2d(big, kernel, strides, padding, data_format, dilation_rate)
    return tf.gradients(y, big, grad_ys=x)[0]


TRANSPOSED = [
    # input height, width; output height, width; channels, kernel, filters, options
    (3, 3, 5, 5, 2, (3, 3), 3, {}),
    (4, 4, 4, 4, 2, (3, 3), 2, dict(padding="same")),
    (3, 4, 6, 8, 2, (3, 3), 2, dict(strides=(2, 2), padding="same")),
    (3, 4, 5, 7, 1, (2, 2), 2, dict(strides=(2, 2), padding="same")),
    (2, 3, 6, 8, 2, (3, 3), 1, dict(strides=(2, 3), output_hint=True)),
    (2, 2, 5, 5, 2, (3, 3), 2, dict(strides=(2, 2))),
    (2, 2, 6, 6, 2, (3, 3), 2, dict(strides=(2, 2))),
    (3, 3, 7, 7, 1, (3, 3), 2, dict(dilation_rate=(2, 2))),
    (5, 5, 5, 5, 2, (3, 3), 2, dict(dilation_rate=(2, 2), padding="same")),
]
for h, w, out_h, out_w, c, kernel, filters, options in TRANSPOSED:
    options = dict(options)
    if options.pop("output_hint", False):
        out_h, out_w = (h - 1) * 2 + kernel[0], (w - 1) * 3 + kernel[1]
    for data_format in (LAST, FIRST):
        shape = (2, out_h, out_w, filters) if data_format == LAST else (2, filters, out_h, out_w)
        for dtype in FLOATS:
            case("conv2d_transpose", [image(2, h, w, c, data_format, dtype), real(*kernel, filters, c, dtype=dtype)],
                 call=transposed, open_batch=[0], output_shape=shape, data_format=data_format, **options)

POOLS = [
    # height, width, pool, options
    (4, 4, (2, 2), dict(strides=(2, 2))),
    (5, 5, (2, 2), dict(strides=(2, 2))),
    (5, 5, (2, 2), dict(strides=(2, 2), padding="same")),
    (5, 6, (3, 3), dict(padding="same")),
    (5, 6, (3, 2), {}),
    (6, 5, (2, 3), dict(strides=(1, 2), padding="same")),
    (3, 3, (3, 3), {}),
    (4, 4, (1, 1), dict(strides=(2, 2))),
    (5, 5, (4, 4), dict(strides=(3, 3), padding="same")),
]
for h, w, pool, options in POOLS:
    for data_format in (LAST, FIRST):
        for mode in ("max", "avg"):
            for dtype in FLOATS:
                case("pool2d", [image(2, h, w, 2, data_format, dtype)], pool_size=pool, data_format=data_format,
                     pool_mode=mode, **options)
case("pool2d", [real(0, 4, 4, 2)], label="empty", pool_size=(2, 2))

for dtype in FLOATS:
    for shape in ((2, 3), (2, 4, 3), (2, 3, 4, 2), (1, 2, 3, 2, 2)):
        case("bias_add", [real(*shape, dtype=dtype), real(shape[-1], dtype=dtype)])
        if len(shape) > 2:
            case("bias_add", [real(*shape, dtype=dtype), real(shape[1], dtype=dtype)], data_format=FIRST)
            case("bias_add", [real(*shape, dtype=dtype), real(*shape[1:], dtype=dtype)], label="places", open_batch=[0],
                 data_format=LAST)
case("bias_add", [real(0, 3), real(3)], label="empty")
