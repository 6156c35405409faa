#!/usr/bin/env python3
"""Prints, row by row, how the times of this tree compare with those of another commit, and fails if a row is slower.

usage: compare.py MEASURED.json [--bound RATIO]     (MEASURED.json is the output of interleave.py --before)

The ratio is the median here divided by the median there; where more is better (samples/s, GB/s) it is the inverse, so that it is
always a ratio of times. The interval comes from order statistics: each pair of neighbouring processes gives one ratio, and the k-th
smallest and k-th largest of n enclose their median with a probability of at least 95 %, whatever the distribution (n = 9: k = 2).
A row fails if its whole interval lies above the bound, if it does not run here, or if fewer than six pairs did.
"""

import argparse
import json
import math
import statistics
import sys

import interleave
import report

MISSED = 0.05  # the probability that an interval does not contain the median


def interval(ratios):
    """The (low, high) bounds of the median's confidence interval; (0, infinity) for fewer than six ratios."""
    n, k, below = len(ratios), 0, 1  # below: of 2**n outcomes, the number with at most k of n ratios under the median
    while 2 * below <= MISSED * 2**n:
        k += 1
        below += math.comb(n, k)
    if k == 0:
        return 0.0, math.inf
    ordered = sorted(ratios)
    return ordered[k - 1], ordered[n - k]


class Comparison:
    """One row: `ratio`, `low` and `high` of the times here to the times there. `pairs` is a list of (here, there)."""

    def __init__(self, pairs, higher_is_better=False):
        times = [(b, a) for a, b in pairs] if higher_is_better else pairs
        here, there = zip(*times)
        self.ratio = statistics.median(here) / statistics.median(there)
        low, high = interval([a / b for a, b in times])
        # The ratio of the medians is not the median of the ratios and can lie slightly outside their interval.
        self.low, self.high = min(low, self.ratio), max(high, self.ratio)


def pairs_of(measured, keys, fields):
    """The values (here, there) of the pairs of processes, without pairs of which one process failed."""
    runs = zip(*(measured.runs.get(key, []) for key in keys))
    return [(a[fields[0]], b[fields[1]]) for a, b in runs if fields[0] in a and fields[1] in b]


def row_line(table, row, contenders, measured, bound):
    """(the row's line of the table, whether the row passes)"""
    names = ("syncline", "before")
    keys = [interleave.run_key(row, name, contenders) for name in names]
    fields = [report.field_name(table, row, name, contenders[name]) for name in names]
    medians = [measured.median(key, field) for key, field in zip(keys, fields)]
    cells = [row["name"], str(row["threads"]), *map(report.number, medians)]
    pairs = pairs_of(measured, keys, fields)
    if not pairs:
        # A new row runs only here: it passes.
        which = 1 if medians[0] is not None else 0
        verdict = f"{'not there' if which else '**does not run**'}: {measured.error(keys[which])}"
        return "| " + " | ".join([*cells, "-", "-", "0", verdict]) + " |", which == 1
    found = Comparison(pairs, table.get("better") == "higher")
    verdict = "**slower**" if found.low > bound else "**too few pairs**" if math.isinf(found.high) else "-"
    cells += [f"{found.ratio:.3f}", f"{found.low:.3f} to {found.high:.3f}", str(len(pairs))]
    return "| " + " | ".join([*cells, verdict]) + " |", verdict == "-"


def comparison(result, bound):
    """(the text, the names of the rows that fail)"""
    contenders, _ = interleave.load_rows(result["only"], result["before"])
    measured = report.Measured(result)
    lines, failed = [], []
    for table in result["tables"]:
        lines += [f"## {table['title']}, {table['unit']}", ""]
        head = ["", "threads", "here", "there", "ratio of times", "95 % interval", "pairs", f"bound {bound}"]
        lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        for row in table["rows"]:
            line, passes = row_line(table, row, contenders, measured, bound)
            lines.append(line)
            failed += [] if passes else [f"{table['title']}: {row['name']}, {row['threads']} threads"]
        lines.append("")
    lines += [*report.conditions(result, measured), f"- there: {result['before']}"]
    return "\n".join(lines) + "\n", failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("measured")
    parser.add_argument("--bound", type=float, default=1.03)
    args = parser.parse_args()
    with open(args.measured, encoding="utf-8") as file:
        result = json.load(file)
    text, failed = comparison(result, args.bound)
    print(text, end="")
    print(f"rows slower than {args.bound} times, or not measured: {'; '.join(failed) or 'none'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
