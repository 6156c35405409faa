"""Functions that rearrange, join, cut and repeat elements. All take every dtype. Axes may be negative; sizes may be
scalar tensors where they follow from shapes. ValueError for shapes and axes that do not fit."""

from __future__ import annotations

from syncline import _core
from syncline.types import Axis, DType, Optional, Sequence, Size, Sizes, Tensor, TensorLike


def _format(data_format):
    return _core.image_data_format() if data_format is None else data_format


def concatenate(tensors: Sequence[TensorLike], axis: int = -1) -> Tensor:
    """The tensors one after the other along an axis. Of sparse tensors only: sparse."""
    return _core.concatenate(tensors, axis)


def reshape(x: TensorLike, shape: Sizes) -> Tensor:
    """The same elements in another shape. One entry may be -1: it takes what is left."""
    return _core.reshape(x, shape)


def permute_dimensions(x: TensorLike, pattern: Sequence[int]) -> Tensor:
    """x with its axes in the order of `pattern`: axis i of the result is axis pattern[i] of x."""
    return _core.permute_dimensions(x, pattern)


def resize_images(
    x: TensorLike, height_factor: int, width_factor: int, data_format: Optional[str], interpolation: str = "nearest"
) -> Tensor:
    """Images (4 axes) enlarged by whole factors, by 'nearest' or 'bilinear' interpolation."""
    return _core.resize_images(x, height_factor, width_factor, _format(data_format), interpolation)


def resize_volumes(
    x: TensorLike, depth_factor: int, height_factor: int, width_factor: int, data_format: Optional[str]
) -> Tensor:
    """Volumes (5 axes) enlarged by whole factors: elements are repeated."""
    return _core.resize_volumes(x, depth_factor, height_factor, width_factor, _format(data_format))


def repeat_elements(x: TensorLike, rep: int, axis: int) -> Tensor:
    """Each element `rep` times in a row along an axis, as numpy.repeat."""
    result = _core.repeat_elements(x, rep, axis)
    result._keras_shape = tuple(result.shape)  # as Keras's own backends leave it
    return result


def repeat(x: TensorLike, n: Size) -> Tensor:
    """(samples, dim) repeated n times: (samples, n, dim)."""
    return _core.repeat(x, n)


def arange(
    start: TensorLike, stop: Optional[TensorLike] = None, step: TensorLike = 1, dtype: DType = "int32"
) -> Tensor:
    """start, start + step, ... below stop (above, if step is negative). With one number that is `stop`, from 0."""
    return _core.arange(start, stop, step, dtype)


def tile(x: TensorLike, n: Sizes) -> Tensor:
    """n[i] copies of x along axis i, one after the other; one integer means the last axis."""
    return _core.tile(x, n)


def flatten(x: TensorLike) -> Tensor:
    """All elements along one axis."""
    return _core.flatten(x)


def batch_flatten(x: TensorLike) -> Tensor:
    """Two axes: the first, and all others."""
    return _core.batch_flatten(x)


def expand_dims(x: TensorLike, axis: int = -1) -> Tensor:
    """x with a new axis of one element at `axis` of the result."""
    return _core.expand_dims(x, axis)


def squeeze(x: TensorLike, axis: int) -> Tensor:
    """x without its axis of one element."""
    return _core.squeeze(x, axis)


def temporal_padding(x: TensorLike, padding: Sequence[int] = (1, 1)) -> Tensor:
    """Zeros before and after the middle axis of (samples, time, features)."""
    return _core.temporal_padding(x, padding)


def spatial_2d_padding(
    x: TensorLike, padding: Sequence[Sequence[int]] = ((1, 1), (1, 1)), data_format: Optional[str] = None
) -> Tensor:
    """Zeros before and after the rows and columns of images (4 axes)."""
    return _core.spatial_2d_padding(x, padding, _format(data_format))


def spatial_3d_padding(
    x: TensorLike, padding: Sequence[Sequence[int]] = ((1, 1), (1, 1), (1, 1)), data_format: Optional[str] = None
) -> Tensor:
    """Zeros before and after the three axes of the space of volumes (5 axes)."""
    return _core.spatial_3d_padding(x, padding, _format(data_format))


def stack(x: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """A list of tensors of one shape along a new axis. Numbers among them take the tensors' dtype."""
    return _core.stack(x, axis)


def one_hot(indices: TensorLike, num_classes: int) -> Tensor:
    """(..., num_classes) of float32: 1 at the index, 0 elsewhere. indices: integers."""
    return _core.one_hot(indices, num_classes)


def reverse(x: TensorLike, axes: Axis) -> Tensor:
    """x with the elements along one or several axes in the opposite order."""
    return _core.reverse(x, axes)


def slice(x: TensorLike, start: TensorLike, size: Sizes) -> Tensor:
    """x[start[0] : start[0] + size[0], ...]; one entry an axis, a size of -1 reaches to the end."""
    return _core.slice(x, start, size)
