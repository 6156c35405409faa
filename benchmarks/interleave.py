#!/usr/bin/env python3
"""Runs all contenders of rows.json in turn, for several rounds, and writes their results and the machine's load to FILE.

usage: interleave.py --out FILE [--rounds N] [--only REGEX] [--before BUILD] [--timeout SECONDS]

A round runs each contender of each row once, Syncline next to its peers, so that a slow minute of the machine affects all of them.
A process of one rank is bound to as many cores as it has threads. A contender that fails is recorded with its last line of output.
With --before the only peer is Syncline's build of another commit; a round then runs both in turn, short rows repeatedly, and
alternates their order.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

LEAST_ROUNDS = 9  # of a comparison with another commit
SHORT_SECONDS, MOST_REPETITIONS = 2, 8  # a round repeats a pair of processes up to either limit


def beside_before(row):
    """What differs in a row that compares two commits: an eighth of an epoch shows what a whole one shows."""
    steps = row["steps"] // 8 if row.get("task") == "fit" else row["steps"]
    return {"against": ["before"], "steps": steps}


def load_spec():
    """rows.json: contenders, networks and tables."""
    with open(os.path.join(HERE, "rows.json"), encoding="utf-8") as file:
        return json.load(file)


def load_rows(only, before=None):
    """rows.json with the rows whose name matches `only`. With `before`, a build folder, its program is the only peer."""
    spec = load_spec()
    contenders = spec["contenders"]
    if before:
        contenders["before"] = contenders["syncline"] | {"build": before, "prefix": "syncline"}
    tables = []
    for table in spec["tables"]:
        rows = [row | (beside_before(row) if before else {}) for row in table["rows"] if re.search(only, row["name"])]
        tables += [table | {"rows": rows}] if rows else []
    return contenders, tables


def kernel_table(names, only):
    """A table of kernel_bench's rows, which no peer has. `names` is what its --benchmark_list_tests prints."""
    rows = [
        {"name": name, "task": "kernel", "model": name, "threads": 1, "steps": 1, "against": ["before"]}
        for name in names.splitlines()
        if re.search(only, name)
    ]
    return {"title": "Kernels", "field": "step_ms", "unit": "ms", "rows": rows}


def run_key(row, name, contenders):
    """(contender, task, model, threads, ranks, steps) of a process; rows with equal keys share the process."""
    contender = contenders[name]
    ranks = contender.get("ranks", row.get("ranks", 1))
    program = contender.get("same_as", name)
    return program, row.get("task", "step"), row["model"], row["threads"], ranks, row["steps"]


def command_words(contender, task, ranks=1):
    words = [*(contender.get("launcher", []) if ranks > 1 else []), *contender[task]]
    return [word.replace("{ranks}", str(ranks)).replace("{build}", contender.get("build", "")) for word in words]


def literal(name):
    """A POSIX regular expression for the name; POSIX does not define the escaped spaces and hyphens of re.escape."""
    return re.sub(r"[][\\.^$*+?(){}|]", r"\\\g<0>", name)


def command(key, contenders):
    program, task, model, threads, ranks, steps = key
    words = command_words(contenders[program], task, ranks)
    if task == "kernel":
        return [*words, f"--benchmark_filter=^{literal(model)}$", "--benchmark_min_time=0.2", "--benchmark_format=json"]
    if task in ("allreduce", "checkpoint"):
        return [*words, "--json"]
    return [*words, "--model", model, "--threads", str(threads), "--steps", str(steps), "--json"]


def cores_for(key):
    """The cores that a process may use; None for several ranks, which the launcher binds."""
    _, _, _, threads, ranks, _ = key
    return sorted(os.sched_getaffinity(0))[-threads:] if ranks == 1 else None


def one_line(lines):
    """The last line as a dict. If lines have a size ("bytes"), the fields of all lines, with the size appended to each name."""
    parsed = [json.loads(line) for line in lines]
    if "bytes" not in parsed[-1]:
        return parsed[-1]
    sized = {f"{name}_{line['bytes']}": value for line in parsed for name, value in line.items()}
    return sized | {"version": parsed[-1].get("version", "Syncline")}


def read_line(task, said):
    """The measurements in a process's output as one dict, or None."""
    if task == "kernel":
        found = json.loads(said)["benchmarks"] if said.strip().startswith("{") else []
        return {"step_ms": found[0]["real_time"] * {"ns": 1e-6, "us": 1e-3, "ms": 1}[found[0]["time_unit"]]} if found else None
    lines = [line for line in said.splitlines() if line.startswith("{")]
    return one_line(lines) if lines else None


def measure(key, contenders, timeout):
    """The contender's JSON line as a dict, or {"error": why}."""
    cores = cores_for(key)
    try:
        done = subprocess.run(
            [*(["taskset", "-c", ",".join(map(str, cores))] if cores else []), *command(key, contenders)],
            cwd=ROOT,
            env={**os.environ, **contenders[key[0]].get("environment", {})},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": str(error)}
    measured = read_line(key[1], done.stdout) if done.returncode == 0 else None
    if measured is not None:
        return measured
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
    """(processor time of the whole machine so far, that of this script and its children), in seconds."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    own = os.times()
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK"), sum(own[:4])


def measure_alone(key, contenders, timeout):
    """As measure, with `others_cores`: the average number of cores that other processes used."""
    start, (all_before, own_before) = time.monotonic(), cpu_seconds()
    measured = measure(key, contenders, timeout)
    all_after, own_after = cpu_seconds()
    others = (all_after - all_before) - (own_after - own_before)
    return measured | {"others_cores": max(0.0, others / (time.monotonic() - start))}


def in_turn(keys, round_number):
    """The keys of one row's contenders, in reverse order for even numbers."""
    return keys if round_number % 2 else keys[::-1]


def run_round(round_number, groups, contenders, args):
    """Runs each group of keys, with --before repeatedly for SHORT_SECONDS; yields (key, measurements)."""
    for keys in groups:
        start = time.monotonic()
        for repetition in range(MOST_REPETITIONS if args.before else 1):
            if repetition and time.monotonic() - start > SHORT_SECONDS:
                break
            for key in in_turn(keys, round_number + repetition):
                yield key, measure_alone(key, contenders, args.timeout)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--only", default="", help="only rows whose name matches")
    parser.add_argument("--before", help="the build folder of another commit, to measure instead of the peers")
    parser.add_argument("--timeout", type=float, default=300)
    args = parser.parse_args()
    args.rounds = args.rounds or (LEAST_ROUNDS if args.before else 5)
    if args.before and args.rounds < LEAST_ROUNDS:
        parser.error(f"--rounds {args.rounds}: a comparison with another commit takes at least {LEAST_ROUNDS}")
    return args


def main():
    args = arguments()
    contenders, tables = load_rows(args.only, args.before)
    if args.before:
        words = [*command_words(contenders["syncline"], "kernel"), "--benchmark_list_tests"]
        listed = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        kernels = kernel_table(listed.stdout, args.only)
        tables += [kernels] if kernels["rows"] else []
    # Each key once, in the group of the first row that has it.
    seen, groups = set(), []
    for row in (row for table in tables for row in table["rows"]):
        keys = dict.fromkeys(run_key(row, name, contenders) for name in ["syncline", *row["against"]])
        groups.append([key for key in keys if key not in seen])
        seen.update(keys)
    if not seen:
        sys.exit(f"interleave.py: no row's name matches {args.only!r}; see {os.path.join('benchmarks', 'rows.json')}")

    result = {"machine": machine(), "rounds": args.rounds, "only": args.only, "before": args.before, "tables": tables}
    result.update({"load": [], "runs": []})
    for round_number in range(1, args.rounds + 1):
        result["load"].append(os.getloadavg()[0])
        for key, measured in run_round(round_number, groups, contenders, args):
            result["runs"].append({"key": key, "measured": measured})
            what = measured.get("error") or (f"{measured['step_ms']:.3f} ms" if "step_ms" in measured else "measured")
            print(f"round {round_number}/{args.rounds}: {' '.join(map(str, key[:5]))}: {what}", flush=True)
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
