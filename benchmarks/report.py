#!/usr/bin/env python3
"""Prints the tables of docs/benchmarks.md, made from the measurements of interleave.py.

usage: report.py MEASURED.json [--write docs/benchmarks.md]

A value is the median over the rounds; a ratio is Syncline's median divided by the peer's. rows.json has the bounds.
"""

import argparse
import json
import statistics

import interleave

HEAD = """# Benchmarks

Written by `scripts/bench`; do not edit. `benchmarks/rows.json` lists the rows and their bounds, `benchmarks/peers/measure.py`
and `keras_fit.py` beside it say what is measured. Each contender is run in turn, {rounds} rounds, each time as a new process;
a value is the median over the rounds, a ratio is ours divided by theirs. A process of one rank is held to as many cores as
it has threads. `scripts/bench --against COMMIT` compares with another commit of ours (`benchmarks/compare.py`).
"""


QUIET_CORES = 0.1  # maximum average use by other processes


class Measured:
    """Medians over the rounds, by run and field."""

    def __init__(self, result):
        self.runs = {}
        for run in result["runs"]:
            self.runs.setdefault(tuple(run["key"]), []).append(run["measured"])

    def median(self, key, field):
        values = [m[field] for m in self.runs.get(key, []) if field in m]
        return statistics.median(values) if values else None

    def error(self, key):
        return next((m["error"] for m in self.runs.get(key, []) if "error" in m), "not run")


def number(value):
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def verdict(row, ratios):
    """The row's bounds, missed ones in bold. They apply to the ratio to the named peer, for "best" to the fastest peer; for "value" to
    Syncline's value, for "beyond_X" to Syncline's value minus that of X."""
    parts = []
    for name, bound in row.get("at_most", {}).items():
        if ratios.get(name) is not None:
            parts.append(f"at most {bound}" if ratios[name] <= bound else f"**missed: at most {bound}**")
    for name, bound in row.get("at_least", {}).items():
        if ratios.get(name) is not None:
            parts.append(f"at least {bound}" if ratios[name] >= bound else f"**missed: at least {bound}**")
    return ", ".join(parts) or "-"


def field_name(table, row, name, contender):
    """The field of a process's line that the table shows. One process may measure several contenders at several sizes."""
    if "bytes" not in row:
        return table["field"]
    return f"{contender.get('prefix', name)}_{table['field']}_{row['bytes']}"


def table_lines(table, contenders, measured, missing):
    """The lines of one table. Adds values that were not measured to `missing`, with the reason."""
    peers = list(dict.fromkeys(name for row in table["rows"] for name in row["against"]))
    # A column compares with the fastest peer if several peers do the same work in one process.
    best = len(peers) > 1 and table["field"] == "step_ms"
    head = ["", "threads", "Syncline", *(contenders[p]["title"] for p in peers)]
    head += [*(f"ratio to {contenders[p]['title']}" for p in peers), *(["ratio to the best"] if best else []), "bound"]
    lines = [f"## {table['title']}, {table['unit']}", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in table["rows"]:
        values = {}
        for name in ["syncline", *row["against"]]:
            key = interleave.run_key(row, name, contenders)
            values[name] = measured.median(key, field_name(table, row, name, contenders[name]))
            if values[name] is None:
                missing[f"{contenders[name]['title']}, {row['model']}, {row['threads']} threads"] = measured.error(key)
            else:
                values[name] *= contenders[name].get("times", 1)
        ours = values["syncline"]
        ratios = {p: ours / values[p] if ours and values.get(p) else None for p in peers}
        theirs = [values[p] for p in row["against"] if values[p]]
        ratios["value"] = ours
        ratios |= {f"beyond_{p}": ours - values[p] for p in peers if ours and values.get(p)}
        ratios["best"] = ours / min(theirs) if best and ours and theirs else None
        cells = [row["name"], str(row["threads"]), number(ours), *(number(values.get(p)) for p in peers)]
        cells += [f"{ratios[p]:.2f}" if ratios[p] else "-" for p in peers]
        if best:
            cells.append(f"{ratios['best']:.2f}" if ratios["best"] else "-")
        lines.append("| " + " | ".join([*cells, verdict(row, ratios)]) + " |")
    return [*lines, ""]


def conditions(result, measured):
    """The machine, the versions, and the load of other processes."""
    machine = result["machine"]
    others = [m["others_cores"] for runs in measured.runs.values() for m in runs]
    quiet = statistics.mean(others) < QUIET_CORES
    versions = {m["version"] for runs in measured.runs.values() for m in runs if "version" in m}
    libraries = [m["libraries_mib"] for k, runs in measured.runs.items() for m in runs if k[0] == "torch" and "libraries_mib" in m]
    lines = [
        "## Conditions",
        "",
        f"- {machine['date']}, commit {machine['commit']}, {machine['compiler']}",
        f"- {machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}",
        f"- peers: {'; '.join(sorted(versions)) or 'none'}",
        f"- load average before each round: {', '.join(f'{load:.2f}' for load in result['load'])} (the contenders add to it)",
        f"- cores used by others meanwhile: {statistics.mean(others):.2f} on average, at most {max(others):.2f}"
        + ("" if quiet else " (**not a quiet machine: these numbers are no evidence**)"),
    ]
    if libraries:
        lines.append(
            f"- PyTorch's package from PyPI is the CUDA build: {statistics.median(libraries):.0f} MiB of its process are there once "
            "it is imported, before any tensor is made"
        )
    return lines


def report(result):
    measured, missing = Measured(result), {}
    contenders, tables = interleave.load_rows(result["only"])
    lines = [HEAD.format(rounds=result["rounds"])]
    for table in tables:
        lines += table_lines(table, contenders, measured, missing)
    lines += conditions(result, measured)
    lines += [f"- not measured: {what}: {why}" for what, why in missing.items()]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("measured")
    parser.add_argument("--write", help="also write the report to this file")
    args = parser.parse_args()
    with open(args.measured, encoding="utf-8") as file:
        result = json.load(file)
    text = report(result)
    print(text, end="")
    if args.write:
        with open(args.write, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
