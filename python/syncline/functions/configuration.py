"""Configuration: floatx, epsilon, the image data format. If Keras is loaded, they are Keras's own state."""

from __future__ import annotations

import sys

import numpy as np

from syncline import _core
from syncline.types import Any, DType, TensorLike


def _keras_state():
    """Keras's module with the configuration, which a backend cannot override; None without Keras."""
    return sys.modules.get("keras.backend.common")


def backend() -> str:
    """The name of this backend.

    Returns:
        str: 'syncline'.
    See: runtime/session/config.cc
    """
    return "syncline"


def epsilon() -> float:
    """The small number that keeps divisions and logarithms finite.

    Returns:
        float: 1e-7 unless keras.json or set_epsilon changes it.
    See: runtime/session/config.cc
    """
    return _core.epsilon()


def set_epsilon(e: float) -> None:
    """Sets the small number that keeps divisions and logarithms finite, for graphs built later.

    Args:
        e: float: finite, 0 or more; or a text that float() reads.
    Returns:
        None.
    Raises:
        TypeError: e is not a number.
        ValueError: e is negative or not finite, or a text that is not a number.
    See: runtime/session/config.cc
    Example:
        >>> K.set_epsilon(1e-5)
        >>> K.epsilon()
        1e-05
    """
    try:
        number = float(e)
    except OverflowError:
        raise ValueError("set_epsilon: the number is beyond the range of float; give a finite one that is not negative") from None
    _core.set_epsilon(number)
    if _keras_state() is not None:
        _keras_state().set_epsilon(number)


def floatx() -> str:
    """The default dtype of tensors.

    Returns:
        str: 'float16', 'float32' or 'float64'; 'float32' unless keras.json or set_floatx changes it.
    See: runtime/session/config.cc
    """
    return _core.floatx()


def set_floatx(floatx: DType) -> None:
    """Sets the default dtype of tensors made later.

    Args:
        floatx: str: 'float16', 'float32' or 'float64'.
    Returns:
        None.
    Raises:
        ValueError: any other dtype.
    See: runtime/session/config.cc
    Example:
        >>> K.set_floatx('float64')
        >>> K.dtype(K.zeros((2,)))
        'float64'
    """
    _core.set_floatx(str(floatx))
    if _keras_state() is not None:
        _keras_state().set_floatx(str(floatx))


def cast_to_floatx(x: TensorLike) -> Any:
    """A value as a NumPy array of dtype floatx(). A tensor is cast, as cast(x, floatx()) does.

    Args:
        x: number, list or NumPy array of any shape and dtype; or tensor of any shape and dtype.
    Returns:
        NumPy array of x's shape and dtype floatx(); for a tensor a tensor.
    Raises:
        TypeError: x cannot be converted to numbers.
        ValueError: x is a text that is not a number.
    See: python/syncline/functions/configuration.py
    Example:
        >>> K.cast_to_floatx([1, 2])
        array([1., 2.], dtype=float32)
    """
    return _core.cast(x, floatx()) if isinstance(x, _core.Tensor) else np.asarray(x, dtype=floatx())


def image_data_format() -> str:
    """The default position of the channels axis of images.

    Returns:
        str: 'channels_last' or 'channels_first'; the former unless keras.json or set_image_data_format changes it.
    See: runtime/session/config.cc
    """
    return _core.image_data_format()


def set_image_data_format(data_format: str) -> None:
    """Sets the default position of the channels axis of images, for graphs built later.

    Args:
        data_format: str: 'channels_last' or 'channels_first'.
    Returns:
        None.
    Raises:
        ValueError: any other value.
    See: runtime/session/config.cc
    Example:
        >>> K.set_image_data_format('channels_first')
        >>> K.conv2d(K.zeros((1, 3, 8, 8)), K.ones((3, 3, 3, 4))).shape
        (1, 4, 6, 6)
    """
    _core.set_image_data_format(str(data_format))
    if _keras_state() is not None:
        _keras_state().set_image_data_format(str(data_format))


def image_dim_ordering() -> str:
    """The image data format by its name in Keras 1.

    Returns:
        str: 'tf' for 'channels_last', 'th' for 'channels_first'.
    See: runtime/session/config.cc
    """
    return "th" if image_data_format() == "channels_first" else "tf"


def set_image_dim_ordering(dim_ordering: str) -> None:
    """Sets the image data format by its name in Keras 1.

    Args:
        dim_ordering: str: 'tf' for 'channels_last', 'th' for 'channels_first'.
    Returns:
        None.
    Raises:
        ValueError: any other value.
    See: runtime/session/config.cc
    """
    if not isinstance(dim_ordering, str) or dim_ordering not in ("tf", "th"):
        raise ValueError(f"set_image_dim_ordering: unknown dim_ordering {dim_ordering!r}; give 'tf' or 'th'")
    set_image_data_format("channels_first" if dim_ordering == "th" else "channels_last")
