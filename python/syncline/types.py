"""Names for the annotations of the documented functions."""

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from syncline._core import Tensor, Update, Variable

Array = np.ndarray
# A value that becomes a constant where a tensor is expected.
Value = Union[np.ndarray, np.generic, float, int, bool, Sequence[Any]]
TensorLike = Union[Tensor, Value]
# A number, or a tensor that a step computes.
Parameter = Union[float, int, np.ndarray, np.generic, Tensor]
# 'float32', numpy.float32, numpy.dtype('float32'), or a tensor's dtype.
DType = Union[str, type, np.dtype]
# A size is a number, a scalar tensor, or None if unknown.
Size = Union[int, Tensor, None]
Sizes = Union[Sequence[Size], Tensor]
# One axis, or several; None: all.
Axis = Union[int, Sequence[int], None]
# A tensor, or a function without arguments that makes one.
Side = Union[TensorLike, Callable[[], Tensor]]
Updates = Sequence[Union[Update, Tuple[Variable, TensorLike], Sequence[Any]]]
StepFunction = Callable[[Tensor, List[Tensor]], Tuple[Tensor, Sequence[Tensor]]]

__all__ = [
    "Any", "Array", "Axis", "Callable", "DType", "List", "Optional", "Parameter", "Sequence", "Side", "Size", "Sizes",
    "StepFunction", "Tensor", "TensorLike", "Tuple", "Update", "Updates", "Value", "Variable",
]  # fmt: skip
