"""Random tensors and dropout. Without a seed one is drawn from NumPy's generator, as Keras does, so numpy.random.seed
makes a run reproducible. Each step draws anew, and what is drawn depends neither on ranks nor on threads."""

from __future__ import annotations

import numpy as np

from syncline import _core
from syncline.variables import variable
from syncline.types import DType, Optional, Sizes, Tensor, TensorLike, Variable


def _seed(seed):
    return int(np.random.randint(10_000_000)) if seed is None else int(seed)


def random_uniform_variable(
    shape: Sizes,
    low: float,
    high: float,
    dtype: Optional[DType] = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Variable:
    """A variable of numbers drawn from [low, high)."""
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


def random_normal_variable(
    shape: Sizes,
    mean: float,
    scale: float,
    dtype: Optional[DType] = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Variable:
    """A variable of numbers drawn from the normal distribution with this mean and standard deviation."""
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


def random_normal(
    shape: Sizes, mean: float = 0.0, stddev: float = 1.0, dtype: Optional[DType] = None, seed: Optional[int] = None
) -> Tensor:
    """A tensor of numbers of the normal distribution."""
    return _core.random_normal(shape, float(mean), float(stddev), dtype, _seed(seed))


def random_uniform(
    shape: Sizes, minval: float = 0.0, maxval: float = 1.0, dtype: Optional[DType] = None, seed: Optional[int] = None
) -> Tensor:
    """A tensor of numbers from [minval, maxval)."""
    return _core.random_uniform(shape, float(minval), float(maxval), dtype, _seed(seed))


def random_binomial(shape: Sizes, p: float = 0.0, dtype: Optional[DType] = None, seed: Optional[int] = None) -> Tensor:
    """A tensor: 1 with probability p, otherwise 0."""
    return _core.random_binomial(shape, float(p), dtype, _seed(seed))


def truncated_normal(
    shape: Sizes, mean: float = 0.0, stddev: float = 1.0, dtype: Optional[DType] = None, seed: Optional[int] = None
) -> Tensor:
    """The normal distribution without what lies farther than two standard deviations from the mean."""
    return _core.truncated_normal(shape, float(mean), float(stddev), dtype, _seed(seed))


def dropout(x: TensorLike, level: float, noise_shape: Optional[Sizes] = None, seed: Optional[int] = None) -> Tensor:
    """x with a fraction `level` of its elements set to 0 and the others scaled by 1 / (1 - level). noise_shape: 1
    along axes where one draw serves all elements."""
    return _core.dropout(x, float(level), noise_shape, _seed(seed))
