"""Trains on different numbers of ranks, threads, layouts of ranks and settings, with parts of the batch, and requires equal text.

usage: exact.py --build FOLDER --keras-examples FOLDER [--sample] [--only REGEX] [--ranks N ...]

Each training of TRAININGS runs once on one rank, and then in each way. Equal must be: the digests of variables and optimizer, histories,
losses, metrics and predictions with all digits (record.py), for the C++ example its digest and its epochs' losses. --sample: fewer steps,
and for each training a few ways; together the trainings have each pair of settings. Fails if a run fails or differs.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PARTS = 8
LIMIT = 900  # seconds, for each run

# How a job runs. layout: of tests/mpi/launch. share_from: the smallest variable that the ranks of a node share and update by rows.
Way = namedtuple("Way", "ranks threads layout share_from")
SETTINGS = Way((1, 2, 3, 4, 8), (1, 2), ("one_node", "by_node", "by_slot", "messages"), ("64KiB", "1", "1024GiB"))
FIRST = Way(1, 1, "one_node", "64KiB")

# commands(steps, folder, ranks): the programs of a training, which run in turn, each with a number of ranks that a function of the way's
# gives. Files of one run stand in `folder`; those of all runs of the training beside it.
Training = namedtuple("Training", "name steps few_steps legs")


class Different(Exception):
    """A run that failed or whose result differs."""


def script(path, *arguments):
    return lambda steps, folder, leg: [path, *(str(each(steps, folder, leg)) if callable(each) else each for each in arguments)]


def example(name, batch, *more, epochs=2):
    """One of our examples. Its last batch of an epoch has five rows."""
    samples = lambda steps, folder, leg: max(steps // epochs - 1, 1) * batch + 5  # noqa: E731
    path = os.path.join(ROOT, "examples", name + ".py")
    return script(path, "--verbose", "0", "--batch-size", str(batch), "--samples", samples, "--epochs", str(epochs), *more)


def resumed(name, batch):
    """An example of four epochs, of which each is a job of its own, on another number of ranks."""
    checkpoint = ["--resume", "--checkpoint", lambda steps, folder, leg: os.path.join(folder, "checkpoint")]
    return [example(name, batch, *checkpoint, "--epochs", str(epoch + 1), epochs=4) for epoch in range(4)]


def keras_example(name):
    def command(steps, folder, leg):
        batches = os.path.join(os.path.dirname(folder), "batches")  # of generators, whose threads have no order
        run = os.path.join(ROOT, "tests", "keras", "run_example.py")
        path = os.path.join(os.environ["KERAS_EXAMPLES"], name + ".py")
        return [run, path, os.path.join(folder, "histories.json"), batches, "--steps", str(steps)]

    return command


def network(name, *arguments):
    return script(os.path.join(HERE, "network.py"), name, lambda steps, folder, leg: steps, *arguments)


def fashion_mnist(model, *arguments, share=1.0):
    """The C++ example, until the given share of the steps."""
    until = lambda steps, folder, leg: max(1, int(steps * share))  # noqa: E731
    options = ["--model", model, "--samples", "1285", "--epochs", "20", "--seed", "3", "--parts", str(PARTS), "--digest"]
    return script("fashion_mnist", *options, "--max-steps", until, *arguments)


def stopped(model):
    """The C++ example, stopped three times, also within an epoch, and continued by another number of ranks, which write shards."""
    checkpoint = ["--resume", "--checkpoint", lambda steps, folder, leg: os.path.join(folder, "checkpoint")]
    shards = ["--shards", lambda steps, folder, leg: min(2, leg)]
    return [fashion_mnist(model, *checkpoint, *shards, share=share) for share in (0.3, 0.55, 0.8, 1)]


TRAININGS = [
    Training("fashion_mnist mlp", 100, 12, [fashion_mnist("mlp")]),
    Training("fashion_mnist cnn", 100, 6, [fashion_mnist("cnn", "--batch", "37")]),
    Training("fashion_mnist stopped", 100, 12, stopped("mlp")),
    Training("fashion_mnist_cnn.py", 100, 6, [example("fashion_mnist_cnn", 64)]),
    Training("residual.py", 100, 4, [example("residual", 32)]),
    Training("residual.py resumed", 100, 8, resumed("residual", 32)),
    Training("text_lstm.py", 100, 6, [example("text_lstm", 64)]),
    Training("ctc_lines.py", 100, 4, [example("ctc_lines", 16)]),
    Training("variational_autoencoder.py", 100, 8, [example("variational_autoencoder", 64)]),
    Training("transformer", 100, 3, [network("transformer", "16", "5")]),
    Training("densenet121", 20, 1, [network("densenet121")]),
    Training("bilstm accumulated", 100, 6, [network("bilstm", "32", "7", "--clipnorm", "--accumulate", "3")]),
    *(
        Training(name, 100, 6, [keras_example(name)])
        for name in (
            "mnist_mlp", "mnist_cnn", "mnist_net2net", "mnist_siamese", "mnist_swwae", "cifar10_resnet", "imdb_bidirectional_lstm",
        )  # fmt: skip
    ),
]


def all_ways():
    """Every combination; one rank has no layout, and shares nothing."""
    several = [Way(*way) for way in itertools.product(*SETTINGS) if way[0] > 1]
    return [FIRST._replace(threads=threads) for threads in SETTINGS.threads[1:]] + several


def pairs(way):
    return set(itertools.combinations(enumerate(way), 2))


def few_ways():
    """Ways that together have each pair of settings, greedily chosen."""
    left, chosen = set().union(*map(pairs, all_ways())), []
    while left:
        chosen.append(max(all_ways(), key=lambda way: len(pairs(way) & left)))
        left -= pairs(chosen[-1])
    return chosen


def rank_counts(way, legs):
    """The number of ranks of each leg: the way's for the only one or the last one, before it others."""
    counts = SETTINGS.ranks
    first = counts.index(way.ranks)
    return [way.ranks] if legs == 1 else [counts[(first + leg) % len(counts)] for leg in range(1, legs)] + [way.ranks]


def launch(way, ranks, command, folder, build, home):
    """Runs the command as a job. Returns its output."""
    settings = {
        "KERAS_BACKEND": "syncline", "KERAS_HOME": home, "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([os.path.join(build, "python"), os.path.join(ROOT, "tests", "keras")]),
        "SYNCLINE_PARTS": str(PARTS), "SYNCLINE_SHARE_FROM": way.share_from,
    }  # fmt: skip
    job = [os.path.join(ROOT, "tests", "mpi", "launch"), way.layout, str(ranks), *command]
    try:
        done = subprocess.run(
            job, cwd=folder, env={**os.environ, **settings}, timeout=LIMIT, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        raise Different(f"ran longer than {LIMIT} s") from None
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().split("\n")
        said = [line for line in lines if "Error" in line or "rror:" in line] or lines
        raise Different(f"exit status {done.returncode}: {said[-1][:200]}")
    return done.stdout


def run_leg(training, leg, steps, way, ranks, folder, build, home):
    """Returns the lines of a result."""
    program, *arguments = training.legs[leg](steps, folder, ranks)
    if program == "fashion_mnist":
        command = [os.path.join(build, "examples", program), *arguments, "--threads", str(way.threads)]
        said = launch(way, ranks, command, folder, build, home).split("\n")
        digests = {re.sub(r"^rank \d+ ", "", line) for line in said if re.match(r"rank \d+ digest", line)}
        return sorted(digests) + [re.sub(r"  \S+ samples/s.*", "", line) for line in said if "loss" in line]
    record = os.path.join(folder, f"record-{leg}")
    command = [sys.executable, "-W", "ignore", os.path.join(HERE, "record.py"), record, str(way.threads), program, *arguments]
    launch(way, ranks, command, folder, build, home)
    with open(record, encoding="utf-8") as file:
        return file.read().splitlines()


def run(training, steps, way, work, build, home):
    """Returns (lines of the result, seconds)."""
    begin = time.monotonic()
    counts = rank_counts(way, len(training.legs)) if way.ranks > 1 else [1] * len(training.legs)
    lines = []
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for leg, ranks in enumerate(counts):
            lines += run_leg(training, leg, steps, way, ranks, folder, build, home)
    if not lines:
        raise Different("recorded nothing")
    return lines, time.monotonic() - begin


def compare(first, lines):
    for a, b in itertools.zip_longest(first, lines, fillvalue="nothing"):
        if a != b:
            raise Different(f"differs\n    one rank: {a[:300]}\n    here:     {b[:300]}")


def check(training, steps, ways, build, home):
    """Runs a training in all ways and prints a line for each. Returns the number of runs that fail or differ."""
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="exact-") as work:
        first = None
        for way in [FIRST, *ways]:
            try:
                lines, seconds = run(training, steps, way, work, build, home)
                first = first or lines
                compare(first, lines)
                mark, result = "=", f"{seconds:6.1f} s"
            except Different as problem:
                mark, result, wrong = "!", str(problem), wrong + 1
            named = " ".join(f"{name} {value}" for name, value in zip(Way._fields, way))
            print(f"{mark} {training.name:28} {named:60} {result}", flush=True)
            if first is None:
                break
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, help="folder of a build with the Python module and the examples")
    parser.add_argument("--keras-examples", required=True, help="folder of Keras 2.3.1's examples")
    parser.add_argument("--sample", action="store_true", help="fewer steps and ways")
    parser.add_argument("--only", default="", help="only trainings whose name matches")
    parser.add_argument("--ranks", type=int, nargs="+", default=SETTINGS.ranks, help="only these numbers of ranks")
    args = parser.parse_args()
    os.environ["KERAS_EXAMPLES"] = os.path.abspath(args.keras_examples)
    trainings = [training for training in TRAININGS if re.search(args.only, training.name)]
    if not trainings:
        sys.exit(f"exact.py: no training's name matches {args.only!r}: {', '.join(training.name for training in TRAININGS)}")
    ways = [way for way in (few_ways() if args.sample else all_ways()) if way.ranks in args.ranks]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="exact-") as home:
        with open(os.path.join(home, "keras.json"), "w", encoding="utf-8") as file:
            file.write('{"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}')
        for number, training in enumerate(trainings):
            own = ways[number :: len(trainings)] if args.sample else ways
            wrong += check(training, training.few_steps if args.sample else training.steps, own, os.path.abspath(args.build), home)
    print(f"exact: {len(trainings)} trainings, {wrong} runs fail or differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
