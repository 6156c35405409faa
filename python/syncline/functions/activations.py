"""Activations, losses and normalization. Tensors are floating unless stated otherwise."""

from __future__ import annotations

from syncline import _core
from syncline.types import Axis, Optional, Parameter, Sequence, Tensor, TensorLike, Tuple


def relu(
    x: TensorLike, alpha: Parameter = 0.0, max_value: Optional[Parameter] = None, threshold: Parameter = 0.0
) -> Tensor:
    """The rectified linear unit, element by element: alpha * (x - threshold) where x < threshold, elsewhere x, which
    max_value, if given, limits to 0 <= x <= max_value.

    Args:
        x: tensor of any shape and any dtype but bool.
        alpha: float, or tensor, cast to x's dtype, whose shape broadcasts with x's: the slope below the threshold.
        max_value: float >= 0, or tensor, cast to x's dtype, whose shape broadcasts with x's; or None: no upper bound.
        threshold: float, or tensor, cast to x's dtype, whose shape broadcasts with x's: the value of x from which the
            slope is 1.
    Returns:
        Tensor of x's shape (with tensors as parameters: the broadcast shape) and dtype.
    Raises:
        TypeError: x is bool, or a parameter is not a number; x holds integers and a parameter is a fraction, or a tensor
            of a dtype that x's does not include (cast it).
        ValueError: max_value is negative, a number is beyond x's dtype, the shapes do not broadcast, or x is sparse.
    See: ops/nn/activations.cc
    Example:
        >>> K.eval(K.relu([-2., 0.5, 9.], alpha=0.1, max_value=6.)).round(3)
        array([-0.2,  0.5,  6. ], dtype=float32)
    """
    return _core.relu(x, alpha, max_value, threshold)


def elu(x: TensorLike, alpha: Parameter = 1.0) -> Tensor:
    """The exponential linear unit, element by element: x where x > 0, alpha * (exp(x) - 1) elsewhere.

    Args:
        x: tensor of any shape and floating dtype.
        alpha: float, or tensor, cast to x's dtype, whose shape broadcasts with x's: the result approaches -alpha
            for very negative x.
    Returns:
        Tensor of x's shape (with a tensor as alpha: the broadcast shape) and dtype.
    Raises:
        TypeError: x is bool or an integer tensor (cast it first), or alpha is not a number.
        ValueError: the shapes do not broadcast, or x is sparse.
    See: ops/nn/activations.cc
    Example:
        >>> K.eval(K.elu([-1., 2.])).round(3)
        array([-0.632,  2.   ], dtype=float32)
    """
    return _core.elu(x, alpha)


def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis: numbers in [0, 1] whose sum is 1. Large x do not overflow.

    Args:
        x: tensor of at least one axis; floating.
        axis: int: the axis of the sum; negative ones count from the end.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor (cast it first), or an axis is not an int.
        ValueError: x has no such axis, or is sparse.
    See: ops/nn/softmax.cc
    Example:
        >>> K.eval(K.softmax([[0., 0.], [1000., 0.]])).round(3)
        array([[0.5, 0.5],
               [1. , 0. ]], dtype=float32)
    """
    return _core.softmax(x, axis)


def softplus(x: TensorLike) -> Tensor:
    """log(1 + exp(x)), element by element. Large x do not overflow.

    Args:
        x: tensor of any shape and floating dtype.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor; cast it first.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    Example:
        >>> K.eval(K.softplus([0., 100.])).round(3)
        array([  0.693, 100.   ], dtype=float32)
    """
    return _core.softplus(x)


def softsign(x: TensorLike) -> Tensor:
    """x / (1 + |x|), element by element.

    Args:
        x: tensor of any shape and any dtype but bool.
    Returns:
        Tensor of x's shape and dtype; for integers in the dtype of x / x, float32 or float64.
    Raises:
        TypeError: x is bool.
        ValueError: x is sparse.
    See: ops/nn/activations.cc
    Example:
        >>> K.eval(K.softsign([-1., 3.])).round(3)
        array([-0.5 ,  0.75], dtype=float32)
    """
    return _core.softsign(x)


def sigmoid(x: TensorLike) -> Tensor:
    """The logistic function 1 / (1 + exp(-x)), element by element.

    Args:
        x: tensor of any shape and floating dtype.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor; cast it first.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    Example:
        >>> K.eval(K.sigmoid([0., 100.])).round(3)
        array([0.5, 1. ], dtype=float32)
    """
    return _core.sigmoid(x)


def hard_sigmoid(x: TensorLike) -> Tensor:
    """0.2 * x + 0.5 limited to [0, 1], element by element.

    Args:
        x: tensor of any shape and floating dtype.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor; cast it first.
        ValueError: x is sparse.
    See: ops/nn/activations.cc
    Example:
        >>> K.eval(K.hard_sigmoid([-3., 0., 1.])).round(3)
        array([0. , 0.5, 0.7], dtype=float32)
    """
    return _core.hard_sigmoid(x)


def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent, element by element.

    Args:
        x: tensor of any shape and floating dtype.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor; cast it first.
        ValueError: x is sparse.
    See: ops/math/unary.cc
    Example:
        >>> K.eval(K.tanh([0., 1.])).round(3)
        array([0.   , 0.762], dtype=float32)
    """
    return _core.tanh(x)


def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The cross-entropy of distributions over classes: -sum(target * log(output)) along the axis of the classes.

    Args:
        target: tensor of output's shape and dtype: the true probabilities.
        output: tensor of at least one axis; floating: probabilities, which are divided by their sum and limited to
            [epsilon(), 1 - epsilon()]; logits if from_logits.
        from_logits: bool: whether `output` holds logits, to which softmax is applied. The logits of an `output` that is
            the result of softmax are taken anyway, without limits.
        axis: int: the axis of the classes; negative ones count from the end.
    Returns:
        Tensor of output's shape without the axis, in its dtype: one value per sample.
    Raises:
        TypeError: the dtypes differ or are not floating, or `axis` is not an int.
        ValueError: the shapes do not broadcast, there is no such axis, or a tensor is sparse.
    See: ops/nn/crossentropy.cc
    Example:
        >>> K.eval(K.categorical_crossentropy([[0., 1.]], [[0.5, 0.5]])).round(3)
        array([0.693], dtype=float32)
    """
    return _core.categorical_crossentropy(target, output, bool(from_logits), axis)


def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The cross-entropy of distributions over classes for true classes given by index: -log(output[class]).

    Args:
        target: tensor of output's shape without `axis`, or with 1 there; any dtype: the indices of the true classes.
        output: tensor of at least one axis; floating: probabilities, which are limited to [epsilon(), 1 - epsilon()]
            and divided by their sum; logits if from_logits.
        from_logits: bool: whether `output` holds logits, to which softmax is applied. The logits of an `output` that is
            the result of softmax are taken anyway, without limits.
        axis: int: the axis of the classes; negative ones count from the end.
    Returns:
        Tensor of output's shape without the axis, in its dtype: one value per sample.
    Raises:
        TypeError: output is not floating, or `axis` is not an int.
        ValueError: the shapes do not fit, there is no such axis, or a tensor is sparse. When the step runs: a target is
            not a class.
    See: ops/nn/crossentropy.cc
    Example:
        >>> K.eval(K.sparse_categorical_crossentropy([1, 0], [[0.5, 0.5], [0.9, 0.1]])).round(3)
        array([0.693, 0.105], dtype=float32)
    """
    return _core.sparse_categorical_crossentropy(target, output, bool(from_logits), axis)


def binary_crossentropy(target: TensorLike, output: TensorLike, from_logits: bool = False) -> Tensor:
    """The cross-entropy of truth values: -(target * log(output) + (1 - target) * log(1 - output)), element by element.

    Args:
        target: tensor of output's shape and dtype: numbers from 0 to 1.
        output: tensor of any shape; floating: probabilities, which are limited to [epsilon(), 1 - epsilon()], and to
            whose logarithms' arguments epsilon is added, as Keras does; logits if from_logits.
        from_logits: bool: whether `output` holds logits, to which sigmoid is applied. The logits of an `output` that is
            the result of sigmoid are taken anyway, without limits.
    Returns:
        Tensor of output's shape and dtype.
    Raises:
        TypeError: the dtypes differ or are not floating.
        ValueError: the shapes do not broadcast, or a tensor is sparse.
    See: ops/nn/crossentropy.cc
    Example:
        >>> K.eval(K.binary_crossentropy([1., 0.], [2., 0.], from_logits=True)).round(3)
        array([0.127, 0.693], dtype=float32)
    """
    return _core.binary_crossentropy(target, output, bool(from_logits))


def in_top_k(predictions: TensorLike, targets: TensorLike, k: int) -> Tensor:
    """Whether the true class of each sample is among the k classes of largest prediction. Classes with the prediction of
    the k-th are included. False for a target that is not a class, and in a row with a prediction that is not finite.

    Args:
        predictions: tensor (samples, classes); floating.
        targets: tensor (samples,) of int32 or int64: the indices of the true classes.
        k: int: the number of classes.
    Returns:
        bool tensor (samples,).
    Raises:
        TypeError: predictions are not floating, targets not int32 or int64, or k is not an int.
        ValueError: the shapes do not fit, or a tensor is sparse.
    See: ops/nn/in_top_k.cc
    Example:
        >>> K.eval(K.in_top_k([[0.1, 0.5, 0.4], [0.6, 0.3, 0.1]], [2, 2], 2))
        array([ True, False])
    """
    return _core.in_top_k(predictions, targets, k)


def l2_normalize(x: TensorLike, axis: Axis = None) -> Tensor:
    """x / sqrt(max(sum(x * x), 1e-12)): vectors of length 1 along axes; zeros remain zeros.

    Args:
        x: tensor of any shape and floating dtype.
        axis: int, or a list of ints: the axes of the sum, negative ones counted from the end; None: all.
    Returns:
        Tensor of x's shape and dtype.
    Raises:
        TypeError: x is bool or an integer tensor (cast it first), or an axis is not an int.
        ValueError: x has no such axis, or is sparse.
    See: ops/nn/normalization.cc
    Example:
        >>> K.eval(K.l2_normalize([[3., 4.], [0., 0.]], axis=1)).round(3)
        array([[0.6, 0.8],
               [0. , 0. ]], dtype=float32)
    """
    return _core.l2_normalize(x, axis)


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    var: TensorLike,
    beta: Optional[TensorLike],
    gamma: Optional[TensorLike],
    axis: int = -1,
    epsilon: Parameter = 1e-3,
) -> Tensor:
    """Normalizes x with given statistics: (x - mean) / sqrt(var + epsilon) * gamma + beta.

    Args:
        x: tensor of at least one axis; floating.
        mean: tensor (n,) along `axis`, or one whose shape broadcasts with x's; x's dtype.
        var: tensor: the variance, of a shape allowed for mean; x's dtype.
        beta: tensor: the offset, of a shape allowed for mean, or None: 0; x's dtype.
        gamma: tensor: the scale, of a shape allowed for mean, or None: 1; x's dtype.
        axis: int: the axis of x that vectors belong to; negative ones count from the end.
        epsilon: float, or tensor, cast to x's dtype, whose shape broadcasts with x's: added to the variance.
    Returns:
        Tensor of the broadcast shape of all arguments, usually x's, and x's dtype.
    Raises:
        TypeError: the dtypes differ or are not floating, `axis` is not an int, or epsilon is not a number.
        ValueError: the shapes do not fit, x has no such axis, or a tensor is sparse.
    See: ops/nn/normalization.cc
    Example:
        >>> K.eval(K.batch_normalization([[1., 4.]], [0., 2.], [1., 4.], None, None, epsilon=0.)).round(3)
        array([[1., 1.]], dtype=float32)
    """
    return _core.batch_normalization(x, mean, var, beta, gamma, axis, epsilon)


def normalize_batch_in_training(
    x: TensorLike,
    gamma: Optional[TensorLike],
    beta: Optional[TensorLike],
    reduction_axes: Sequence[int],
    epsilon: float = 1e-3,
) -> Tuple[Tensor, Tensor, Tensor]:
    """Normalizes x with its own mean and variance, which are those of the whole batch on any number of ranks.

    Args:
        x: tensor of at least one axis; floating.
        gamma: tensor: the scale, of x's shape without the reduction axes, or None: 1; x's dtype.
        beta: tensor: the offset, of x's shape without the reduction axes, or None: 0; x's dtype.
        reduction_axes: list of ints: the axes over which the statistics are taken; at least one.
        epsilon: float: added to the variance before the square root.
    Returns:
        Tuple of three tensors of x's dtype: the normalized x, of x's shape; its mean and its variance (divided by n, not
        n - 1), of x's shape without the reduction axes.
    Raises:
        TypeError: the dtypes differ or are not floating, an axis is not an int, or epsilon is not a number.
        ValueError: the shapes do not fit, x has no such axis, reduction_axes is empty, or a tensor is sparse.
    See: ops/nn/normalization.cc
    Example:
        >>> y, mean, variance = K.normalize_batch_in_training([[1., 2.], [3., 6.]], None, None, [0])
        >>> K.eval(mean), K.eval(variance)
        (array([2., 4.], dtype=float32), array([1., 4.], dtype=float32))
    """
    return _core.normalize_batch_in_training(x, gamma, beta, reduction_axes, epsilon)
