#!/usr/bin/env python3
"""Times two ranks against two independent processes that run at the same time, and against one process alone (scripts/bench --ranks).

usage: ranks.py [--build FOLDER] [--rounds N] [--only REGEX]

Each rank and each process has the row's batch, one thread and a core of its own. The ratios are times of a step, of independent
processes and of one alone, to that of the two ranks: what lies between these two is the memory and the cache that processes share,
what two ranks need beyond that is communication. The interval is that of compare.py.
"""

import argparse
import concurrent.futures
import os
import statistics

import compare
import interleave
import training_steps


def independent(row, contender):
    """Of two processes at the same time, the slower one's."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        prefixes = [["taskset", "-c", str(core)] for core in sorted(os.sched_getaffinity(0))[:2]]
        return max(pool.map(lambda prefix: training_steps.milliseconds(row, row.rows, 1, 1, contender, prefix), prefixes))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="only rows whose name matches")
    args = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        parser.error("this machine has one core; two ranks need two")
    contender = training_steps.contender_of(args.build)
    print(f"{interleave.machine()['cpu']}, build {os.path.basename(args.build)}\n")
    print("| | two ranks, ms | independent, ms | alone, ms | independent / ranks | 95 % interval | alone / ranks |")
    print("|---" * 7 + "|")
    for row in training_steps.rows_named(args.only, parser):
        ways = {
            "ranks": lambda row=row: training_steps.milliseconds(row, 2 * row.rows, 2, 1, contender),
            "independent": lambda row=row: independent(row, contender),
            "alone": lambda row=row: training_steps.milliseconds(row, row.rows, 1, 1, contender),
        }
        rounds = [{way: ways[way]() for way in interleave.in_turn(list(ways), number)} for number in range(args.rounds)]
        medians = {way: statistics.median(times[way] for times in rounds) for way in ways}
        found = compare.Comparison([(times["independent"], times["ranks"]) for times in rounds])
        cells = [row.name, *(f"{medians[way]:.3f}" for way in ways), f"{found.ratio:.3f}", f"{found.low:.3f} to {found.high:.3f}"]
        print(f"| {' | '.join(cells)} | {medians['alone'] / medians['ranks']:.3f} |", flush=True)


if __name__ == "__main__":
    main()
