#!/usr/bin/env python3
"""Measures the inputs of prediction.py, and times to compare its predictions with, on this machine.

usage: measure.py --out FILE [--rate 400mbit]

Latency and bandwidth come from benchmarks/allreduce on two ranks of one node and on three and four nodes of one rank, profiles of
steps from the timelines of two ranks of one node. Nodes are network namespaces (tests/mpi/namespaces/nodes) with links of limited
rate. The checks run other layouts: Syncline's all-reduce, MPI's ring and binary tree, and training steps. Needs allreduce and
step_bench in build/release.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import prediction

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import interleave  # noqa: E402

NODES = "tests/mpi/namespaces/nodes"
ALLREDUCE, STEP = "build/release/benchmarks/allreduce", "build/release/benchmarks/step_bench"
NODE_SIZES = [4, 4096, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
NETWORK_SIZES = [4, 1024, 1 << 20, 2 << 20, 4 << 20]
CHECK_SIZES = [2 << 20]
LAYOUTS = ["1,1", "1,1,1,1", "2,2", "2,2,2,2", "4,4", ",".join("1" * 16)]
MODELS = ["mlp", "mlp_wide"]
# Turns off gradients by rows, which only jobs on one node use: the model predicts sums over ranks.
SUMS = {"SYNCLINE_BY_ROWS_FROM": "1024GiB"}
# Open MPI's algorithms: 4 is the ring, 2 a reduction followed by a broadcast, here both by binary trees in pieces.
RING = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "4"]
TREE = [
    "--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "2",
    "--mca", "coll_tuned_reduce_algorithm", "4", "--mca", "coll_tuned_reduce_algorithm_segmentsize", str(prediction.PIECE),
    "--mca", "coll_tuned_bcast_algorithm", "5", "--mca", "coll_tuned_bcast_algorithm_segmentsize", str(prediction.PIECE),
]  # fmt: skip


def json_lines(command, environment=None):
    done = subprocess.run(
        command, cwd=interleave.ROOT, capture_output=True, text=True, timeout=300, env=os.environ | (environment or {})
    )
    if done.returncode == 77:
        raise SystemExit(done.stdout.strip())
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def allreduce(launch, sizes, repetitions=5):
    return json_lines([*launch, ALLREDUCE, "--json", "--bytes", ",".join(map(str, sizes)), "--repetitions", str(repetitions)])


def points(lines, who):
    return [(line["bytes"], line[f"{who}_us"] * 1e-6) for line in lines]


def on_nodes(layout, rate, options=()):
    return [NODES, "--rate", rate, *options, layout]


def measure_node():
    lines = allreduce(["scripts/launch", "2"], NODE_SIZES)
    meeting, bandwidth = prediction.fit(points(lines, "syncline"))
    # For two ranks prediction.ring gives 2 latency + bytes / bandwidth, node_sum gives meeting + 2 bytes / memory.
    latency, message_bandwidth = prediction.fit(points(lines, "mpi"))
    return {
        "meeting": meeting, "memory": 2 * bandwidth, "message_latency": latency / 2, "message_bandwidth": message_bandwidth,
        "points": lines,
    }  # fmt: skip


def measure_network(rate):
    """Fits the exchange to Syncline's all-reduce and messages to MPI's ring, both on three nodes: a ring has 4 rounds of a third of the
    buffer, and the exchange sends two thirds of it twice. A small sum is one message to each other node: one latency, and a gap
    for each message."""
    three = allreduce(on_nodes("1,1,1", rate, RING), NETWORK_SIZES)
    latency, bandwidth = prediction.fit(points(three, "mpi"), share=4 / 3)
    large = [point for point in points(three, "syncline") if point[0] >= 1 << 20]
    _, exchange_bandwidth = prediction.fit(large, share=4 / 3)
    # The ranks share this machine's cores, so a further message costs more than on a node with cores of its own.
    small = NETWORK_SIZES[:2]
    four = allreduce(on_nodes("1,1,1,1", rate), small)
    (of_three, of_four) = (min(seconds for size, seconds in points(lines, "syncline") if size in small) for lines in (three, four))
    gap = min(max(0.0, of_four - of_three), of_three / 2)
    return {
        "latency": latency / 4, "bandwidth": bandwidth, "exchange_latency": of_three - 2 * gap,
        "exchange_bandwidth": exchange_bandwidth, "gap": gap, "points": three,
    }  # fmt: skip


def measure_profile(model):
    with tempfile.TemporaryDirectory() as folder:
        command = ["scripts/launch", "2", STEP, "--model", model, "--steps", "40", "--background", "0", "--json"]
        json_lines(command, SUMS | {"SYNCLINE_TRACE": folder})
        with open(os.path.join(folder, "rank0.json"), encoding="utf-8") as file:
            return prediction.profile_of_trace(file)


def measured_step(launch, model, steps):
    command = [*launch, STEP, "--model", model, "--steps", str(steps), "--warmup", "3", "--background", "0", "--json"]
    (line,) = json_lines(command, SUMS)
    return line["step_ms"] * 1e-3


def checks(rate):
    """[{what, layout, schedule, model or bytes, seconds}]"""
    found = []

    def note(**check):
        found.append(check)
        print(check, flush=True)

    for model in MODELS:
        note(what="step", layout="2", schedule="hierarchical", model=model, seconds=measured_step(["scripts/launch", "2"], model, 40))
    for layout in LAYOUTS:
        for schedule, who, options in (("hierarchical", "syncline", []), ("ring", "mpi", RING), ("tree", "mpi", TREE)):
            for size, seconds in points(allreduce(on_nodes(layout, rate, options), CHECK_SIZES, 3), who):
                note(what="all-reduce", layout=layout, schedule=schedule, bytes=size, seconds=seconds)
        note(what="step", layout=layout, schedule="hierarchical", model="mlp", seconds=measured_step(on_nodes(layout, rate), "mlp", 10))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rate", default="400mbit")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    result = {
        "machine": interleave.machine(),
        "rate": args.rate,
        "node": measure_node(),
        "networks": {args.rate: measure_network(args.rate)},
        "profiles": {model: measure_profile(model) for model in MODELS},
    }
    print(json.dumps({key: result[key] for key in ("node", "networks", "profiles")}, indent=1), flush=True)
    result["checks"] = checks(args.rate)
    result["load"] = [load, os.getloadavg()[0]]
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
