"""Random tensors and dropout. Without a seed one is drawn from NumPy's generator, as Keras does, so numpy.random.seed
makes a run reproducible; under several ranks it is rank 0's. Each run of an operation draws anew, as the seed and the
number of its runs say: operations of equal seeds draw equal sequences, whatever else has run, on any number of ranks
and threads."""

from __future__ import annotations

import numpy as np

from syncline import _core
from syncline.variables import variable
from syncline.types import DType, Optional, Parameter, Sizes, Tensor, TensorLike, Variable


def _key(seed):
    # A new operation: it draws the sequence of its seed from the beginning.
    if seed is None:
        return _core.random_key(int(np.random.randint(10_000_000)), True)
    return _core.random_key(int(seed) % 2**64, False)


def random_uniform_variable(
    shape: Sizes,
    low: Parameter,
    high: Parameter,
    dtype: Optional[DType] = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Variable:
    """A variable of numbers drawn from [low, high)."""
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


def random_normal_variable(
    shape: Sizes,
    mean: Parameter,
    scale: Parameter,
    dtype: Optional[DType] = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Variable:
    """A variable of numbers drawn from the normal distribution with this mean and standard deviation."""
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


def random_normal(
    shape: Sizes, mean: Parameter = 0.0, stddev: Parameter = 1.0, dtype: Optional[DType] = None, seed: Optional[int] = None
) -> Tensor:
    """A tensor of numbers of the normal distribution."""
    return _core.random_normal(shape, mean, stddev, dtype, _key(seed))


def random_uniform(
    shape: Sizes, minval: Parameter = 0.0, maxval: Parameter = 1.0, dtype: Optional[DType] = None, seed: Optional[int] = None
) -> Tensor:
    """A tensor of numbers from [minval, maxval)."""
    return _core.random_uniform(shape, minval, maxval, dtype, _key(seed))


def random_binomial(shape: Sizes, p: Parameter = 0.0, dtype: Optional[DType] = None, seed: Optional[int] = None) -> Tensor:
    """A tensor: 1 with probability p, otherwise 0."""
    return _core.random_binomial(shape, p, dtype, _key(seed))


def truncated_normal(
    shape: Sizes, mean: Parameter = 0.0, stddev: Parameter = 1.0, dtype: Optional[DType] = None, seed: Optional[int] = None
) -> Tensor:
    """The normal distribution without what lies farther than two standard deviations from the mean."""
    return _core.truncated_normal(shape, mean, stddev, dtype, _key(seed))


def dropout(x: TensorLike, level: Parameter, noise_shape: Optional[Sizes] = None, seed: Optional[int] = None) -> Tensor:
    """x with a fraction `level` of its elements set to 0 and the others scaled by 1 / (1 - level). noise_shape: 1
    along axes where one draw serves all elements."""
    return _core.dropout(x, level, noise_shape, _key(seed))
