"""Pooling of images and volumes."""

from __future__ import annotations

from syncline import _core
from syncline.functions.images import _format
from syncline.types import Optional, Sequence, Tensor, TensorLike


def pool2d(
    x: TensorLike,
    pool_size: Sequence[int],
    strides: Sequence[int] = (1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    pool_mode: str = "max",
) -> Tensor:
    """The largest element, or the mean, of each window of images.

    Args:
        x: tensor (samples, rows, columns, channels), or (samples, channels, rows, columns); floating.
        pool_size: pair of ints >= 1, or one int: the rows and columns of the window.
        strides: pair of ints >= 1, or one int: the window's steps along rows and columns.
        padding: str: 'valid' (windows lie inside x) or 'same' (windows may extend beyond x).
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        pool_mode: str: 'max', or 'avg': the mean of the window's elements inside x.
    Returns:
        Tensor (samples, new rows, new columns, channels), in x's data format and dtype. New sizes: 'valid'
        (size-pool_size)//stride+1; 'same' size/stride, rounded up.
    Raises:
        TypeError: x is not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/pool.cc
    Example:
        >>> K.pool2d(K.placeholder((None, 28, 28, 8)), (2, 2), (2, 2)).shape
        (None, 14, 14, 8)
    """
    return _core.pool2d(x, pool_size, strides, padding, _format(data_format), pool_mode)


def pool3d(
    x: TensorLike,
    pool_size: Sequence[int],
    strides: Sequence[int] = (1, 1, 1),
    padding: str = "valid",
    data_format: Optional[str] = None,
    pool_mode: str = "max",
) -> Tensor:
    """The largest element, or the mean, of each window of volumes.

    Args:
        x: tensor (samples, depth, rows, columns, channels), or with the channels second; floating.
        pool_size: three ints >= 1, or one int: the depth, rows and columns of the window.
        strides: three ints >= 1, or one int: the window's steps along depth, rows and columns.
        padding: str: 'valid' (windows lie inside x) or 'same' (windows may extend beyond x).
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        pool_mode: str: 'max', or 'avg': the mean of the window's elements inside x.
    Returns:
        Tensor (samples, new depth, new rows, new columns, channels), in x's data format and dtype. New sizes: 'valid'
        (size-pool_size)//stride+1; 'same' size/stride, rounded up.
    Raises:
        TypeError: x is not floating, or an option is not of its type (int or str).
        ValueError: the shapes do not fit, or an option is unknown or below 1.
    See: ops/convolution/pool.cc
    """
    return _core.pool3d(x, pool_size, strides, padding, _format(data_format), pool_mode)
