"""Convolution and biases.

Images are (samples, space..., channels), or (samples, channels, space...) with data_format 'channels_first'; None means
image_data_format(). Kernels have the same layout for both data formats. padding is 'valid' or 'same', for conv1d also
'causal'. Other values, and shapes that do not fit, raise ValueError.
"""

from __future__ import annotations

from syncline import _core
from syncline.functions.images import _format
from syncline.types import Optional, Sequence, Sizes, Tensor, TensorLike


def conv1d(
    x: TensorLike,
    kernel: TensorLike,
    strides: int = 1,
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: int = 1,
) -> Tensor:
    """Convolution along time: for each window of x and each filter, the sum of the window's elements times the kernel's.
    The kernel is not flipped.

    Args:
        x: tensor (samples, time, channels), or (samples, channels, time); floating.
        kernel: tensor (window, channels, filters) of x's dtype; this layout for both data formats.
        strides: int >= 1: the window's step.
        padding: str: 'valid' (windows lie inside x), 'same' (zeros around x) or 'causal' (all zeros before x).
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        dilation_rate: int >= 1: the distance of the kernel's elements in x.
    Returns:
        Tensor (samples, new time, filters), in x's data format and dtype. New sizes: 'valid' (size-reach)//stride+1
        with reach = (window-1)*dilation_rate+1; 'same' and 'causal' size/stride, rounded up.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/dense.cc
    Example:
        >>> K.eval(K.conv1d([[[1.], [2.], [3.]]], [[[1.]], [[10.]]]))
        array([[[21.],
                [32.]]], dtype=float32)
    """
    return _core.conv1d(x, kernel, strides, padding, _format(data_format), dilation_rate)


def conv2d(
    x: TensorLike,
    kernel: TensorLike,
    strides: Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: Sequence[int] = (1, 1),
) -> Tensor:
    """Convolution of images: for each window of x and each filter, the sum of the window's elements times the kernel's.
    The kernel is not flipped.

    Args:
        x: tensor (samples, rows, columns, channels), or (samples, channels, rows, columns); floating.
        kernel: tensor (window rows, window columns, channels, filters) of x's dtype; this layout for both data formats.
        strides: pair of ints >= 1, or one int: the window's steps along rows and columns.
        padding: str: 'valid' (windows lie inside x) or 'same' (zeros around x).
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        dilation_rate: pair of ints >= 1, or one int: the distances of the kernel's elements in x.
    Returns:
        Tensor (samples, new rows, new columns, filters), in x's data format and dtype. New sizes: 'valid'
        (size-reach)//stride+1 with reach = (window-1)*dilation_rate+1; 'same' size/stride, rounded up.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/dense.cc
    Example:
        >>> K.conv2d(K.placeholder((None, 28, 28, 1)), K.ones((3, 3, 1, 8))).shape
        (None, 26, 26, 8)
        >>> K.conv2d(K.placeholder((None, 28, 28, 1)), K.ones((3, 3, 1, 8)), strides=(2, 2), padding='same').shape
        (None, 14, 14, 8)
    """
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
    """The transposed convolution: the gradient of conv2d with respect to its images. It enlarges images.

    Args:
        x: tensor (samples, rows, columns, channels), or (samples, channels, rows, columns); floating.
        kernel: tensor (window rows, window columns, filters, channels) of x's dtype; this layout for both data formats.
        output_shape: tuple of 4 ints, scalar integer tensors or None (size * stride, with 'valid' plus
            max((window - 1) * dilation_rate + 1 - stride, 0)): the result's shape, in data_format's order.
        strides: pair of ints >= 1, or one int: the window's steps along rows and columns.
        padding: str: 'valid' or 'same': the padding of the convolution.
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        dilation_rate: pair of ints >= 1, or one int: the distances of the kernel's elements in x.
    Returns:
        Tensor of the shape output_shape and x's dtype.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/dense.cc
    Example:
        >>> x = K.zeros((2, 5, 5, 3))
        >>> K.conv2d_transpose(x, K.ones((3, 3, 8, 3)), (2, 10, 10, 8), strides=(2, 2), padding='same').shape
        (2, 10, 10, 8)
    """
    return _core.conv2d_transpose(x, kernel, output_shape, strides, padding, _format(data_format), dilation_rate)


def conv3d(
    x: TensorLike,
    kernel: TensorLike,
    strides: Sequence[int] = (1, 1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    dilation_rate: Sequence[int] = (1, 1, 1),
) -> Tensor:
    """conv2d for volumes: the window moves along three axes.

    Args:
        x: tensor (samples, depth, rows, columns, channels), or with the channels second; floating.
        kernel: tensor (window depth, rows, columns, channels, filters) of x's dtype; this layout for both data formats.
        strides: three ints >= 1, or one int: the window's steps along depth, rows and columns.
        padding: str: 'valid' (windows lie inside x) or 'same' (zeros around x).
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        dilation_rate: three ints >= 1, or one int: the distances of the kernel's elements in x.
    Returns:
        Tensor (samples, new depth, new rows, new columns, filters), in x's data format and dtype. New sizes: 'valid'
        (size-reach)//stride+1 with reach = (window-1)*dilation_rate+1; 'same' size/stride, rounded up.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/dense.cc
    """
    return _core.conv3d(x, kernel, strides, padding, _format(data_format), dilation_rate)


def conv3d_transpose(
    x: TensorLike,
    kernel: TensorLike,
    output_shape: Sizes,
    strides: Sequence[int] = (1, 1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
) -> Tensor:
    """The transposed convolution: the gradient of conv3d with respect to its volumes. It enlarges volumes.

    Args:
        x: tensor (samples, depth, rows, columns, channels), or with the channels second; floating.
        kernel: tensor (window depth, rows, columns, filters, channels) of x's dtype; this layout for both data formats.
        output_shape: tuple of 5 ints, scalar integer tensors or None (size * stride, with 'valid' plus
            max(window - stride, 0)): the result's shape, in data_format's order.
        strides: three ints >= 1, or one int: the window's steps along depth, rows and columns.
        padding: str: 'valid' or 'same': the padding of the convolution.
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
    Returns:
        Tensor of the shape output_shape and x's dtype.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/dense.cc
    """
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
    """A depthwise convolution (each channel alone), then a pointwise convolution (window 1) that mixes the channels.

    Args:
        x: tensor (samples, time, channels), or (samples, channels, time); floating.
        depthwise_kernel: tensor (window, channels, multiplier) of x's dtype.
        pointwise_kernel: tensor (1, channels * multiplier, filters) of x's dtype.
        strides: int >= 1: the window's step.
        padding: str: 'valid' (windows lie inside x) or 'same' (zeros around x).
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        dilation_rate: int >= 1: the distance of the kernel's elements in x.
    Returns:
        Tensor (samples, new time, filters), in x's data format and dtype. New sizes: 'valid' (size-reach)//stride+1
        with reach = (window-1)*dilation_rate+1; 'same' size/stride, rounded up.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/separable.cc
    """
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
    """A depthwise convolution (each channel alone), then a pointwise convolution (window 1) that mixes the channels.

    Args:
        x: tensor (samples, rows, columns, channels), or (samples, channels, rows, columns); floating.
        depthwise_kernel: tensor (window rows, window columns, channels, multiplier) of x's dtype.
        pointwise_kernel: tensor (1, 1, channels * multiplier, filters) of x's dtype.
        strides: pair of ints >= 1, or one int: the window's steps along rows and columns.
        padding: str: 'valid' (windows lie inside x) or 'same' (zeros around x).
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        dilation_rate: pair of ints >= 1, or one int: the distances of the kernel's elements in x.
    Returns:
        Tensor (samples, new rows, new columns, filters), in x's data format and dtype. New sizes: 'valid'
        (size-reach)//stride+1 with reach = (window-1)*dilation_rate+1; 'same' size/stride, rounded up.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/separable.cc
    Example:
        >>> K.separable_conv2d(K.zeros((2, 9, 9, 3)), K.ones((3, 3, 3, 2)), K.ones((1, 1, 6, 5))).shape
        (2, 7, 7, 5)
    """
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
    """A convolution of each channel alone: channel c gives the channels from c * multiplier to (c + 1) * multiplier - 1.

    Args:
        x: tensor (samples, rows, columns, channels), or (samples, channels, rows, columns); floating.
        depthwise_kernel: tensor (window rows, window columns, channels, multiplier) of x's dtype.
        strides: pair of ints >= 1, or one int: the window's steps along rows and columns.
        padding: str: 'valid' (windows lie inside x) or 'same' (zeros around x).
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        dilation_rate: pair of ints >= 1, or one int: the distances of the kernel's elements in x.
    Returns:
        Tensor (samples, new rows, new columns, channels * multiplier), in x's data format and dtype. New sizes: 'valid'
        (size-reach)//stride+1 with reach = (window-1)*dilation_rate+1; 'same' size/stride, rounded up.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/separable.cc
    Example:
        >>> K.depthwise_conv2d(K.zeros((2, 9, 9, 3)), K.ones((3, 3, 3, 2))).shape
        (2, 7, 7, 6)
    """
    return _core.depthwise_conv2d(x, depthwise_kernel, strides, padding, _format(data_format), dilation_rate)


def local_conv1d(
    inputs: TensorLike,
    kernel: TensorLike,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    data_format: Optional[str] = None,
) -> Tensor:
    """conv1d with a separate kernel for each place, without padding.

    Args:
        inputs: tensor (samples, time, channels), or (samples, channels, time); floating.
        kernel: tensor (places, window * channels, filters) of inputs' dtype.
        kernel_size: tuple of one int >= 1, or an int: the window's size.
        strides: tuple of one int >= 1, or an int: the window's step.
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
    Returns:
        Tensor (samples, places, filters), in inputs' data format and dtype.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/local.cc
    Example:
        >>> K.local_conv1d(K.zeros((2, 10, 3)), K.ones((8, 9, 4)), (3,), (1,)).shape
        (2, 8, 4)
    """
    return _core.local_conv1d(inputs, kernel, kernel_size, strides, _format(data_format))


def local_conv2d(
    inputs: TensorLike,
    kernel: TensorLike,
    kernel_size: Sequence[int],
    strides: Sequence[int],
    output_shape: Sizes,
    data_format: Optional[str] = None,
) -> Tensor:
    """conv2d with a separate kernel for each place, without padding.

    Args:
        inputs: tensor (samples, rows, columns, channels), or (samples, channels, rows, columns); floating.
        kernel: tensor (places, window elements * channels, filters) of inputs' dtype: places in row-major order, a
            window's elements in the order of data_format.
        kernel_size: pair of ints >= 1, or one int: the rows and columns of the window.
        strides: pair of ints >= 1, or one int: the window's steps along rows and columns.
        output_shape: pair of ints: the rows and columns of the result.
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
    Returns:
        Tensor (samples, output rows, output columns, filters), in inputs' data format and dtype.
    Raises:
        TypeError: the dtypes differ or are not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/local.cc
    Example:
        >>> K.local_conv2d(K.zeros((2, 5, 5, 3)), K.ones((9, 27, 4)), (3, 3), (1, 1), (3, 3)).shape
        (2, 3, 3, 4)
    """
    return _core.local_conv2d(inputs, kernel, kernel_size, strides, output_shape, _format(data_format))


def bias_add(x: TensorLike, bias: TensorLike, data_format: Optional[str] = None) -> Tensor:
    """x + bias.

    Args:
        x: tensor (samples, space..., channels), or (samples, channels, space...); any dtype but bool; with at most two
            axes the channels are last.
        bias: tensor (channels,), or (space..., channels) with a value for each place; x's dtype. With 'channels_first'
            the elements of the second form are read as (channels, space...).
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: the dtypes differ, or x is bool.
        ValueError: the bias has another shape, or the data_format is unknown.
    See: ops/convolution/bias_add.cc
    Example:
        >>> K.eval(K.bias_add([[1., 2.]], [10., 20.]))
        array([[11., 22.]], dtype=float32)
    """
    return _core.bias_add(x, bias, _format(data_format))
