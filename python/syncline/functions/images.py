"""Enlarging and zero padding of images and volumes."""

from __future__ import annotations

from syncline import _core
from syncline.types import Optional, Sequence, Tensor, TensorLike


def _format(data_format):
    return _core.image_data_format() if data_format is None else data_format


def resize_images(
    x: TensorLike, height_factor: int, width_factor: int, data_format: Optional[str], interpolation: str = "nearest"
) -> Tensor:
    """Enlarges images by integer factors.

    Args:
        x: tensor (samples, rows, columns, channels), or (samples, channels, rows, columns); any dtype.
        height_factor: int >= 1: factor of the number of rows.
        width_factor: int >= 1: factor of the number of columns.
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
        interpolation: str: 'nearest' repeats elements; 'bilinear' (floating x) interpolates: element i of the result
            lies at i / factor in x, and equals x's last element beyond it.
    Returns:
        Tensor (samples, rows * height_factor, columns * width_factor, channels) in x's data format and dtype.
    Raises:
        TypeError: a factor is not an int, or x is not floating with 'bilinear'.
        ValueError: x does not have four axes or is sparse; a factor below 1; an unknown data_format or interpolation.
    See: ops/convolution/resize.cc
    Example:
        >>> K.resize_images(K.zeros((1, 4, 5, 3)), 2, 3, 'channels_last').shape
        (1, 8, 15, 3)
    """
    return _core.resize_images(x, height_factor, width_factor, _format(data_format), interpolation)


def resize_volumes(
    x: TensorLike, depth_factor: int, height_factor: int, width_factor: int, data_format: Optional[str]
) -> Tensor:
    """Enlarges volumes by integer factors, by repeating elements.

    Args:
        x: tensor (samples, depth, rows, columns, channels), or with the channels second; any dtype.
        depth_factor: int >= 1: factor of the depth.
        height_factor: int >= 1: factor of the number of rows.
        width_factor: int >= 1: factor of the number of columns.
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
    Returns:
        Tensor of x's dtype and shape, with the three spatial axes multiplied by the factors.
    Raises:
        TypeError: a factor is not an int.
        ValueError: x does not have five axes or is sparse; a factor below 1; an unknown data_format.
    See: ops/convolution/resize.cc
    Example:
        >>> K.resize_volumes(K.zeros((1, 2, 3, 4, 1)), 2, 2, 2, 'channels_last').shape
        (1, 4, 6, 8, 1)
    """
    return _core.resize_volumes(x, depth_factor, height_factor, width_factor, _format(data_format))


def temporal_padding(x: TensorLike, padding: Sequence[int] = (1, 1)) -> Tensor:
    """Adds zeros before and after the middle axis.

    Args:
        x: tensor (samples, time, features); any dtype.
        padding: pair of ints >= 0: numbers of zeros before and after.
    Returns:
        Tensor (samples, before + time + after, features) of x's dtype.
    Raises:
        TypeError: `padding` does not consist of integers.
        ValueError: x does not have three axes or is sparse; `padding` is not a pair, or a number is negative.
    See: ops/convolution/resize.cc
    Example:
        >>> K.temporal_padding(K.zeros((1, 4, 3)), (1, 2)).shape
        (1, 7, 3)
    """
    return _core.temporal_padding(x, padding)


def spatial_2d_padding(
    x: TensorLike, padding: Sequence[Sequence[int]] = ((1, 1), (1, 1)), data_format: Optional[str] = None
) -> Tensor:
    """Adds zeros around images.

    Args:
        x: tensor (samples, rows, columns, channels), or (samples, channels, rows, columns); any dtype.
        padding: pair of pairs of ints >= 0: before and after the rows, before and after the columns.
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
    Returns:
        Tensor of x's dtype and shape, with more rows and columns.
    Raises:
        TypeError: `padding` does not consist of pairs of integers.
        ValueError: x does not have four axes or is sparse; `padding` is not two pairs, or a number is negative; an
            unknown data_format.
    See: ops/convolution/resize.cc
    Example:
        >>> K.spatial_2d_padding(K.zeros((1, 4, 4, 3)), ((1, 0), (2, 2))).shape
        (1, 5, 8, 3)
    """
    return _core.spatial_2d_padding(x, padding, _format(data_format))


def spatial_3d_padding(
    x: TensorLike, padding: Sequence[Sequence[int]] = ((1, 1), (1, 1), (1, 1)), data_format: Optional[str] = None
) -> Tensor:
    """Adds zeros around volumes.

    Args:
        x: tensor (samples, depth, rows, columns, channels), or with the channels second; any dtype.
        padding: three pairs of ints >= 0: before and after the depth, the rows and the columns.
        data_format: str: 'channels_last' or 'channels_first', or None: image_data_format().
    Returns:
        Tensor of x's dtype and shape, with larger spatial axes.
    Raises:
        TypeError: `padding` does not consist of pairs of integers.
        ValueError: x does not have five axes or is sparse; `padding` is not three pairs, or a number is negative; an
            unknown data_format.
    See: ops/convolution/resize.cc
    Example:
        >>> K.spatial_3d_padding(K.zeros((1, 2, 2, 2, 3))).shape
        (1, 4, 4, 4, 3)
    """
    return _core.spatial_3d_padding(x, padding, _format(data_format))
