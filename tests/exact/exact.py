"""Trains on different numbers of ranks, threads, layouts of ranks and settings, with parts of the batch, and requires equal text.

usage: exact.py --build FOLDER --keras-examples FOLDER [--sample] [--only REGEX] [--ranks N ...]

Each training of TRAININGS runs once on one rank, and then in each way. Equal must be: the digests of variables and optimizer, histories,
losses, metrics and predictions with all digits (record.py), for the C++ example its digest and its epochs' losses. --sample: the short
trainings, fewer steps, and for each a way or two; together they have each pair of settings. Fails if a run fails or differs.
"""

import argparse
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PARTS = 8
LIMIT, SAMPLE_LIMIT = 900, 150  # seconds, for each job

# How a job runs. layout: of tests/mpi/launch. variables: which the ranks of a node share and update by rows; with "split", an optimizer's
# slots have their rows on one node each.
Way = namedtuple("Way", "ranks threads layout variables")
SHARE_FROM = {"large shared": "64KiB", "all shared": "1", "own": "1024GiB", "split": "1"}
SETTINGS = Way((1, 2, 3, 4, 8), (1, 2), ("one_node", "by_node", "by_slot", "messages"), tuple(SHARE_FROM))
FIRST = Way(1, 1, "one_node", "large shared")

# legs: the jobs of a training, one after the other: functions from a Leg to a program with its arguments. few_steps: of the sample; 0: the
# training is not in it. killed, signalled: each leg but the last one ends because a rank is killed, or by a signal. All ways of a training
# that is signalled are compared with an unbroken one.
Training = namedtuple("Training", "name steps few_steps legs killed signalled", defaults=[False, False])

# steps: of all legs together. folder: for the run's files; the folder above it is for those of all runs of the training.
Leg = namedtuple("Leg", "steps folder ranks")


# home: the folder of keras.json. limit: seconds for each job.
Setup = namedtuple("Setup", "build home limit")


class Different(Exception):
    """A run that failed or whose result differs."""


def example(name, batch, epochs=2, last=None, checkpoint=False):
    """One of our examples until the epoch `last`. The last batch of an epoch has five rows."""

    def command(leg):
        samples = max(leg.steps // epochs - 1, 1) * batch + 5
        sizes = ["--batch-size", str(batch), "--samples", str(samples), "--epochs", str(last or epochs)]
        return [os.path.join(ROOT, "examples", name + ".py"), "--verbose", "0", *sizes, *checkpoints(leg, checkpoint)]

    return command


def checkpoints(leg, wanted):
    return ["--resume", "--checkpoint", os.path.join(leg.folder, "checkpoint")] if wanted else []


def keras_example(name):
    def command(leg):
        batches = os.path.join(os.path.dirname(leg.folder), "batches")  # of generators, whose threads have no order
        run = os.path.join(ROOT, "tests", "keras", "run_example.py")
        path = os.path.join(os.environ["KERAS_EXAMPLES"], name + ".py")
        return [run, path, os.path.join(leg.folder, "histories.json"), batches, "--steps", str(leg.steps)]

    return command


def network(name, *arguments):
    return lambda leg: [os.path.join(HERE, "network.py"), name, str(leg.steps), *arguments]


def fashion_mnist(model, *arguments, share=1.0, checkpoint=False):
    """The C++ example until this share of the steps. Two of the ranks write shards."""

    def command(leg):
        options = ["--model", model, "--samples", "1285", "--epochs", "20", "--parts", str(PARTS), "--digest"]
        shards = ["--shards", str(min(2, leg.ranks))] if checkpoint else []
        return ["fashion_mnist", *options, "--max-steps", str(int(leg.steps * share)), *arguments, *checkpoints(leg, checkpoint), *shards]

    return command


TRAININGS = [
    Training("fashion_mnist mlp", 100, 12, [fashion_mnist("mlp")]),
    Training("fashion_mnist cnn", 100, 6, [fashion_mnist("cnn", "--batch", "37")]),
    # Each leg has another number of ranks. The C++ example stops within epochs too.
    Training("fashion_mnist stopped", 100, 12, [fashion_mnist("mlp", share=share, checkpoint=True) for share in (0.3, 0.55, 0.8, 1)]),
    Training("fashion_mnist killed", 100, 100, [fashion_mnist("mlp", "--save-every", "4", checkpoint=True)] * 4, killed=True),
    Training("residual.py resumed", 100, 0, [example("residual", 32, 4, epoch, checkpoint=True) for epoch in (1, 2, 3, 4)]),
    Training("residual.py signalled", 100, 0, [example("residual", 32, 4, checkpoint=True)] * 4, signalled=True),
    Training("fashion_mnist_cnn.py", 100, 6, [example("fashion_mnist_cnn", 64)]),
    Training("residual.py", 100, 4, [example("residual", 32)]),
    Training("text_lstm.py", 100, 6, [example("text_lstm", 64)]),
    Training("ctc_lines.py", 100, 4, [example("ctc_lines", 16)]),
    Training("variational_autoencoder.py", 100, 8, [example("variational_autoencoder", 64)]),
    Training("transformer", 100, 3, [network("transformer", "16", "5")]),
    Training("densenet121", 20, 0, [network("densenet121")]),
    Training("bilstm accumulated", 100, 6, [network("bilstm", "32", "7", "--clipnorm", "--accumulate", "3")]),
    Training("bilstm of own rows", 100, 4, [network("bilstm", "32", "--local")]),
    Training("mnist_mlp", 100, 0, [keras_example("mnist_mlp")]),
    Training("mnist_cnn", 100, 6, [keras_example("mnist_cnn")]),
    Training("mnist_net2net", 100, 6, [keras_example("mnist_net2net")]),
    Training("mnist_siamese", 100, 6, [keras_example("mnist_siamese")]),
    Training("mnist_swwae", 100, 0, [keras_example("mnist_swwae")]),
    Training("cifar10_resnet", 100, 0, [keras_example("cifar10_resnet")]),
    Training("imdb_bidirectional_lstm", 100, 6, [keras_example("imdb_bidirectional_lstm")]),
]


def differs(way):
    """False if another way has the same effect: one rank has no layout, two ranks are one on each of two nodes in either order, only ranks
    of one node share variables, not by messages, and only several nodes split them.
    """
    if way.ranks == 1:
        return way == FIRST._replace(threads=way.threads) != FIRST
    if way.ranks == 2 and way.layout == "by_slot":
        return False
    if way.variables == "split":
        return way.layout != "one_node"
    shares = way.layout == "one_node" or (way.layout != "messages" and way.ranks > 2)
    return shares or way.variables == FIRST.variables


def pairs(way):
    return set(itertools.combinations(enumerate(way), 2))


def few_ways(ways):
    """Those of the ways that together have each of their pairs of settings, greedily chosen."""
    left, chosen = set().union(*map(pairs, ways)), []
    while left:
        chosen.append(max(ways, key=lambda way: len(pairs(way) & left)))
        left -= pairs(chosen[-1])
    return chosen


def rank_counts(way, legs):
    """The number of ranks of each leg: the way's for the only one or the last one, before it others."""
    counts = SETTINGS.ranks
    first = counts.index(way.ranks)
    return [way.ranks] if legs == 1 else [counts[(first + leg) % len(counts)] for leg in range(1, legs)] + [way.ranks]


def launch(way, ranks, command, folder, setup, kill_at=None, signal_after=None):
    """Runs the command as a job. Returns its output. kill_at: the step of the program in which its last rank is to be killed, or None.
    signal_after: the number of batches after which record.py signals, or None."""
    settings = {
        "KERAS_BACKEND": "syncline", "KERAS_HOME": setup.home, "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([os.path.join(setup.build, "python"), os.path.join(ROOT, "tests", "keras")]),
        "SYNCLINE_PARTS": str(PARTS), "SYNCLINE_SHARE_FROM": SHARE_FROM[way.variables],
        "SYNCLINE_OPTIMIZER_STATE": "split" if way.variables == "split" else "auto",
        # A job that waits says for whom, and ends before it is killed.
        "SYNCLINE_STALL_LIMIT": str(setup.limit // 8), "SYNCLINE_WAIT_LIMIT": str(setup.limit // 2),
    }  # fmt: skip
    if kill_at is not None:
        last = ranks - 1  # It sleeps before, so that a save is complete.
        settings |= {"SYNCLINE_ALLOW_FAULTS": "1", "SYNCLINE_FAULT": f"{last}:{kill_at - 1}:sleep:1000,{last}:{kill_at}:kill"}
    if signal_after is not None:
        settings["EXACT_SIGNAL_AFTER"] = str(signal_after)
    # `timeout` lets mpirun end the ranks.
    job = ["timeout", "-k", "5", str(setup.limit), os.path.join(ROOT, "tests", "mpi", "launch"), way.layout, str(ranks), *command]
    done = subprocess.run(job, cwd=folder, env={**os.environ, **settings}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    lines = (done.stdout + done.stderr).strip().split("\n")
    if kill_at is not None and done.returncode == 137 and "WILL INJECT A FAULT" in done.stderr:
        return done.stdout
    if signal_after is not None and done.returncode == 75:
        return done.stdout
    if done.returncode in (124, 137):
        waits = [line for line in lines if re.search(r"waited \d", line)] or lines
        raise Different(f"{ranks} ranks ran longer than {setup.limit} s (exit status {done.returncode}): {waits[-1][:400]}")
    if done.returncode != 0:
        said = [line for line in lines if "Error" in line or "rror:" in line] or lines
        raise Different(f"exit status {done.returncode}: {said[-1][:200]}")
    if kill_at is not None or signal_after is not None:
        raise Different("the job ended before its last rank was killed, or before the signal")
    return done.stdout


def run_leg(training, leg, steps, way, ranks, folder, setup, unbroken):
    """Returns the lines of a result: without a digest if a rank is killed, none after a signal."""
    program, *arguments = training.legs[leg](Leg(steps, folder, ranks))
    record = os.path.join(folder, f"record-{leg}")
    if program == "fashion_mnist":
        command = [os.path.join(setup.build, "examples", program), *arguments, "--threads", str(way.threads)]
    else:
        command = [sys.executable, "-W", "ignore", os.path.join(HERE, "record.py"), record, str(way.threads), program, *arguments]
    is_killed = training.killed and leg + 1 < len(training.legs)
    is_signalled = training.signalled and leg + 1 < len(training.legs)
    share = steps // len(training.legs)
    said = launch(way, ranks, command, folder, setup, share + 10 if is_killed else None, share if is_signalled else None)
    if leg > 0 and not unbroken:
        require_resumed(said)
    if program == "fashion_mnist":
        digests = set(re.findall(r"^rank \d+ (digest \S+)", said, re.MULTILINE))
        losses = re.findall(r"^(?:(epoch .*?)  \S+ samples/s  took .*|(test loss .*))$", said, re.MULTILINE)
        if (not is_killed and (len(digests) != 1 or not losses)) or "nan" in str(losses):
            raise Different(f"ends with the digests {sorted(digests)} and the losses {losses}")
        return [*digests, *("".join(each) for each in losses)]
    with open(record, encoding="utf-8") as file:
        return file.read().splitlines()


def require_resumed(said):
    if not re.search(r"^resumed ", said, re.MULTILINE):
        raise Different("a leg did not continue the one before it")


def run(training, steps, way, work, setup, unbroken):
    """Returns (lines of the result, seconds). unbroken: only the last leg runs, from the beginning."""
    begin = time.monotonic()
    counts = rank_counts(way, len(training.legs)) if way.ranks > 1 else [1] * len(training.legs)
    lines = []
    with tempfile.TemporaryDirectory(dir=work) as folder:
        for leg, ranks in list(enumerate(counts))[-1 if unbroken else 0 :]:
            lines += run_leg(training, leg, steps, way, ranks, folder, setup, unbroken)
    if training.killed:  # A leg prints the end of its last epoch too. Where the next one resumes depends on what was saved.
        lines = sorted({line for line in lines if not line.startswith("epoch ") or re.match(r"epoch \S+ step (\d+)/\1 ", line)})
    if not lines:
        raise Different("recorded nothing")
    return lines, time.monotonic() - begin


def compare(first, lines):
    for a, b in itertools.zip_longest(first, lines, fillvalue="nothing"):
        if a != b:
            raise Different(f"differs\n    one rank: {a[:300]}\n    here:     {b[:300]}")


def name_of(training, way):
    named = " ".join(f"{name} {value}" for name, value in zip(Way._fields, way))
    return f"{training.name:28} {named:60}"


def check(training, steps, ways, setup):
    """Runs a training in all ways and prints a line for each. Returns the number of runs that fail or differ."""
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="exact-") as work:
        first = None
        for way in [FIRST, *ways]:
            try:
                lines, seconds = run(training, steps, way, work, setup, training.signalled and first is None)
                first = first or lines
                compare(first, lines)
                mark, result = "=", f"{seconds:6.1f} s"
            except Different as problem:
                mark, result, wrong = "!", str(problem), wrong + 1
            print(f"{mark} {name_of(training, way)} {result}", flush=True)
            if first is None:
                break
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, help="folder of a build with the Python module and the examples")
    parser.add_argument("--keras-examples", required=True, help="folder of Keras 2.3.1's examples")
    parser.add_argument("--sample", action="store_true", help="fewer trainings, steps and ways")
    parser.add_argument("--only", default="", help="only trainings whose name matches")
    parser.add_argument("--ranks", type=int, nargs="+", default=SETTINGS.ranks, choices=SETTINGS.ranks, help="only these numbers of ranks")
    parser.add_argument("--done", action="append", default=[], metavar="FILE",
                        help="leave out the ways that this output of an earlier run of the same build shows as equal")  # fmt: skip
    args = parser.parse_args()
    os.environ["KERAS_EXAMPLES"] = os.path.abspath(args.keras_examples)
    trainings = [t for t in TRAININGS if re.search(args.only, t.name) and (t.few_steps or not args.sample)]
    if not trainings:
        sys.exit(f"exact.py: no training's name matches {args.only!r}: {', '.join(training.name for training in TRAININGS)}")
    ways = [way for way in map(Way._make, itertools.product(*SETTINGS)) if way.ranks in args.ranks and differs(way)]
    nodes = os.path.join(ROOT, "tests", "mpi", "namespaces", "nodes")
    if subprocess.run([nodes, "--possible"], stdout=subprocess.DEVNULL, timeout=60, check=False).returncode != 0:
        print("no layouts of two nodes: namespaces are not allowed here")
        ways = [way for way in ways if not way.layout.startswith("by_")]
    if not ways:
        sys.exit("exact.py: no way is left besides the one that is compared with")
    ways = few_ways(ways) if args.sample else ways
    wrong = runs = 0
    with tempfile.TemporaryDirectory(prefix="exact-") as home:
        setup = Setup(os.path.abspath(args.build), home, SAMPLE_LIMIT if args.sample else LIMIT)
        with open(os.path.join(home, "keras.json"), "w", encoding="utf-8") as file:
            file.write('{"floatx": "float32", "epsilon": 1e-7, "image_data_format": "channels_last"}')
        done = [line for path in args.done for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines()]
        for number, training in enumerate(trainings):
            own = ways[number :: len(trainings)] or [ways[number % len(ways)]] if args.sample else ways
            own = [way for way in own if not any(line.startswith(f"= {name_of(training, way)}") for line in done)]
            wrong += check(training, training.few_steps if args.sample else training.steps, own, setup)
            runs += len(own)
    print(f"exact: {len(trainings)} trainings in {runs} runs beside one rank's, of which {wrong} fail or differ")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
