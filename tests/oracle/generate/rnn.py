"""Recurrence. tests/oracle/calls_rnn.cc has the same steps by the same names."""

import tensorflow as tf

from generate.oracle import array, case, real


def steps(K, weights):
    """Functions of one iteration, by name. `states` holds the states and then the constants."""

    def lstm(x, states):
        h, c = states
        z = K.dot(x, weights[0]) + K.dot(h, weights[1]) + weights[2]
        i, f, g, o = (z[:, k * h.shape[1]:(k + 1) * h.shape[1]] for k in range(4))
        c = K.sigmoid(f) * c + K.sigmoid(i) * K.tanh(g)
        h = K.sigmoid(o) * K.tanh(c)
        return h, [h, c]

    def simple(x, states):
        h = K.tanh(K.dot(x, weights[0]) + K.dot(states[0], weights[1]) + weights[2])
        return h, [h]

    def projected(x, states):
        h = K.tanh(K.dot(x, weights[0]) + K.dot(states[0], weights[1]))
        return K.dot(h, weights[2]), [h]

    return {"sum": lambda x, states: (x + states[0], [x + states[0]]),
            "two": lambda x, states: (x * states[1] + states[0], [states[1], x + states[0]]),
            "constants": lambda x, states: (x * states[1] + states[0] * states[2], [x * states[1] + states[0] * states[2]]),
            "stateless": lambda x, states: (K.square(x), []),
            "simple": simple, "lstm": lstm, "projected": projected}


def recurrence(K, x, mask, states, constants, weights, step, sizes, **options):
    length = x.shape[1]
    if step == "two":
        options["unroll"] = True  # the gradient of TensorFlow's loop is wrong if one state becomes another
    last, outputs, new_states = K.rnn(steps(K, weights)[step], x, states, mask=mask, constants=constants or None, **options)
    return [last, tf.ensure_shape(outputs, [x.shape[0], length, *last.shape[1:]]), *new_states]


def bits(*rows, dtype="bool"):
    return array(rows, dtype)


MASKS = [bits([1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 1, 1]), bits([0, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]),
         bits([1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0])]


def operands(kind, n, t, f, u, dtype):
    """Inputs, the kind's states, constants and weights."""
    x, draw = real(n, t, f, dtype=dtype), lambda *shape: real(*shape, dtype=dtype, low=-1, high=1)
    return {"sum": (x, [draw(n, f)], [], []), "two": (x, [draw(n, f), draw(n, f)], [], []),
            "constants": (x, [draw(n, f)], [draw(n, f), draw(f)], []), "stateless": (x, [], [], []),
            "simple": (x, [draw(n, u)], [], [draw(f, u), draw(u, u), draw(u)]),
            "projected": (x, [draw(n, u)], [], [draw(f, u), draw(u, u), draw(u, 2)]),
            "lstm": (x, [draw(n, u), draw(n, u)], [], [draw(f, 4 * u), draw(u, 4 * u), draw(4 * u)])}[kind]


def add(kind, mask=None, dtype="float32", n=3, t=4, f=2, u=4, label=None, **options):
    x, states, constants, weights = operands(kind, n, t, f, u, dtype)
    # The batch of inputs, mask and states may be unknown. The shapes of constants and weights are known.
    open_batch = list(range(2 + len(states)))
    case("rnn", [x, mask, states, constants, weights], label=label, call=recurrence, open_batch=open_batch,
         step=kind, sizes=[len(states), len(constants), len(weights)], **options)


KINDS = ("sum", "two", "constants", "simple", "projected", "lstm")
for kind in KINDS:
    for dtype in ("float32", "float64"):
        add(kind, dtype=dtype)
        add(kind, dtype=dtype, unroll=True)
        add(kind, dtype=dtype, go_backwards=True)
        for mask in MASKS:
            add(kind, mask, dtype=dtype)
        add(kind, MASKS[0], dtype=dtype, go_backwards=True)
        add(kind, MASKS[1], dtype=dtype, unroll=True)
    add(kind, MASKS[1], dtype="float64", unroll=True, go_backwards=True)
for options in ({}, dict(unroll=True), dict(go_backwards=True), dict(input_length=4)):
    add("stateless", **options)
    add("stateless", dtype="float64", **options)
for kind in ("simple", "lstm"):
    add(kind, bits([1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 1, 1])[..., None])
    add(kind, t=1)
    add(kind, t=1, unroll=True)
    add(kind, t=4, input_length=4, unroll=True)
    add(kind, n=1, t=7, dtype="float64")
