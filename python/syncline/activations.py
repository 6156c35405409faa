"""Activations, losses and normalization. Tensors are floating where nothing else is said."""

from __future__ import annotations

from syncline import _core
from syncline.types import Axis, Optional, Parameter, Sequence, Tensor, TensorLike, Tuple


def relu(
    x: TensorLike, alpha: Parameter = 0.0, max_value: Optional[Parameter] = None, threshold: Parameter = 0.0
) -> Tensor:
    """max_value for x >= max_value, x for threshold < x < max_value, alpha * (x - threshold) otherwise."""
    return _core.relu(x, alpha, max_value, threshold)


def elu(x: TensorLike, alpha: Parameter = 1.0) -> Tensor:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere."""
    return _core.elu(x, alpha)


def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis, safe for large x."""
    return _core.softmax(x, axis)


def softplus(x: TensorLike) -> Tensor:
    """log(1 + exp(x))."""
    return _core.softplus(x)


def softsign(x: TensorLike) -> Tensor:
    """x / (1 + |x|)."""
    return _core.softsign(x)


def sigmoid(x: TensorLike) -> Tensor:
    """1 / (1 + exp(-x))."""
    return _core.sigmoid(x)


def hard_sigmoid(x: TensorLike) -> Tensor:
    """0.2 * x + 0.5, limited to [0, 1]."""
    return _core.hard_sigmoid(x)


def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent."""
    return _core.tanh(x)


def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """-sum(target * log(output)) along the axis of the classes: one value a sample.

    # Arguments
        target: probabilities of output's shape.
        output: probabilities, which are made to sum to 1; logits if from_logits.
    """
    return _core.categorical_crossentropy(target, output, from_logits, axis)


def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """The same for class numbers. target: any dtype, of output's shape without `axis` or with 1 there. A number that
    is no class raises ValueError when the step runs."""
    return _core.sparse_categorical_crossentropy(target, output, from_logits, axis)


def binary_crossentropy(target: TensorLike, output: TensorLike, from_logits: bool = False) -> Tensor:
    """-(target * log(output) + (1 - target) * log(1 - output)), element by element. output: probabilities, or logits if
    from_logits."""
    return _core.binary_crossentropy(target, output, from_logits)


def in_top_k(predictions: TensorLike, targets: TensorLike, k: int) -> Tensor:
    """bool (samples): is predictions[i, targets[i]] among the k largest of its row? targets: int32 or int64."""
    return _core.in_top_k(predictions, targets, k)


def l2_normalize(x: TensorLike, axis: Axis = None) -> Tensor:
    """x / sqrt(max(sum(x * x), 1e-12)), the sum along an axis, several, or all."""
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
    """(x - mean) / sqrt(var + epsilon) * gamma + beta. The four are vectors along `axis`, or broadcast to x; beta and
    gamma may be None."""
    return _core.batch_normalization(x, mean, var, beta, gamma, axis, epsilon)


def normalize_batch_in_training(
    x: TensorLike,
    gamma: Optional[TensorLike],
    beta: Optional[TensorLike],
    reduction_axes: Sequence[int],
    epsilon: float = 1e-3,
) -> Tuple[Tensor, Tensor, Tensor]:
    """x normalized with the statistics of the whole batch, on however many ranks it lies.

    # Returns
        A tuple: the normalized x, its mean and its variance (of x's shape without the reduction axes).
    """
    return _core.normalize_batch_in_training(x, gamma, beta, reduction_axes, float(epsilon))
