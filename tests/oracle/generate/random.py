"""Random tensors: shape, dtype, moments and fractions against the distributions of SciPy."""

import numpy as np
from scipy import stats

from generate.oracle import case, real

QUANTILES = (-1.0, -0.5, 0.0, 0.5, 1.0)  # in standard deviations from the mean


def summary(distribution):
    """The results of `summary` in tests/oracle/calls_random.cc: shape, dtype, moments, fractions, and whether the limits hold."""

    def compute(shape, dtype="float32", **args):
        d = distribution(**args)
        mean, std = d.mean(), d.std()
        fractions = [d.cdf(mean + q * std) for q in QUANTILES]
        return [np.array(shape, np.int32), np.zeros((0,), dtype), np.array([mean, std]), np.array(fractions),
                np.array([True, True])]

    return compute


def random(function, distribution, options):
    for shape in ((20000,), (100, 150), (30, 20, 40)):
        for dtype in ("float32", "float64"):
            for args in options:
                case(function, oracle=summary(distribution), tolerance="statistic", shape=shape, dtype=dtype, **args)


UNIFORM = [{}, dict(minval=-1.0, maxval=1.0), dict(minval=2.0, maxval=2.5), dict(minval=-3.0)]
NORMAL = [{}, dict(mean=1.0), dict(stddev=0.25), dict(mean=-2.0, stddev=1.5)]


def uniform(minval=0.0, maxval=1.0):
    return stats.uniform(minval, maxval - minval)


def normal(mean=0.0, stddev=1.0):
    return stats.norm(mean, stddev)


def truncated(mean=0.0, stddev=1.0):
    return stats.truncnorm(-2, 2, mean, stddev)


random("random_uniform", uniform, UNIFORM)
random("random_normal", normal, NORMAL)
random("truncated_normal", truncated, NORMAL)
random("random_uniform_variable", lambda low, high: stats.uniform(low, high - low), [dict(low=0.0, high=1.0), dict(low=-2.0, high=3.0)])
random("random_normal_variable", lambda mean, scale: stats.norm(mean, scale), [dict(mean=0.0, scale=1.0), dict(mean=2.0, scale=0.5)])


def fraction_of_ones(shape, p, dtype="float32"):
    """The shape, the dtype, the fraction of ones, and that all elements are 0 or 1."""
    return [np.array(shape, np.int32), np.zeros((0,), dtype), np.array(p), np.array(True)]


for shape in ((20000,), (100, 150)):
    for dtype in ("float32", "float64"):
        for p in (0.0, 0.1, 0.5, 0.75, 1.0):
            case("random_binomial", oracle=fraction_of_ones, tolerance="statistic", shape=shape, dtype=dtype, p=p)
for function, args in (("random_uniform", {}), ("random_normal", {}), ("truncated_normal", {}), ("random_binomial", dict(p=0.5))):
    case(function, label="empty", script=lambda K, f=function, **a: getattr(K, f)(**a), shape=(0, 3), **args)


def dropped(x, level, noise_shape=None):
    """The fraction kept, the number of wrongly scaled elements, the number of columns that differ in a draw shared by rows, the ratio
    of the mean to x's, the errors of some elements. The fraction and the ratio of no elements are NaN."""
    kept, ratio = (1 - level, 1.0) if len(x) else (np.nan, np.nan)
    return [np.array(kept), np.array(0.0), np.array(0.0), np.array(ratio), np.zeros((len(x), 2), x.dtype)]


for dtype in ("float32", "float64"):
    for level in (0.0, 0.1, 0.5, 0.75):
        case("dropout", [real(4, 5, dtype=dtype, low=1.0)], oracle=dropped, tolerance="statistic", level=level)
    for noise_shape in ((1, None), (None, None)):
        case("dropout", [real(4, 5, dtype=dtype, low=1.0)], oracle=dropped, tolerance="statistic", level=0.25,
             noise_shape=noise_shape)
