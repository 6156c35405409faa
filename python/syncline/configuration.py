"""Configuration: floatx, epsilon, the image data format. Where Keras is loaded they are Keras's own state."""

from __future__ import annotations

import sys

import numpy as np

from syncline import _core
from syncline.types import Array, DType, Value


def _keras_state():
    """Keras's module that keeps the configuration and lets no backend override it; None without Keras."""
    return sys.modules.get("keras.backend.common")


def backend() -> str:
    """The name of this backend: 'syncline'."""
    return "syncline"


def epsilon() -> float:
    """The small number that keeps divisions and logarithms finite: 1e-7 unless set."""
    return _core.epsilon()


def set_epsilon(e: float) -> None:
    """Sets the fuzz factor to the float `e`. Raises ValueError unless it is finite and not negative."""
    _core.set_epsilon(float(e))
    if _keras_state() is not None:
        _keras_state().set_epsilon(float(e))


def floatx() -> str:
    """The dtype of tensors for which none is given: 'float32' unless set."""
    return _core.floatx()


def set_floatx(floatx: DType) -> None:
    """Sets the default dtype: 'float16', 'float32' or 'float64'. Raises ValueError for anything else."""
    _core.set_floatx(str(floatx))
    if _keras_state() is not None:
        _keras_state().set_floatx(str(floatx))


def cast_to_floatx(x: Value) -> Array:
    """`x`, a number or an array, as a NumPy array of dtype floatx()."""
    return np.asarray(x, dtype=floatx())


def image_data_format() -> str:
    """'channels_last' or 'channels_first': where images have their channels unless a function is told."""
    return _core.image_data_format()


def set_image_data_format(data_format: str) -> None:
    """Sets it to 'channels_last' or 'channels_first'. Raises ValueError for anything else."""
    _core.set_image_data_format(str(data_format))
    if _keras_state() is not None:
        _keras_state().set_image_data_format(str(data_format))


def image_dim_ordering() -> str:
    """The image data format in Keras 1's words: 'tf' for channels_last, 'th' for channels_first."""
    return "th" if image_data_format() == "channels_first" else "tf"


def set_image_dim_ordering(dim_ordering: str) -> None:
    """Sets the image data format by Keras 1's words, 'tf' or 'th'. Raises ValueError for anything else."""
    if dim_ordering not in ("tf", "th"):
        raise ValueError(f"set_image_dim_ordering: unknown dim_ordering {dim_ordering!r}; give 'tf' or 'th'")
    set_image_data_format("channels_first" if dim_ordering == "th" else "channels_last")
