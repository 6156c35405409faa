#!/usr/bin/env python3
"""Predicts the time of a training step and the efficiency for many ranks from measurements on few.

usage: prediction.py MEASURED.json [--cluster NAME] [--profile NAME] [--no-overlap] [--ranks-a-node K,K...]

MEASURED.json is the output of measure.py: latency and bandwidth of a node and of a network, and profiles of steps. The batch of
a rank is constant (weak scaling), so efficiency is the time of a step without communication divided by the time with it. Needs
simulate in build/release.

The model. A message takes latency + bytes / bandwidth (alpha and beta). An all-reduce of b bytes over N nodes of k ranks takes:
  ring          one ring of all n = N k ranks, node by node: 2 (n - 1) rounds of b / n bytes, each as long as on its slowest link
  tree          up and down a binary tree of nodes, with a binary tree of ranks below each node, in pieces; the two children of a
                parent send one after the other
  hierarchical  Syncline's: the ranks of a node sum their buffers in shared memory, then nodes exchange sums in the rounds of
                comm/rounds, whose time benchmarks/simulate computes (benchmarks/scaling/model.h), with a gap between messages
The model simulates a step: it computes, submits buckets and waits for them in the order of its profile; the wire transfers one bucket
at a time. Not in the model: random delays of ranks, and traffic of other jobs.
"""

import argparse
import dataclasses
import functools
import json
import math
import pathlib
import subprocess
import tempfile

SIMULATE = pathlib.Path(__file__).parents[2] / "build/release/benchmarks/simulate"
PIECE = 1 << 20  # bytes of a piece in the tree


@dataclasses.dataclass(frozen=True)
class Link:
    """The full-duplex connection of one rank or one node."""

    latency: float  # seconds
    bandwidth: float  # bytes/s
    gap: float = 0.0  # seconds that each message costs its sender besides its bytes

    def message(self, size):
        return self.latency + size / self.bandwidth


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Nodes of equal size. `inside` is for messages between two ranks of a node, `between` for messages between nodes, `exchange` for
    Syncline's exchange of nodes, where TCP achieves less bandwidth than with one stream each way. In a sum of b bytes in shared
    memory each rank reads and writes b bytes; a core moves `memory` bytes/s, and ranks beyond the cores add no bandwidth."""

    inside: Link
    between: Link
    exchange: Link
    meeting: float  # seconds: the latency of a sum in shared memory
    memory: float  # bytes/s a core
    cores: int = 1 << 30  # of a node
    ranks_a_node: int = 1


def node_sum(cluster, ranks, size):
    """Seconds of a sum in the shared memory of a node: each rank reads and writes its slice of all buffers."""
    if ranks == 1:
        return 0.0
    return cluster.meeting + 2 * ranks * size / (cluster.memory * min(ranks, cluster.cores))


def ring(cluster, nodes, size):
    ranks = nodes * cluster.ranks_a_node
    if ranks == 1:
        return 0.0
    step = cluster.inside.message(size / ranks) if cluster.ranks_a_node > 1 else 0.0
    if nodes > 1:
        step = max(step, cluster.between.message(size / ranks))
    return 2 * (ranks - 1) * step


def tree(cluster, nodes, size, piece=PIECE):
    """Pieces form a pipeline: the first passes all levels; each further one ends one round of the slowest level later."""
    pieces = max(1, math.ceil(size / piece))
    steps = []
    for link, members in ((cluster.between, nodes), (cluster.inside, cluster.ranks_a_node)):
        steps += [min(2, members - 1) * link.message(size / pieces)] * int(math.log2(members))
    if not steps:
        return 0.0
    return 2 * (sum(steps) + (pieces - 1) * max(steps))


@functools.cache
def simulate(nodes, link, *options):
    """What benchmarks/simulate says: a list of dicts, of all-reduces with seconds (model, limit, simulated), or of steps."""
    command = [SIMULATE, "--json", "--nodes", ",".join(map(str, nodes)), *options]
    command += ["--latency", f"{link.latency:.15f}", "--bandwidth", repr(link.bandwidth), "--overhead", f"{link.gap:.15f}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{SIMULATE}: exit status {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def hierarchical(cluster, nodes, size):
    inside = node_sum(cluster, cluster.ranks_a_node, size)
    if nodes == 1:
        return inside
    options = "--model", "--bytes", str(int(size)), "--ranks-a-node", str(cluster.ranks_a_node)
    (line,) = simulate((nodes,), cluster.exchange, *options)
    return inside + line["model"]


SCHEDULES = {"ring": ring, "tree": tree, "hierarchical": hierarchical}


def step_seconds(profile, transfer, overlap=True, slower=1.0):
    """Simulates one step. transfer(bytes) returns the seconds of an all-reduce; computation takes `slower` times as long as in the
    profile. Without overlap a bucket is sent when the step waits for it or for a later one."""
    now = wire = 0.0
    done, queued = {}, []

    def send(bucket, size):
        nonlocal wire
        wire = done[bucket] = max(now, wire) + transfer(size)

    for action, value, size in profile:
        if action == "compute":
            now += value * slower
        elif action == "submit":
            queued.append((value, size))
            if overlap:
                send(*queued.pop(0))
        elif action == "wait":
            while value not in done:
                send(*queued.pop(0))
            now = max(now, done[value])
        else:
            raise ValueError(f"a profile has compute, submit and wait, not {action}")
    return now


def compute_seconds(profile):
    return step_seconds(profile, lambda size: 0.0)


def efficiency(profile, cluster, nodes, schedule, overlap=True):
    return compute_seconds(profile) / step_seconds(profile, lambda size: SCHEDULES[schedule](cluster, nodes, size), overlap)


def simulated_efficiency(profile, cluster, nodes):
    """Of a step that benchmarks/simulate carries out with the wire's code on all ranks. Sums within nodes take no time there."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(profile, file)
        file.flush()
        options = "--step", file.name, "--ranks-a-node", str(cluster.ranks_a_node)
        (line,) = simulate.__wrapped__((nodes,), cluster.exchange, *options)  # not cached: another file may get the name
    return line["compute"] / line["step"]


def fit(points, share=1.0):
    """(latency, bytes/s) of seconds = latency + share * bytes / bandwidth from [(bytes, seconds)], by least squares of the
    relative error, so that every size has the same weight. Replaces a negative latency by 0."""
    sums = [0.0] * 5
    for size, seconds in points:
        x, y = share * size / seconds, 1 / seconds
        for i, value in enumerate((y * y, x * y, x * x, y, x)):
            sums[i] += value
    yy, xy, xx, y, x = sums
    determinant = yy * xx - xy * xy
    latency = (y * xx - x * xy) / determinant if determinant > 0 else 0.0
    if latency <= 0:
        return 0.0, xx / x
    return latency, determinant / (yy * x - xy * y)


def profile_of_trace(lines, skip=10):
    """The profile of the most frequent step, [(action, seconds or bucket, bytes)], from a rank's timeline (SYNCLINE_TRACE). A piece of
    computation ends at a bucket: first where it is submitted, then at the wait for it. Medians over the steps after the first `skip`."""
    steps, sizes = {}, {}
    for line in lines:
        line = line.strip().rstrip(",")
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        args = event.get("args", {})
        if event.get("cat") == "transfer":
            sizes[args["plan"], args["bucket"]] = args["bytes"]
        elif event.get("cat") == "compute":
            steps.setdefault((args["plan"], args["step"]), []).append((event["ts"], event["dur"] * 1e-6, args.get("bucket")))
    shapes = {}
    for (plan, _), pieces in sorted(steps.items()):
        pieces.sort()
        shapes.setdefault((plan, tuple(bucket for _, _, bucket in pieces)), []).append([d for _, d, _ in pieces])
    (plan, buckets), runs = max(shapes.items(), key=lambda item: len(item[1]))
    runs = runs[skip:] or runs
    profile, started = [], set()
    for i, bucket in enumerate(buckets):
        durations = sorted(run[i] for run in runs)
        profile.append(("compute", durations[len(durations) // 2], 0))
        if bucket is None:
            continue
        profile.append(("wait" if bucket in started else "submit", bucket, sizes[plan, bucket]))
        started.add(bucket)
    return profile


def link_of_exchange(network):
    return Link(network["exchange_latency"], network["exchange_bandwidth"], network["gap"])


def cluster_from(node, network, ranks_a_node, cores=1 << 30):
    """Makes a Cluster from the dicts of MEASURED.json."""
    return Cluster(
        inside=Link(node["message_latency"], node["message_bandwidth"]),
        between=Link(network["latency"], network["bandwidth"]),
        exchange=link_of_exchange(network),
        meeting=node["meeting"],
        memory=node["memory"],
        cores=cores,
        ranks_a_node=ranks_a_node,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured")
    parser.add_argument("--cluster", help="a network of MEASURED.json; the first one if not given")
    parser.add_argument("--profile", help="a step of MEASURED.json; the first one if not given")
    parser.add_argument("--no-overlap", action="store_true", help="no core is left for transfers while a step computes")
    parser.add_argument("--ranks-a-node", default="1,4,16,64")
    args = parser.parse_args()
    with open(args.measured, encoding="utf-8") as file:
        measured = json.load(file)
    network = measured["networks"][args.cluster or next(iter(measured["networks"]))]
    profile = measured["profiles"][args.profile or next(iter(measured["profiles"]))]
    print(f"{'ranks':>6}{'nodes':>7}" + "".join(f"{name + ' ms':>18}{'efficiency':>12}" for name in SCHEDULES))
    for ranks_a_node in map(int, args.ranks_a_node.split(",")):
        cluster = cluster_from(measured["node"], network, ranks_a_node)
        for ranks in (2**i for i in range(1, 13)):
            if ranks % ranks_a_node:
                continue
            nodes, cells = ranks // ranks_a_node, ""
            for schedule in SCHEDULES.values():
                seconds = step_seconds(profile, lambda size: schedule(cluster, nodes, size), not args.no_overlap)
                cells += f"{seconds * 1e3:>18.2f}{compute_seconds(profile) / seconds:>12.3f}"
            print(f"{ranks:>6}{nodes:>7}{cells}")


if __name__ == "__main__":
    main()
