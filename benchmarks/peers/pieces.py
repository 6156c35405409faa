"""Times single functions in PyTorch (eager), TensorFlow (tf.function) or JAX (jit), the same as benchmarks/piece_bench.cc:
pieces.py --framework F --model M --threads T --steps N --json."""

import argparse
import json
import os
import statistics
import sys
import time

LAYER = (4096, 1024)
INPUTS = {  # the last one of gather: indices
    "softmax": [LAYER], "row_means": [LAYER], "column_sums": [LAYER], "row_maxima": [LAYER], "gelu": [LAYER],
    "gather": [(20000, 128), (128, 80)], "transpose": [(2048, 2048)], "channels_first": [(32, 56, 56, 64)],
}  # fmt: skip


def torch_pieces(args):
    import torch

    torch.set_num_threads(args.threads)
    torch.set_num_interop_threads(1)
    functions = {
        "softmax": lambda x: torch.softmax(x, -1),
        "row_means": lambda x: x.mean(-1),
        "column_sums": lambda x: x.sum(0),
        "row_maxima": lambda x: x.amax(-1),
        "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        "gather": lambda table, i: torch.nn.functional.embedding(i, table),
        "transpose": lambda x: x.t().contiguous(),
        "channels_first": lambda x: x.permute(0, 3, 1, 2).contiguous(),
    }
    return functions[args.model], torch.from_numpy, lambda y: None, f"PyTorch {torch.__version__}"


def tensorflow_pieces(args):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    functions = {
        "softmax": tf.nn.softmax,
        "row_means": lambda x: tf.reduce_mean(x, -1),
        "column_sums": lambda x: tf.reduce_sum(x, 0),
        "row_maxima": lambda x: tf.reduce_max(x, -1),
        "gelu": lambda x: tf.nn.gelu(x, approximate=True),
        "gather": lambda table, i: tf.gather(table, i),
        "transpose": tf.transpose,
        "channels_first": lambda x: tf.transpose(x, [0, 3, 1, 2]),
    }
    return tf.function(functions[args.model]), tf.constant, lambda y: None, f"TensorFlow {tf.__version__}"


def jax_pieces(args):
    if args.threads == 1:  # see jax_step.py
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    import jax
    import jax.numpy as jnp

    functions = {
        "softmax": lambda x: jax.nn.softmax(x, -1),
        "row_means": lambda x: jnp.mean(x, -1),
        "column_sums": lambda x: jnp.sum(x, 0),
        "row_maxima": lambda x: jnp.max(x, -1),
        "gelu": lambda x: jax.nn.gelu(x, approximate=True),
        "gather": lambda table, i: table[i],
        "transpose": jnp.transpose,
        "channels_first": lambda x: jnp.transpose(x, (0, 3, 1, 2)),
    }
    return jax.jit(functions[args.model]), jnp.asarray, jax.block_until_ready, f"JAX {jax.__version__}"


def main():
    frameworks = {"torch": torch_pieces, "tensorflow": tensorflow_pieces, "jax": jax_pieces}
    parser = argparse.ArgumentParser()
    parser.add_argument("--framework", choices=sorted(frameworks), required=True)
    parser.add_argument("--model", choices=sorted(INPUTS), required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--json", action="store_true", help="the only form of output; accepted for symmetry")
    args = parser.parse_args()
    function, convert, wait, version = frameworks[args.framework](args)
    import numpy

    random = numpy.random.default_rng(1)
    shapes = INPUTS[args.model]
    inputs = [convert(random.random(shapes[0], dtype=numpy.float32))]
    if len(shapes) > 1:
        inputs.append(convert(random.integers(0, shapes[0][0], shapes[1]).astype(numpy.int32)))
    times = []
    for i in range(args.steps + 5):
        start = time.perf_counter()
        wait(function(*inputs))
        times.append(time.perf_counter() - start)
    report = {"model": args.model, "threads": args.threads, "step_ms": statistics.median(times[5:]) * 1e3}
    print(json.dumps(report | {"version": version}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
