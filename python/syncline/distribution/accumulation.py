"""Gradient accumulation for Keras's optimizers."""

import operator

from syncline import _core


def accumulate_gradients(optimizer, steps):
    """Lets a Keras optimizer make one update of every `steps` batches, with the mean of their gradients: for batches of equal size what
    a batch `steps` times as large gives, with the memory of one. Under several ranks gradients cross the wire with the last of them only.

        model.compile(distributed.accumulate_gradients(keras.optimizers.Adam(), 4), "mse")

    The model's weights, and what the optimizer keeps and counts (`iterations`, hence a decay), change with every `steps`-th batch; losses,
    metrics and the statistics of BatchNormalization are those of each batch. Clipping acts on the mean. An epoch whose batches are no
    multiple of `steps` leaves the rest of them to the next epoch. What is saved of the optimizer is what it would save alone: save after
    an update, for what has been added up since the last one is not part of it; and load_model gives an optimizer that does not accumulate.

    # Arguments
        optimizer: an optimizer of Keras (or with its `get_updates(loss, params)`), before the model is trained with it.
        steps: how many batches.
    # Returns
        The same optimizer.
    # Raises
        TypeError: for what is no optimizer, as a name. ValueError: for less than one step; for an optimizer that accumulates already.
    """
    if not callable(getattr(optimizer, "get_updates", None)):
        raise TypeError(f"accumulate_gradients: {optimizer!r} is no optimizer; give one, as keras.optimizers.get({optimizer!r}) makes it")
    steps = operator.index(steps)
    if steps < 1:
        raise ValueError(f"accumulate_gradients: {steps} steps; give a positive number")
    if getattr(optimizer, "_accumulated_steps", None) is not None:
        raise ValueError(f"accumulate_gradients: the optimizer accumulates {optimizer._accumulated_steps} steps already; make a new one")
    optimizer._accumulated_steps = steps
    get_updates, set_weights = optimizer.get_updates, getattr(optimizer, "set_weights", None)
    accumulations = []

    def accumulating_get_updates(loss, params):
        accumulated = list({id(p): p for p in params}.values())  # a shared layer's weights may be there several times
        gradients = _core.gradients(loss, accumulated)
        if any(gradient is None for gradient in gradients):
            return get_updates(loss=loss, params=params)  # says what is wrong
        accumulation = _core.Accumulation(gradients, accumulated, steps)
        accumulations.append(accumulation)
        # The optimizer differentiates this instead, wherever it does so: the derivatives are the totals.
        products = [p * _core.stop_gradient(total) for p, total in zip(accumulated, accumulation.totals())]
        stand_in = sum(_core.cast(_core.sum(product, None, False), loss.dtype) for product in products)
        optimizer.updates = accumulation.updates(get_updates(loss=stand_in, params=params))
        return optimizer.updates

    def anew_set_weights(weights):
        set_weights(weights)
        for accumulation in accumulations:
            accumulation.begin_anew()

    optimizer.get_updates = accumulating_get_updates
    if set_weights is not None:
        optimizer.set_weights = anew_set_weights
    return optimizer
