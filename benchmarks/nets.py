#!/usr/bin/env python3
"""Times the networks of peers/keras_nets.py, ours next to the peers, and prints the tables. scripts/bench --nets calls it.

usage: nets.py --out FILE [--rounds N] [--only REGEX] [--threads N ...] [--timeout SECONDS]

A round runs each contender once, in alternating order; a process measures all modes of a network. A contender that needs
more than 1.3 times the time of the fastest in each mode of the first round is left out of the others; "(1)" marks what one round
measured. FILE is written after each network; networks for which it has all contenders are not run again. A value is the median over the rounds, a ratio is ours
divided by theirs; the best peer is the fastest at the row. "least" is the time that the machine's limits allow for the operations of our algorithms and for
the bytes of a step's inputs, variables and stored values (docs/profile.md), as one more process measures them after the rounds.
"""

import argparse
import json
import math
import os
import re
import statistics
import sys
import tempfile

import interleave
import report

DROPPED = 1.3  # times the fastest
TIMED = ("train_ms", "predict_ms", "predict_one_ms")
MODES = [
    ("Training step", "train_ms", "ms"),
    ("Prediction of a batch", "predict_ms", "ms"),
    ("Prediction of one row", "predict_one_ms", "ms"),
    ("First training step, with its plan", "first_ms", "ms"),
    ("Peak memory of a training", "train_peak_mib", "MiB"),
]


def key_of(contender, net, threads):
    return contender, "net", net, threads, 1, 1


def is_fast(name, runs):
    """Whether one of a contender's times in the round stands beside the best."""
    of = {run["key"][0]: run["measured"] for run in runs}

    def stands(field):
        return of[name].get(field, math.inf) <= DROPPED * min(measured.get(field, math.inf) for measured in of.values())

    return any(field in of[name] and stands(field) for field in TIMED)


def run_net(net, threads, contenders, args):
    """The runs of one network with so many threads."""
    runs, names = [], list(contenders)
    for round_number in range(1, args.rounds + 1):
        for name in interleave.in_turn(names, round_number):
            measured = interleave.measure_alone(key_of(name, net, threads), contenders, args.timeout)
            runs.append({"key": key_of(name, net, threads), "measured": measured})
            what = measured.get("error") or f"{measured['step_ms']:.1f} ms"
            print(f"round {round_number}/{args.rounds}: {name} {net} {threads}: {what}", flush=True)
        if round_number == 1:
            names = [name for name in names if name == "syncline" or is_fast(name, runs)]
    return runs


def least_times(net, threads, contenders, timeout):
    """The least ms of each of TIMED, from the profile of a process of ours; {} if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile")
        ours = contenders["syncline"]
        profiled = ours | {"environment": ours.get("environment", {}) | {"SYNCLINE_PROFILE": path}}
        if "error" in interleave.measure_alone(key_of("syncline", net, threads), {"syncline": profiled}, timeout):
            return {}
        with open(path, encoding="utf-8") as file:
            head, *lines = map(json.loads, file)
    plans = [line for line in lines if "plan" in line]

    def least(plan):
        seconds = max(plan["flops"] / head["flops_per_second"], plan["bytes"] / head["bytes_per_second"])
        return 1e3 * seconds / plan["calls"]

    train = [least(plan) for plan in plans if plan["plan"] == "train_function"]
    predict = sorted(least(plan) for plan in plans if plan["plan"] == "predict_function")
    return dict(zip(TIMED, [max(train), predict[-1], predict[0]])) if train and predict else {}


def table_lines(title, field, unit, result, contenders):
    """A table of one mode, with the geometric mean of the ratios for each number of threads, over the rows that have both."""
    measured, peers, rounds = report.Measured(result), [name for name in contenders if name != "syncline"], result["rounds"]
    head = ["", "threads", "Syncline", *(contenders[p]["title"] for p in peers), "ratio to TensorFlow", "to the best"]
    head += ["least", "ratio to it"] if field in TIMED else []
    lines = [f"## {title}, {unit}", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    ratios = {}
    rows = dict.fromkeys(tuple(run["key"][2:4]) for run in result["runs"])
    for threads, net in sorted((threads, net) for net, threads in rows):
        keys = [key_of(name, net, threads) for name in ["syncline", *peers]]
        ours, *theirs = (measured.median(key, field) for key in keys)
        found = [value for value in theirs if value]
        pair = [theirs[peers.index("tensorflow")] if "tensorflow" in peers else None, min(found, default=None)]
        pair = [ours / value if ours and value else None for value in pair]
        ratios.setdefault(threads, []).append(pair)
        once = [" (1)" if rounds > 1 and len(measured.runs.get(key, [])) == 1 else "" for key in keys]
        numbers = [report.number(value) + mark if value else "-" for value, mark in zip([ours, *theirs], once)]
        cells = [net, str(threads), *numbers, *(f"{r:.2f}" if r else "-" for r in pair)]
        if field in TIMED:
            least = result.get("least", {}).get(f"{net} {threads}", {}).get(field)
            cells += [report.number(least), f"{ours / least:.2f}"] if ours and least else ["-", "-"]
        lines.append("| " + " | ".join(cells) + " |")
    for threads, pairs in ratios.items():
        columns = list(zip(*(pair for pair in pairs if all(pair)))) or [[], []]
        means = [f"{statistics.geometric_mean(c):.2f}" if c else "-" for c in columns]
        mean = ["geometric mean", str(threads), *[""] * (1 + len(peers)), *means]
        lines.append("| " + " | ".join([*mean, *[""] * (len(head) - len(mean))]) + " |")
    return [*lines, ""]


def failures(result):
    """A line for each contender that failed to measure a network."""
    failed = {tuple(run["key"][:4]): run["measured"]["error"] for run in result["runs"] if "error" in run["measured"]}
    return [f"- not measured: {name}, {net}, {threads} threads: {why}" for (name, _, net, threads), why in failed.items()]


def read_result(path):
    if not os.path.exists(path):
        return {"machine": interleave.machine(), "rounds": 0, "load": [], "runs": []}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only networks whose name matches")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--timeout", type=float, default=600)
    args = parser.parse_args()
    spec = interleave.load_spec()
    contenders = {name: c for name, c in spec["contenders"].items() if "net" in c}
    result = read_result(args.out)
    result["rounds"] = args.rounds
    nets = [net for net in spec["nets"] if re.search(args.only, net)]
    if not nets:
        sys.exit(f"nets.py: no network's name matches {args.only!r}; see {os.path.join('benchmarks', 'rows.json')}")
    for net in nets:
        for threads in args.threads:
            of_net = [run for run in result["runs"] if list(run["key"][2:4]) == [net, threads]]
            if {run["key"][0] for run in of_net} >= set(contenders):
                continue
            result["runs"] = [run for run in result["runs"] if run not in of_net]
            result["load"].append(os.getloadavg()[0])
            result["runs"] += run_net(net, threads, contenders, args)
            result.setdefault("least", {})[f"{net} {threads}"] = least_times(net, threads, contenders, args.timeout)
            with open(args.out, "w", encoding="utf-8") as file:
                json.dump(result, file, indent=1)
    lines = [line for mode in MODES for line in table_lines(*mode, result, contenders)]
    print("\n".join([*lines, *failures(result), *report.conditions(result, report.Measured(result))]))


if __name__ == "__main__":
    main()
