#!/usr/bin/env python3
"""Times training steps with parts of the batch and without, in turn, and prints the ratios (scripts/bench --parts).

usage: parts.py [--build FOLDER] [--count N] [--rounds N] [--only REGEX] [--threads N]

Each row runs on one rank and on two ranks that share its batch. The interval is that of compare.py.
"""

import argparse
import os
import re
import statistics
from collections import namedtuple

import compare
import interleave

# field: the time that the program prints. rows: of all ranks.
Row = namedtuple("Row", "name task model rows field")
ROWS = [
    Row("MLP 784-512-512-10, dropout, batch 128, Adam", "step", "mlp", 128, "step_ms"),
    Row("CNN 32-64-128-10, batch 128, Adadelta", "step", "cnn", 128, "step_ms"),
    Row("LSTM 128, embedding 20000x128, batch 128, 80 words, Adam", "step", "lstm", 128, "step_ms"),
    Row("Residual, 3 blocks of 64 channels, batch 32, SGD", "step", "residual", 32, "step_ms"),
    Row("ResNet50, 128x128, batch 128, Adam", "net", "resnet50", 128, "train_ms"),
    Row("ResNet50, 128x128, batch 16, Adam", "net", "resnet50", 16, "train_ms"),
    Row("transformer, batch 16, Adam", "net", "transformer", 16, "train_ms"),
]
STEPS = {"mlp": 200, "cnn": 20, "lstm": 20, "residual": 10, "resnet50": 3, "transformer": 10}


def run(row, ranks, threads, parts, contender):
    """The time of a step in ms. Raises RuntimeError if the program fails."""
    key = ("syncline", row.task, row.model, threads, ranks, STEPS[row.model])
    options = ["--rows", row.rows // ranks] if row.task == "step" else ["--batch", row.rows, "--training", STEPS[row.model]]
    words = [*contender[row.task], *map(str, options)]
    environment = {"SYNCLINE_PARTS": str(parts)}
    measured = interleave.measure(key, {"syncline": contender | {row.task: words, "environment": environment}}, 600)
    if row.field not in measured:
        raise RuntimeError(f"parts.py: {row.name}, {ranks} ranks, {parts} parts: {measured.get('error', 'no time')}")
    return measured[row.field]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--count", type=int, default=8, help="of parts (%(default)s)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="only rows whose name matches")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    args = parser.parse_args()
    rows = [row for row in ROWS if re.search(args.only, row.name)]
    if not rows:
        parser.error(f"--only {args.only!r}: no row's name matches")
    contender = interleave.load_spec()["contenders"]["syncline"] | {"build": args.build}
    print(f"{interleave.machine()['cpu']}, {args.count} parts, {args.threads} threads a rank, build {os.path.basename(args.build)}\n")
    print("| | ranks | with parts, ms | without, ms | ratio | 95 % interval |\n|---|---|---|---|---|---|")
    for row in rows:
        for ranks in (1, 2):
            pairs = []
            for number in range(args.rounds):
                times = {parts: run(row, ranks, args.threads, parts, contender) for parts in interleave.in_turn([args.count, 0], number)}
                pairs.append((times[args.count], times[0]))
            found = compare.Comparison(pairs)
            medians = [statistics.median(column) for column in zip(*pairs)]
            print(
                f"| {row.name} | {ranks} | {medians[0]:.3f} | {medians[1]:.3f} | {found.ratio:.3f} | {found.low:.3f} to {found.high:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
