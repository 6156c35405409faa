"""Random tensors and dropout. Without a seed one is drawn from NumPy's generator, as Keras does, so numpy.random.seed
makes a run reproducible. Each step draws anew, and what is drawn depends neither on ranks nor on threads."""

import numpy as np

from syncline import _core
from syncline.variables import variable


def _seed(seed):
    return int(np.random.randint(10_000_000)) if seed is None else int(seed)


def random_uniform_variable(shape, low, high, dtype=None, name=None, seed=None):
    """A variable of numbers drawn from [low, high)."""
    return variable(random_uniform(shape, low, high, dtype, seed), dtype, name)


def random_normal_variable(shape, mean, scale, dtype=None, name=None, seed=None):
    """A variable of numbers drawn from the normal distribution with this mean and standard deviation."""
    return variable(random_normal(shape, mean, scale, dtype, seed), dtype, name)


def random_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """A tensor of numbers of the normal distribution."""
    return _core.random_normal(shape, float(mean), float(stddev), dtype, _seed(seed))


def random_uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
    """A tensor of numbers from [minval, maxval)."""
    return _core.random_uniform(shape, float(minval), float(maxval), dtype, _seed(seed))


def random_binomial(shape, p=0.0, dtype=None, seed=None):
    """A tensor: 1 with probability p, otherwise 0."""
    return _core.random_binomial(shape, float(p), dtype, _seed(seed))


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
    """The normal distribution without what lies farther than two standard deviations from the mean."""
    return _core.truncated_normal(shape, float(mean), float(stddev), dtype, _seed(seed))


def dropout(x, level, noise_shape=None, seed=None):
    """x with a fraction `level` of its elements set to 0 and the others scaled by 1 / (1 - level). noise_shape: 1
    along axes where one draw serves all elements."""
    return _core.dropout(x, float(level), noise_shape, _seed(seed))
