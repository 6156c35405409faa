"""Convolutions and pooling. The model puts windows on a line, one after the other, and counts them."""

import numpy as np

from calls import Operand, Size
from check import RefusedIfKnown
from entry import Entry, require

FORMATS = ("channels_last", "channels_first")


# ---- the model ----
def positions(size, window, stride, dilation, padding):
    """The number of positions of a window on a line of `size` elements. A line that is more than one stride shorter than the window
    is rejected, as in TensorFlow; a line that is shorter by at most a stride has none."""
    last = (window - 1) * dilation  # the window's last element
    if padding == "same":
        return sum(1 for element in range(size) if element % stride == 0)  # a window for each stride-th element
    if padding == "causal":
        return len([start for start in range(0, size, stride) if start + last < last + size])  # `last` zeros before
    count = 0
    while count * stride + last < size:
        count += 1
    require(count > 0 or last < size + stride, f"a window of {last + 1} on {size} elements")
    return count


def options(spatial, *values):
    """Each value as `spatial` numbers, all at least 1; a single number stands for all."""
    values = [[value] * spatial if isinstance(value, int) else list(value) for value in values]
    require(all(len(value) == spatial and min(value) >= 1 for value in values))
    return values


def parts(x, spatial, data_format):
    """Rows, space and channels of an image."""
    require(x.ndim == spatial + 2 and data_format in FORMATS)
    rows, *others = x.shape
    return (rows, others[:-1], others[-1]) if data_format == FORMATS[0] else (rows, others[1:], others[0])


def image(rows, space, channels, data_format):
    return (rows, *space, channels) if data_format == FORMATS[0] else (rows, channels, *space)


def slid(x, spatial, window, strides, dilation, padding, data_format, channels):
    """The shape of the result of windows over x."""
    rows, space, _ = parts(x, spatial, data_format)
    strides, dilation, window = options(spatial, strides, dilation, window)
    require(padding in ("valid", "same") or (padding == "causal" and spatial == 1))
    counts = [positions(*numbers, padding) for numbers in zip(space, window, strides, dilation)]
    result = image(rows, counts, channels, data_format)
    if padding == "valid" and 0 in counts:
        raise RefusedIfKnown(result)
    return result


def convolved(spatial):
    def model(x, kernel, strides, padding, data_format, dilation):
        require(kernel.ndim == spatial + 2)
        *window, channels, filters = kernel.shape
        require(parts(x, spatial, data_format)[2] == channels)
        return slid(x, spatial, window, strides, dilation, padding, data_format, filters)

    return model


def depthwise(spatial):
    def model(x, kernel, strides, padding, data_format, dilation):
        require(kernel.ndim == spatial + 2 and padding != "causal")
        *window, channels, multiplier = kernel.shape
        require(parts(x, spatial, data_format)[2] == channels)
        return slid(x, spatial, window, strides, dilation, padding, data_format, channels * multiplier)

    return model


def separable(spatial):
    def model(x, kernel, pointwise, strides, padding, data_format, dilation):
        require(kernel.ndim == pointwise.ndim == spatial + 2)
        require(pointwise.shape[:-1] == (1,) * spatial + (kernel.shape[-2] * kernel.shape[-1],))
        try:
            mixed = depthwise(spatial)(x, kernel, strides, padding, data_format, dilation)
        except RefusedIfKnown as empty:
            raise RefusedIfKnown(with_channels(empty.shape, pointwise.shape[-1], data_format)) from empty
        return with_channels(mixed, pointwise.shape[-1], data_format)

    return model


def with_channels(shape, channels, data_format):
    return shape[:-1] + (channels,) if data_format == FORMATS[0] else (shape[0], channels) + shape[2:]


def transposed(spatial):
    def model(x, kernel, output_shape, strides, padding, data_format, dilation=1):
        rows, space, channels = parts(x, spatial, data_format)
        require(kernel.ndim == spatial + 2 and len(output_shape) == spatial + 2 and padding in ("valid", "same"))
        strides, dilation, window = options(spatial, strides, dilation, kernel.shape[:spatial])
        require(kernel.shape[-1] == channels)
        given = output_shape[1:-1] if data_format == FORMATS[0] else output_shape[2:]
        whole = []
        for n, size, k, stride, rate in zip(space, given, window, strides, dilation):
            # Keras's rule for a size that is not given: a stride per window, and the part of a window beyond its stride
            beyond = max((k - 1) * rate + 1 - stride, 0) if padding == "valid" else 0
            whole.append(n * stride + beyond if size is None else size)
            require(whole[-1] >= 0 and positions(whole[-1], k, stride, rate, padding) == n)
        result = image(rows, whole, kernel.shape[-2], data_format)
        require(all(n is None or n == m for n, m in zip(output_shape, result)))
        return result

    return model


def local(spatial):
    def model(x, kernel, window, strides, *rest):
        rows, space, channels = parts(x, spatial, rest[-1])
        strides, window = options(spatial, strides, window)
        require(kernel.ndim == 3)
        places = rest[0] if spatial == 2 else kernel.shape[:1]
        require(len(places) == spatial and min(places) >= 0)
        require(kernel.shape[:2] == (int(np.prod(places)), int(np.prod(window)) * channels))
        for size, count, k, stride in zip(space, places, window, strides):
            require(all(place * stride + k <= size for place in range(count)), "a window reaches outside")
        return image(rows, places, kernel.shape[2], rest[-1])

    return model


def pooled(spatial):
    def model(x, window, strides, padding, data_format, mode):
        require(padding != "causal" and mode in ("max", "avg"))
        channels = parts(x, spatial, data_format)[2]
        return slid(x, spatial, window, strides, 1, padding, data_format, channels)

    return model


# ---- drawing ----
class Windows:
    """The numbers of a convolution. One convolution in four has a fault."""

    def __init__(self, d, spatial):
        self.d, self.spatial = d, spatial
        self.fault = d.choice(("stride", "dilation", "padding", "format", "rank", "channels", "window", "count"))
        self.fault = self.fault if d.wrong(0.25) else None
        self.rows, self.channels, self.filters = d.choice((0, 1, 2, 3)), d.choice((0, 1, 2, 3)), d.choice((0, 1, 2, 4))
        self.space = [d.choice((0, 1, 2, 3, 4, 5, 6, 7, 9)) for _ in range(spatial)]
        self.window = [0 if self.fault == "window" else d.choice((1, 1, 2, 3, 4)) for _ in range(spatial)]
        self.strides = self.numbers("stride")
        self.dilation = self.numbers("dilation")
        self.padding = "full" if self.fault == "padding" else d.choice(("valid", "same", "causal")[: 3 if spatial == 1 else 2])
        self.format = "channels" if self.fault == "format" else d.choice(FORMATS)

    def numbers(self, name):
        """One for each axis, or one for all."""
        numbers = [self.d.choice((1, 1, 2, 3)) for _ in range(self.spatial)]
        if self.fault == name:
            numbers[-1] = self.d.choice((0, -1, -3))
        if self.fault == "count":
            numbers = numbers + [1] if self.spatial > 1 else [1, 2]
        return numbers[-1] if len(numbers) == 1 or (self.fault != "count" and self.d.chance(0.2)) else tuple(numbers)

    def options(self):
        return self.strides, self.padding, self.format, self.dilation

    def image(self, space=None, channels=None):
        shape = image(self.rows, space or self.space, self.channels if channels is None else channels, self.format)
        return Operand(self.d.reranked(shape) if self.fault == "rank" else shape)

    def kernel(self, *channels):
        shape = (*self.window, *channels)
        if self.fault == "channels":
            shape = self.d.damaged(shape, 1) if self.d.chance(0.4) else self.d.changed(shape, [len(shape) - 2])
        return Operand(shape, fixed=True)


def convolution(spatial):
    def draw(d):
        w = Windows(d, spatial)
        return (w.image(), w.kernel(w.channels, w.filters), *w.options())

    return draw


def separation(spatial):
    def draw(d):
        w = Windows(d, spatial)
        multiplier = d.choice((0, 1, 2))
        pointwise = d.damaged((1,) * spatial + (w.channels * multiplier, w.filters), 0.1)
        return (w.image(), w.kernel(w.channels, multiplier), Operand(pointwise, fixed=True), *w.options())

    return draw


def transposition(spatial):
    def draw(d):
        w = Windows(d, spatial)
        strides, dilation = (n if isinstance(n, tuple) else (n,) * spatial for n in (w.strides, w.dilation))
        dilation = dilation if spatial == 2 else (1,) * spatial
        counts = []
        for size, window, stride, rate in zip(w.space, w.window, strides, dilation):
            try:
                counts.append(positions(size, max(window, 1), max(stride, 1), max(rate, 1), w.padding))
            except ValueError:
                counts.append(1)
        wanted = list(image(w.rows, w.space, w.filters, w.format))
        wanted = [n if d.chance(0.75) else None for n in d.damaged(wanted, 0.12)]
        wanted = tuple(n if n is None else Size(n) for n in wanted)
        rest = (w.dilation,) if spatial == 2 else ()
        return (w.image(counts), w.kernel(w.filters, w.channels), wanted, w.strides, w.padding, w.format, *rest)

    return draw


def locality(spatial):
    def draw(d):
        w = Windows(d, spatial)
        strides = w.strides if isinstance(w.strides, tuple) else (w.strides,) * spatial
        window = [max(n, 1) for n in w.window]
        places = []
        for size, k, stride in zip(w.space, window, strides):
            most = len([at for at in range(0, size, max(stride, 1)) if at + k <= size])
            places.append(most if d.chance(0.6) else d.integer(0, most) if d.chance(0.6) else most + 1)
        kernel = d.damaged((int(np.prod(places)), int(np.prod(window)) * w.channels, w.filters), 0.1)
        rest = (tuple(places), w.format) if spatial == 2 else (w.format,)
        return (w.image(), Operand(kernel, fixed=True), tuple(w.window), w.strides, *rest)

    return draw


def pooling(spatial):
    def draw(d):
        w = Windows(d, spatial)
        mode = "sum" if w.fault == "channels" else d.choice(("max", "avg"))
        return w.image(), tuple(w.window), w.strides, w.padding, w.format, mode

    return draw


ENTRIES = [
    Entry(("conv1d",), convolution(1), convolved(1)),
    Entry(("conv2d",), convolution(2), convolved(2)),
    Entry(("conv3d",), convolution(3), convolved(3)),
    Entry(("depthwise_conv2d",), convolution(2), depthwise(2)),
    Entry(("separable_conv1d",), separation(1), separable(1)),
    Entry(("separable_conv2d",), separation(2), separable(2)),
    Entry(("conv2d_transpose",), transposition(2), transposed(2)),
    Entry(("conv3d_transpose",), transposition(3), transposed(3)),
    Entry(("local_conv1d",), locality(1), local(1)),
    Entry(("local_conv2d",), locality(2), local(2)),
    Entry(("pool2d",), pooling(2), pooled(2)),
    Entry(("pool3d",), pooling(3), pooled(3)),
]
