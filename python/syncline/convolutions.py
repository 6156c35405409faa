"""Convolution, pooling and biases.

Images are (samples, space..., channels), or (samples, channels, space...) with data_format 'channels_first'; None means
image_data_format(). Kernels have the same layout with both. padding: 'valid' or 'same', for conv1d also 'causal'.
ValueError for anything else, and for shapes that do not fit.
"""

from __future__ import annotations

from syncline import _core
from syncline.shapes import _format
from syncline.types import Optional, Sequence, Sizes, Tensor, TensorLike


def conv1d(
    x: TensorLike,
    kernel: TensorLike,
    strides: int = 1,
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: int = 1,
) -> Tensor:
    """kernel: (window, channels of x, channels of the result)."""
    return _core.conv1d(x, kernel, strides, padding, _format(data_format), dilation_rate)


def conv2d(
    x: TensorLike,
    kernel: TensorLike,
    strides: Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: Sequence[int] = (1, 1),
) -> Tensor:
    """kernel: (rows, columns, channels of x, channels of the result)."""
    return _core.conv2d(x, kernel, strides, padding, _format(data_format), dilation_rate)


def conv2d_transpose(
    x: TensorLike,
    kernel: TensorLike,
    output_shape: Sizes,
    strides: Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: Sequence[int] = (1, 1),
) -> Tensor:
    """The gradient of conv2d as a function. kernel: (rows, columns, channels of the result, channels of x);
    output_shape: of the result, whose entries may be tensors or None where they follow from x."""
    return _core.conv2d_transpose(x, kernel, output_shape, strides, padding, _format(data_format), dilation_rate)


def conv3d(
    x: TensorLike,
    kernel: TensorLike,
    strides: Sequence[int] = (1, 1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: Sequence[int] = (1, 1, 1),
) -> Tensor:
    """kernel: (depth, rows, columns, channels of x, channels of the result)."""
    return _core.conv3d(x, kernel, strides, padding, _format(data_format), dilation_rate)


def conv3d_transpose(
    x: TensorLike,
    kernel: TensorLike,
    output_shape: Sizes,
    strides: Sequence[int] = (1, 1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
) -> Tensor:
    """The gradient of conv3d as a function; as conv2d_transpose."""
    return _core.conv3d_transpose(x, kernel, output_shape, strides, padding, _format(data_format), (1, 1, 1))


def separable_conv1d(
    x: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    strides: int = 1,
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: int = 1,
) -> Tensor:
    """depthwise_kernel: (window, channels of x, multiplier); pointwise_kernel: (1, channels of x * multiplier,
    channels of the result)."""
    return _core.separable_conv1d(
        x, depthwise_kernel, pointwise_kernel, strides, padding, _format(data_format), dilation_rate
    )


def separable_conv2d(
    x: TensorLike,
    depthwise_kernel: TensorLike,
    pointwise_kernel: TensorLike,
    strides: Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: Sequence[int] = (1, 1),
) -> Tensor:
    """depthwise_kernel: (rows, columns, channels of x, multiplier); pointwise_kernel: (1, 1, channels of x *
    multiplier, channels of the result)."""
    return _core.separable_conv2d(
        x, depthwise_kernel, pointwise_kernel, strides, padding, _format(data_format), dilation_rate
    )


def depthwise_conv2d(
    x: TensorLike,
    depthwise_kernel: TensorLike,
    strides: Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: Sequence[int] = (1, 1),
) -> Tensor:
    """Each channel by itself. depthwise_kernel: (rows, columns, channels of x, multiplier)."""
    return _core.depthwise_conv2d(x, depthwise_kernel, strides, padding, _format(data_format), dilation_rate)


def local_conv1d(
    inputs: TensorLike,
    kernel: TensorLike,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    data_format: Optional[str] = None,
) -> Tensor:
    """A convolution with other weights at each place. kernel: (places, window * channels, channels of the result)."""
    return _core.local_conv1d(inputs, kernel, kernel_size, strides, _format(data_format))


def local_conv2d(
    inputs: TensorLike,
    kernel: TensorLike,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    output_shape: Sizes,
    data_format: Optional[str] = None,
) -> Tensor:
    """The same for images. kernel: (places, features, channels of the result), places row by row; output_shape: (rows,
    columns) of the result."""
    return _core.local_conv2d(inputs, kernel, kernel_size, strides, output_shape, _format(data_format))


def pool2d(
    x: TensorLike,
    pool_size: Sequence[int],
    strides: Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    pool_mode: str = "max",
) -> Tensor:
    """The largest element of each window, or with pool_mode 'avg' the mean of those inside the image."""
    return _core.pool2d(x, pool_size, strides, padding, _format(data_format), pool_mode)


def pool3d(
    x: TensorLike,
    pool_size: Sequence[int],
    strides: Sequence[int] = (1, 1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    pool_mode: str = "max",
) -> Tensor:
    """pool2d for volumes."""
    return _core.pool3d(x, pool_size, strides, padding, _format(data_format), pool_mode)


def bias_add(x: TensorLike, bias: TensorLike, data_format: Optional[str] = None) -> Tensor:
    """x + bias. bias: a vector along the channels, or one value for each place and channel (one axis less than x)."""
    return _core.bias_add(x, bias, _format(data_format))
