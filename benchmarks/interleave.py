#!/usr/bin/env python3
"""Runs every contender of rows.json in turn, several rounds, and writes what they printed and what the machine did.

usage: interleave.py --out FILE [--rounds N] [--only REGEX] [--timeout SECONDS]

A round runs each contender of each row once, ours next to the peers, so that a slow minute of the machine hits all of them.
A process of one rank is held to as many cores as it has threads. A contender that fails is recorded with its last words.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)


def run_key(row, name, contenders):
    """(contender, task, model, threads, ranks, steps): what one process measures; rows that agree in it share it."""
    contender = contenders[name]
    ranks = contender.get("ranks", row.get("ranks", 1))
    program = contender.get("same_as", name)
    return program, row.get("task", "step"), row["model"], row["threads"], ranks, row["steps"]


def command(key, contenders):
    program, task, model, threads, ranks, steps = key
    words = [word.replace("{ranks}", str(ranks)) for word in contenders[program][task]]
    if program == "syncline" and ranks > 1:
        words = ["scripts/launch", str(ranks), *words]
    if task in ("allreduce", "checkpoint"):
        return [*words, "--json"]
    return [*words, "--model", model, "--threads", str(threads), "--steps", str(steps), "--json"]


def cores_for(key):
    """The cores a process may use; None leaves it to the launcher."""
    _, _, _, threads, ranks, _ = key
    return sorted(os.sched_getaffinity(0))[-threads:] if ranks == 1 else None


def one_line(lines):
    """The last line as a dict. Of lines for several sizes, every field of each, its name followed by the size."""
    parsed = [json.loads(line) for line in lines]
    if "bytes" not in parsed[-1]:
        return parsed[-1]
    sized = {f"{name}_{line['bytes']}": value for line in parsed for name, value in line.items()}
    return sized | {"version": parsed[-1].get("version", "Syncline")}


def measure(key, contenders, timeout):
    """The contender's JSON line as a dict, or {"error": why}."""
    cores = cores_for(key)
    try:
        done = subprocess.run(
            command(key, contenders),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            preexec_fn=(lambda: os.sched_setaffinity(0, cores)) if cores else None,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0 and lines:
        return one_line(lines)
    words = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
    return {"error": f"exit status {done.returncode}: {words}"}


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*:\s*(.*)", file.read())
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True)
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": model[1] if model else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "commit": commit.stdout.strip(),
        "compiler": compiler.stdout.splitlines()[0] if compiler.stdout else "unknown",
    }


def cpu_seconds():
    """(the whole machine's processor time so far, that of this script and its children)."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    own = os.times()
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK"), sum(own[:4])


def measure_alone(key, contenders, timeout):
    """As measure, and how many cores others used meanwhile."""
    start, (all_before, own_before) = time.monotonic(), cpu_seconds()
    measured = measure(key, contenders, timeout)
    all_after, own_after = cpu_seconds()
    others = (all_after - all_before) - (own_after - own_before)
    return measured | {"others_cores": max(0.0, others / (time.monotonic() - start))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only rows whose name matches")
    parser.add_argument("--timeout", type=float, default=300)
    args = parser.parse_args()

    with open(os.path.join(HERE, "rows.json"), encoding="utf-8") as file:
        spec = json.load(file)
    contenders = spec["contenders"]
    rows = [row for table in spec["tables"] for row in table["rows"] if re.search(args.only, row["name"])]
    keys = list(dict.fromkeys(run_key(row, n, contenders) for row in rows for n in ["syncline", *row["against"]]))

    result = {"machine": machine(), "rounds": args.rounds, "only": args.only, "load": [], "runs": []}
    for round_number in range(1, args.rounds + 1):
        result["load"].append(os.getloadavg()[0])
        for key in keys:
            measured = measure_alone(key, contenders, args.timeout)
            result["runs"].append({"key": key, "measured": measured})
            what = measured.get("error") or (f"{measured['step_ms']:.3f} ms" if "step_ms" in measured else "measured")
            print(f"round {round_number}/{args.rounds}: {' '.join(map(str, key[:5]))}: {what}", flush=True)
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
