"""Shared by the peers' step programs: arguments, timing, the line of JSON.

The networks, equal for all contenders (Syncline's are in benchmarks/networks.cc):
  mlp_small  dense 64-64-64-10, ReLU between; batch 32; SGD, rate 0.01
  mlp_wide   dense 1024-2048-2048-10, ReLU between; batch 32; SGD, rate 0.01
  mlp        dense 784-512-512-10, ReLU and dropout 0.2 after the first two; batch 128; Adam, rate 0.001
  cnn        28x28x1; conv 32 3x3, ReLU; conv 64 3x3, ReLU (no padding); max-pool 2; dropout 0.25; dense 128, ReLU;
             dense 10; batch 128; Adadelta, rate 1, rho 0.95
  lstm       embedding 20000x128 of 80 words, LSTM 128, dense 1 of its last output; batch 32; Adam, rate 0.001
  gru        GRU 256 (reset gate after the recurrent product) on 100 time steps of 64 features, dense 10 of its last output;
             batch 32; SGD, rate 0.01
  residual   32x32x3; conv 64 3x3, batch-norm, ReLU; three blocks of conv, batch-norm, ReLU, conv, batch-norm, sum,
             ReLU (64 channels, 3x3, same padding); global mean; dense 10; batch 32; SGD, rate 0.01, momentum 0.9
Loss: mean crossentropy of the softmax over 10 classes, for lstm of the sigmoid. A step is forward, backward and update on random data
in memory. No results are fetched; the program waits for an asynchronous contender once per chunk of steps.
"""

import argparse
import json
import resource
import statistics
import time

BATCH = {"mlp_small": 32, "mlp_wide": 32, "mlp": 128, "cnn": 128, "lstm": 32, "gru": 32, "residual": 32}
INPUT = {
    "mlp_small": (64,), "mlp_wide": (1024,), "mlp": (784,), "cnn": (28, 28, 1), "lstm": (80,), "gru": (100, 64), "residual": (32, 32, 3),
}  # fmt: skip
WORDS = 20000
CLASSES = {"lstm": 2}  # 10 for the others
CHUNKS = 20  # the median is taken over this many chunks of steps
WARM_UP = 0.3  # seconds: until then the kernel may not have moved new threads to cores of their own


def arguments(ranks=False, models=tuple(BATCH), more=None):
    """`more`: further options with argparse's settings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=sorted(models), required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--json", action="store_true", help="the only form of output; accepted for symmetry")
    if ranks:
        parser.add_argument("--ranks", type=int, default=2)
    for option, settings in (more or {}).items():
        parser.add_argument(option, **settings)
    args = parser.parse_args()
    args.libraries_mib = peak_mib()  # after the imports, before any computation
    return args


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def data(model):
    """(inputs, labels), equal for all peers: random float32 in [0, 1), for lstm random int32 words; int32 labels."""
    import numpy

    random = numpy.random.default_rng(1)
    shape = (BATCH[model], *INPUT[model])
    if model == "lstm":
        x = random.integers(0, WORDS, shape).astype(numpy.int32)
    else:
        x = random.random(shape, dtype=numpy.float32)
    return x, random.integers(0, CLASSES.get(model, 10), BATCH[model]).astype(numpy.int32)


def median_step_seconds(step, wait, steps, warm_up=WARM_UP):
    """Median time of a step. `wait` returns when all steps so far are done. Ranks must pass warm_up=0: they then run equally many steps."""
    chunk = max(1, steps // CHUNKS)
    begin, warm = time.perf_counter(), 0
    while warm < max(3, chunk) or time.perf_counter() - begin < warm_up:
        step()
        wait()
        warm += 1
    times = []
    for _ in range(max(3, steps // chunk)):
        start = time.perf_counter()
        for _ in range(chunk):
            step()
        wait()
        times.append((time.perf_counter() - start) / chunk)
    return statistics.median(times)


def report(args, seconds, version, ranks=1, **more):
    print(
        json.dumps(
            {
                "model": args.model,
                "threads": args.threads,
                "ranks": ranks,
                "batch": BATCH.get(args.model, 1),
                "step_ms": seconds * 1e3,
                "samples_per_s": ranks * BATCH.get(args.model, 1) / seconds,
                "peak_mib": peak_mib(),
                "libraries_mib": args.libraries_mib,
                "version": version,
                **more,
            }
        ),
        flush=True,
    )
