"""Gradient accumulation for Keras's optimizers."""

import operator

from syncline import _core
from syncline.types import Any


def accumulate_gradients(optimizer: Any, steps: int):
    """Lets a Keras optimizer make one update for every `steps` batches, with the mean of their gradients. For batches of equal size the
    update equals that of one batch `steps` times as large, with the memory of one batch. Several ranks transfer gradients only with the
    last of the `steps` batches.

        model.compile(distributed.accumulate_gradients(keras.optimizers.Adam(), 4), "mse")

    The model's weights and the optimizer's state (`iterations` and learning-rate decay too) change with every `steps`-th batch. Losses,
    metrics and the statistics of BatchNormalization are those of each batch. Clipping acts on the mean. If the number of batches in an
    epoch is not a multiple of `steps`, the last sums continue in the next epoch. A model that Keras saves does not contain the sums since
    the last update, and load_model returns an optimizer that does not accumulate. The checkpoints of syncline.jobs have both.

    Args:
        optimizer: Keras optimizer (or any object with `get_updates(loss, params)`) that has not trained a model yet.
        steps: number of batches per update.
    Returns:
        The same optimizer.
    Raises:
        TypeError: optimizer is not an optimizer, for example a name. ValueError: steps is below 1; the optimizer accumulates already.
    """
    if not callable(getattr(optimizer, "get_updates", None)):
        raise TypeError(f"accumulate_gradients: {optimizer!r} is not an optimizer; give the result of keras.optimizers.get({optimizer!r})")
    steps = operator.index(steps)
    if steps < 1:
        raise ValueError(f"accumulate_gradients: steps is {steps}; give at least 1")
    if getattr(optimizer, "_accumulated_steps", None) is not None:
        raise ValueError(f"accumulate_gradients: the optimizer already accumulates {optimizer._accumulated_steps} steps; give a new one")
    optimizer._accumulated_steps, optimizer._accumulations = steps, []
    get_updates, set_weights = optimizer.get_updates, getattr(optimizer, "set_weights", None)

    def accumulating_get_updates(loss, params):
        accumulated = list({id(p): p for p in params}.values())  # the weights of a shared layer may occur several times
        gradients = _core.gradients(loss, accumulated)
        if any(gradient is None for gradient in gradients):
            return get_updates(loss=loss, params=params)  # raises Keras's error about the missing gradient
        accumulation = _core.Accumulation(gradients, accumulated, steps)
        optimizer._accumulations.append(accumulation)
        # The optimizer differentiates this sum instead of the loss; its derivatives are the accumulated gradients.
        products = [p * _core.stop_gradient(total) for p, total in zip(accumulated, accumulation.totals())]
        stand_in = sum(_core.cast(_core.sum(product, None, False), loss.dtype) for product in products)
        optimizer.updates = accumulation.updates(get_updates(loss=stand_in, params=params))
        return optimizer.updates

    def anew_set_weights(weights):
        set_weights(weights)
        for accumulation in optimizer._accumulations:
            accumulation.begin_anew()

    optimizer.get_updates = accumulating_get_updates
    if set_weights is not None:
        optimizer.set_weights = anew_set_weights
    return optimizer
