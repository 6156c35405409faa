"""Compares a call with its model: the result's shape while the graph is built and after the run, the gradients' shapes, and
the calls that are rejected."""

import re

import numpy as np

from calls import Built, Operand, Size, replaced

PLAIN = (ValueError, TypeError, IndexError, OverflowError, NotImplementedError)


class Later(ValueError):
    """Raised by a model for errors that depend on values: the backend rejects the call when the step runs."""


class RefusedIfKnown(ValueError):
    """Raised by a model for shapes that are rejected if they are known. If they are fed, the result may have `shape`."""

    def __init__(self, shape):
        super().__init__(f"{shape} once it is fed")
        self.shape = shape


class Outcome:
    """The result of a model for a call with given shapes of the operands: the results' shapes, or the error."""

    def __init__(self, model, call, shapes):
        remaining = iter(shapes)
        self.shapes, self.refusal = None, None

        def leaf(leaf):
            if isinstance(leaf, Operand):
                return np.zeros(next(remaining), leaf.dtype)
            return leaf.number if isinstance(leaf, Size) else leaf.numbers

        try:
            result = model(*replaced(call.arguments, leaf))
        except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
            self.refusal = error
            return
        results = result if isinstance(result, list) else [result]
        self.shapes = [tuple(getattr(one, "shape", one)) for one in results]

    def __str__(self):
        return f"refused ({self.refusal})" if self.refusal else str(self.shapes)


def agree(known, shape):
    return len(known) == len(shape) and all(a is None or a == b for a, b in zip(known, shape))


def fault_of(error):
    """The defect of an error; None if it is a plain error that states shapes or numbers."""
    text = str(error)
    if not isinstance(error, PLAIN) or "internal" in text or "report this" in text:
        return f"no plain error: {type(error).__name__}: {text}"
    return None if re.search(r"[\d?]|\(\)|scalar|no tensors|unknown", text) else f"an error without shapes: {text}"


def check(K, model, call):
    """The findings as texts, and whether the model accepts the call with its first shapes."""
    instances = [call.shapes(), *call.others]
    wanted = [Outcome(model, call, shapes) for shapes in instances]
    accepted = wanted[0].refusal is None
    try:
        built = Built(K, call)
        known = [K.int_shape(y) for y in built.outputs]
    except Exception as error:
        return refused_while_built(error, wanted, instances), accepted
    if call.is_known() and wanted[0].refusal and not isinstance(wanted[0].refusal, Later):
        return [f"gave {known} instead of an error ({wanted[0].refusal})"], accepted
    found = [
        f"is said to be {known} instead of {outcome} for {shapes}"
        for outcome, shapes in zip(wanted, instances)
        if outcome.shapes and not all_agree(known, outcome.shapes, call.is_known())
    ]
    return found or run(K, built, call.gradient and accepted, instances, wanted), accepted


def all_agree(known, shapes, exactly):
    return len(known) == len(shapes) and all(
        agree(a, b) and not (exactly and None in a) for a, b in zip(known, shapes)
    )


def refused_while_built(error, wanted, instances):
    fault = fault_of(error)
    found = [fault] if fault else []
    return found + [
        f"was refused instead of giving {outcome} for {shapes}: {type(error).__name__}: {error}"
        for outcome, shapes in zip(wanted, instances)
        if outcome.shapes
    ]


def run(K, built, with_gradients, instances, wanted):
    """The findings of a graph's runs: shapes of values and gradients, and errors."""
    found = []
    try:
        gradients = built.gradients() if with_gradients else []
        step = K.function(built.inputs, built.outputs + [dx for _, dx in gradients])
    except Exception as error:
        return [f"cannot become a function: {type(error).__name__}: {error}"]
    for outcome, shapes in zip(wanted, instances):
        try:
            values = [np.shape(value) for value in step(built.feeds(shapes))]
        except Exception as error:
            if outcome.shapes:
                found.append(f"failed instead of giving {outcome} for {shapes}: {type(error).__name__}: {error}")
            elif fault_of(error):
                found.append(f"{fault_of(error)}, for {shapes}")
            continue
        expected = outcome.shapes or [getattr(outcome.refusal, "shape", None)]
        results = len(built.outputs)
        if values[:results] != expected:
            found.append(f"gave {values[:results]} instead of {outcome} for {shapes}")
        if values[:results] != expected or outcome.refusal:
            continue
        for (operand, dx), shape in zip(gradients, values[results:]):
            if shape != tuple(shapes[operand]) or not agree(K.int_shape(dx), shape):
                found.append(f"has a gradient {K.int_shape(dx)}, run {shape}, for operand {operand} of {shapes}")
    return found
