"""Random tensors and dropout. A missing seed is drawn from NumPy's generator, as in Keras, so numpy.random.seed makes a run
reproducible; all ranks use the seed of rank 0. Each run of an operation draws new numbers, which depend only on the seed
and the number of its runs. So operations with equal seeds draw equal sequences, on any number of ranks and threads."""

from __future__ import annotations

from operator import index

import numpy as np

from syncline import _core
from syncline.functions.variables import variable
from syncline.types import DType, Optional, Parameter, Sizes, Tensor, TensorLike, Variable


def _key(seed):
    # The key of a new operation, which draws the sequence of its seed from the beginning.
    if seed is None:
        return _core.random_key(int(np.random.randint(10_000_000)), True)
    return _core.random_key(index(seed) % 2**64, False)


def random_uniform_variable(
    shape: Sizes,
    low: Parameter,
    high: Parameter,
    dtype: Optional[DType] = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Variable:
    """A variable of numbers drawn once from the uniform distribution on [low, high).

    Args:
        shape: tuple of ints >= 0 or scalar integer tensors, or an integer vector: the shape of the result.
        low: float, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the lower bound.
        high: float >= low, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the upper
            bound. It is never drawn, except by rounding if a bound is a tensor.
        dtype: str or NumPy dtype, floating or integer; None: floatx().
        name: str, or None; made unique.
        seed: int, of which the lowest 64 bits count; None: drawn from NumPy's generator (under several ranks rank 0's),
            so numpy.random.seed makes a run reproducible.
    Returns:
        Variable of this shape and dtype.
    Raises:
        TypeError: a parameter is not a number, a size or the seed is not an int, or the dtype is bool; a bound of integers
            is a fraction, or a tensor of a dtype that the result's does not include (cast it).
        ValueError: the shape is not known, a size is negative, or the bounds are not an interval of the dtype.
    See: ops/random/random.cc
    Example:
        >>> K.random_uniform_variable((2, 3), -1, 1).shape
        (2, 3)
    """
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


def random_normal_variable(
    shape: Sizes,
    mean: Parameter,
    scale: Parameter,
    dtype: Optional[DType] = None,
    name: Optional[str] = None,
    seed: Optional[int] = None,
) -> Variable:
    """A variable of numbers drawn once from a normal distribution.

    Args:
        shape: tuple of ints >= 0 or scalar integer tensors, or an integer vector: the shape of the result.
        mean: float, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the mean.
        scale: float >= 0, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the standard
            deviation.
        dtype: str or NumPy dtype, floating; None: floatx().
        name: str, or None; made unique.
        seed: int, of which the lowest 64 bits count; None: drawn from NumPy's generator (under several ranks rank 0's),
            so numpy.random.seed makes a run reproducible.
    Returns:
        Variable of this shape and dtype.
    Raises:
        TypeError: a parameter is not a number, a size or the seed is not an int, or the dtype is not floating.
        ValueError: the shape is not known, or a size or the scale is negative.
    See: ops/random/random.cc
    Example:
        >>> K.random_normal_variable((2, 3), 0, 0.05).shape
        (2, 3)
    """
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


def random_normal(
    shape: Sizes, mean: Parameter = 0.0, stddev: Parameter = 1.0, dtype: Optional[DType] = None, seed: Optional[int] = None
) -> Tensor:
    """Numbers drawn from a normal distribution.

    Args:
        shape: tuple of ints >= 0 or scalar integer tensors, or an integer vector: the shape of the result.
        mean: float, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the mean.
        stddev: float >= 0, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the standard
            deviation.
        dtype: str or NumPy dtype, floating; None: floatx().
        seed: int, of which the lowest 64 bits count; None: drawn from NumPy's generator (under several ranks rank 0's),
            so numpy.random.seed makes a run reproducible.
    Returns:
        Tensor of this shape and dtype. Each run draws new numbers, which depend on the seed and the number of the run
        only: calls with equal seeds draw equal numbers, on any number of ranks and threads.
    Raises:
        TypeError: a parameter is not a number, a size or the seed is not an int, or the dtype is not floating.
        ValueError: the shape is not known, or a size or stddev is negative.
    See: ops/random/random.cc
    Example:
        >>> bool(K.eval(K.random_normal((1000,), mean=5., stddev=0.1, seed=1)).mean().round(1) == 5)
        True
    """
    return _core.random_normal(shape, mean, stddev, dtype, _key(seed))


def random_uniform(
    shape: Sizes, minval: Parameter = 0.0, maxval: Parameter = 1.0, dtype: Optional[DType] = None, seed: Optional[int] = None
) -> Tensor:
    """Numbers drawn from the uniform distribution on [minval, maxval).

    Args:
        shape: tuple of ints >= 0 or scalar integer tensors, or an integer vector: the shape of the result.
        minval: float, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the lower bound.
        maxval: float >= minval, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the upper
            bound. It is never drawn, except by rounding if a bound is a tensor.
        dtype: str or NumPy dtype, floating or integer; None: floatx().
        seed: int, of which the lowest 64 bits count; None: drawn from NumPy's generator (under several ranks rank 0's),
            so numpy.random.seed makes a run reproducible.
    Returns:
        Tensor of this shape and dtype. Each run draws new numbers, which depend on the seed and the number of the run
        only: calls with equal seeds draw equal numbers, on any number of ranks and threads.
    Raises:
        TypeError: a parameter is not a number, a size or the seed is not an int, or the dtype is bool; a bound of integers
            is a fraction, or a tensor of a dtype that the result's does not include (cast it).
        ValueError: the shape is not known, a size is negative, or the bounds are not an interval of the dtype.
    See: ops/random/random.cc
    Example:
        >>> int(K.eval(K.random_uniform((1000,), 0, 6, dtype='int32', seed=1)).max())
        5
    """
    return _core.random_uniform(shape, minval, maxval, dtype, _key(seed))


def random_binomial(shape: Sizes, p: Parameter = 0.0, dtype: Optional[DType] = None, seed: Optional[int] = None) -> Tensor:
    """1 with probability p, otherwise 0, element by element.

    Args:
        shape: tuple of ints >= 0 or scalar integer tensors, or an integer vector: the shape of the result.
        p: float from 0 to 1, or tensor, cast to a floating dtype, whose shape broadcasts to the result's: the probability
            of 1.
        dtype: str or NumPy dtype; None: floatx().
        seed: int, of which the lowest 64 bits count; None: drawn from NumPy's generator (under several ranks rank 0's),
            so numpy.random.seed makes a run reproducible.
    Returns:
        Tensor of this shape and dtype. Each run draws new numbers, which depend on the seed and the number of the run
        only: calls with equal seeds draw equal numbers, on any number of ranks and threads.
    Raises:
        TypeError: p is not a number, a size or the seed is not an int, or the dtype is unknown.
        ValueError: the shape is not known, a size is negative, or p is not in [0, 1].
    See: ops/random/random.cc
    Example:
        >>> K.eval(K.random_binomial((3,), p=1.))
        array([1., 1., 1.], dtype=float32)
    """
    return _core.random_binomial(shape, p, dtype, _key(seed))


def truncated_normal(
    shape: Sizes, mean: Parameter = 0.0, stddev: Parameter = 1.0, dtype: Optional[DType] = None, seed: Optional[int] = None
) -> Tensor:
    """Numbers drawn from a normal distribution that is truncated two standard deviations from the mean.

    Args:
        shape: tuple of ints >= 0 or scalar integer tensors, or an integer vector: the shape of the result.
        mean: float, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the mean.
        stddev: float >= 0, or tensor, cast to the result's dtype, whose shape broadcasts to the result's: the standard
            deviation.
        dtype: str or NumPy dtype, floating; None: floatx().
        seed: int, of which the lowest 64 bits count; None: drawn from NumPy's generator (under several ranks rank 0's),
            so numpy.random.seed makes a run reproducible.
    Returns:
        Tensor of this shape and dtype. Each run draws new numbers, which depend on the seed and the number of the run
        only: calls with equal seeds draw equal numbers, on any number of ranks and threads.
    Raises:
        TypeError: a parameter is not a number, a size or the seed is not an int, or the dtype is not floating.
        ValueError: the shape is not known, or a size or stddev is negative.
    See: ops/random/random.cc
    Example:
        >>> bool(abs(K.eval(K.truncated_normal((1000,), seed=1))).max() <= 2)
        True
    """
    return _core.truncated_normal(shape, mean, stddev, dtype, _key(seed))


def dropout(x: TensorLike, level: Parameter, noise_shape: Optional[Sizes] = None, seed: Optional[int] = None) -> Tensor:
    """Sets random elements of x, drawn in each step, to 0 and scales the others by 1 / (1 - level). It does so in
    training and testing: see in_train_phase.

    Args:
        x: tensor of any shape and floating dtype.
        level: float in [0, 1), or scalar tensor of any dtype: the probability that an element becomes 0.
        noise_shape: tuple of ints, one per axis of x: 1 for an axis with one draw for all elements, otherwise x's size,
            -1 or None; a shorter tuple belongs to the last axes.
        seed: int, of which the lowest 64 bits count; None: drawn from NumPy's generator (under several ranks rank 0's),
            so numpy.random.seed makes a run reproducible.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is not floating, the level is not a number, or a size or the seed is not an int.
        ValueError: the level is outside [0, 1), noise_shape does not fit, or x is sparse.
    See: ops/random/dropout.cc
    Example:
        >>> sorted(set(K.eval(K.dropout(K.ones((1000,)), 0.5, seed=1)).tolist()))
        [0.0, 2.0]
    """
    return _core.dropout(x, level, noise_shape, _key(seed))
