#!/usr/bin/env python3
"""Times training steps with parts of the batch and without, in turn, and prints the ratios (scripts/bench --parts).

usage: parts.py [--build FOLDER] [--count N] [--rounds N] [--only REGEX] [--threads N]

Each row runs on one rank and on two ranks that share its batch. The interval is that of compare.py.
"""

import argparse
import os
import statistics

import compare
import interleave
import training_steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--count", type=int, default=8, help="of parts (%(default)s)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="only rows whose name matches")
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    args = parser.parse_args()
    contender = training_steps.contender_of(args.build)
    print(f"{interleave.machine()['cpu']}, {args.count} parts, {args.threads} threads a rank, build {os.path.basename(args.build)}\n")
    print("| | ranks | with parts, ms | without, ms | ratio | 95 % interval |\n|---|---|---|---|---|---|")
    for row in training_steps.rows_named(args.only, parser):

        def run(ranks, parts, row=row):
            return training_steps.milliseconds(row, row.rows, ranks, args.threads, contender, environment={"SYNCLINE_PARTS": str(parts)})

        for ranks in (1, 2):
            pairs = []
            for number in range(args.rounds):
                times = {parts: run(ranks, parts) for parts in interleave.in_turn([args.count, 0], number)}
                pairs.append((times[args.count], times[0]))
            found = compare.Comparison(pairs)
            medians = [statistics.median(column) for column in zip(*pairs)]
            print(
                f"| {row.name} | {ranks} | {medians[0]:.3f} | {medians[1]:.3f} | {found.ratio:.3f} | {found.low:.3f} to {found.high:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
