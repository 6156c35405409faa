"""Times a training step in JAX, jit-compiled with donated parameters: jax_step.py --model M --threads T --steps N --json."""

import os
import sys

# XLA derives its number of threads from the process's cores; only this flag together with one core limits it to one thread.
if "--threads" in sys.argv and sys.argv[sys.argv.index("--threads") + 1] == "1":
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

import measure  # noqa: E402

SHAPES = {
    "mlp_small": [(64, 64), (64, 64), (64, 10)],
    "mlp": [(784, 512), (512, 512), (512, 10)],
    "cnn": [(3, 3, 1, 32), (3, 3, 32, 64), (9216, 128), (128, 10)],
    "lstm": [(measure.WORDS, 128), (128, 512), (128, 512), (128, 1)],
    "gru": [(64, 768), (256, 768), (256, 10)],
    "residual": [(3, 3, 3, 64), *[(3, 3, 64, 64)] * 6, (64, 10)],
}


def parameters(model, key):
    """(kernel, bias) of each layer: Glorot's uniform distribution, zeros."""
    result = []
    for shape, k in zip(SHAPES[model], jax.random.split(key, len(SHAPES[model]))):
        area = 1
        for n in shape[:-2]:
            area *= n
        limit = (6 / (area * (shape[-2] + shape[-1]))) ** 0.5
        result.append((jax.random.uniform(k, shape, minval=-limit, maxval=limit), jnp.zeros(shape[-1])))
    return result


def dropout(x, rate, key):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def lstm(layers, x):
    (table, _), (kernel, bias), (recurrent, _), (w, b) = layers

    def step(state, z):
        h, c = state
        i, f, g, o = jnp.split(z + h @ recurrent, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    z = jnp.swapaxes(table[x] @ kernel + bias, 0, 1)
    start = jnp.zeros((x.shape[0], 128))
    (h, _), _ = lax.scan(step, (start, start), z)
    return h @ w + b


def gru(layers, x):
    (kernel, input_bias), (recurrent, recurrent_bias), (w, b) = layers

    def step(h, z):
        update, reset, candidate = jnp.split(z, 3, axis=1)
        own_update, own_reset, own_candidate = jnp.split(h @ recurrent + recurrent_bias, 3, axis=1)
        update = jax.nn.sigmoid(update + own_update)
        candidate = jnp.tanh(candidate + jax.nn.sigmoid(reset + own_reset) * own_candidate)
        return update * h + (1 - update) * candidate, None

    z = jnp.swapaxes(x @ kernel + input_bias, 0, 1)
    h, _ = lax.scan(step, jnp.zeros((x.shape[0], 256)), z)
    return h @ w + b


def residual(layers, x):
    def normalized_conv(x, w, scale):
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        mean, var = jnp.mean(y, (0, 1, 2)), jnp.var(y, (0, 1, 2))
        return (y - mean) * lax.rsqrt(var + 1e-3) * (1 + scale)

    *convs, (w, b) = layers
    y = jax.nn.relu(normalized_conv(x, *convs[0]))
    for (w1, s1), (w2, s2) in zip(convs[1::2], convs[2::2]):
        y = jax.nn.relu(normalized_conv(jax.nn.relu(normalized_conv(y, w1, s1)), w2, s2) + y)
    return jnp.mean(y, (1, 2)) @ w + b


def logits(model, layers, x, key):
    if model in ("lstm", "gru", "residual"):
        return {"lstm": lstm, "gru": gru, "residual": residual}[model](layers, x)
    keys = jax.random.split(key)
    if model == "cnn":
        for w, b in layers[:2]:
            x = lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x + b)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = dropout(x, 0.25, keys[0]).reshape(x.shape[0], -1)
        layers = layers[2:]
    for i, (w, b) in enumerate(layers[:-1]):
        x = jax.nn.relu(x @ w + b)
        if model == "mlp":
            x = dropout(x, 0.2, keys[i])
    w, b = layers[-1]
    return x @ w + b


def sgd(p, g, state, _):
    return p - 0.01 * g, state


def momentum(p, g, state, _):
    m = 0.9 * state[0] - 0.01 * g
    return p + m, (m, state[1])


def adam(p, g, state, t):
    m, v = 0.9 * state[0] + 0.1 * g, 0.999 * state[1] + 0.001 * g * g
    rate = 0.001 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    return p - rate * m / (jnp.sqrt(v) + 1e-7), (m, v)


def adadelta(p, g, state, _):
    a = 0.95 * state[0] + 0.05 * g * g
    d = g * jnp.sqrt(state[1] + 1e-7) / jnp.sqrt(a + 1e-7)
    return p - d, (a, 0.95 * state[1] + 0.05 * d * d)


def make_step(model, x, labels):
    rule = {"mlp_small": sgd, "gru": sgd, "residual": momentum, "cnn": adadelta}.get(model, adam)

    def loss_of(layers, key):
        y = logits(model, layers, x, key)
        if model == "lstm":
            return jnp.mean(jax.nn.softplus(y[:, 0]) - labels * y[:, 0])
        chosen = jax.nn.log_softmax(y)
        return -jnp.mean(jnp.take_along_axis(chosen, labels[:, None], 1))

    def step(values, states, key, t):
        key, now = jax.random.split(key)
        gradients = jax.grad(loss_of)(values, now)
        leaves, tree = jax.tree.flatten(values)
        pairs = [rule(p, g, s, t) for p, g, s in zip(leaves, jax.tree.leaves(gradients), states)]
        return jax.tree.unflatten(tree, [p for p, _ in pairs]), [s for _, s in pairs], key, t + 1

    return jax.jit(step, donate_argnums=(0, 1, 2, 3))


def main():
    args = measure.arguments()
    x, labels = (jnp.asarray(a) for a in measure.data(args.model))
    values = parameters(args.model, jax.random.key(1))
    states = [(jnp.zeros_like(p), jnp.zeros_like(p)) for p in jax.tree.leaves(values)]
    compiled = make_step(args.model, x, labels)
    state = (values, states, jax.random.key(2), jnp.float32(1))

    def step():
        nonlocal state
        state = compiled(*state)

    seconds = measure.median_step_seconds(step, lambda: jax.block_until_ready(state), args.steps)
    measure.report(args, seconds, f"JAX {jax.__version__}")


if __name__ == "__main__":
    main()
