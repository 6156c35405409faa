#!/usr/bin/env python3
"""Writes docs/scaling.md and its plot from the measurements of measure.py and the simulations of benchmarks/simulate.

usage: report.py MEASURED.json [--write docs/scaling.md]
"""

import argparse
import json
import math
import os
import statistics

import prediction

# Networks of a cluster, in place of this machine's virtual links: assumed, not measured.
ASSUMED = {
    "100 Gbit/s, 5 us (assumed)": {
        "latency": 5e-6, "bandwidth": 11e9, "exchange_latency": 5e-6, "exchange_bandwidth": 11e9, "gap": 0.5e-6,
    },
    "10 Gbit/s, 20 us (assumed)": {
        "latency": 20e-6, "bandwidth": 1.15e9, "exchange_latency": 20e-6, "exchange_bandwidth": 1.15e9, "gap": 1e-6,
    },
}  # fmt: skip
RANKS_A_NODE = (1, 4, 16, 64)
# Nodes by the number of ranks on each.
SIMULATED_NODES = {1: (2, 4, 8, 16, 64, 256, 512, 767, 999, 1000, 1024), 4: (2, 4, 8, 16, 64, 256), 6: (2, 16, 64)}
SIMULATED_SIZES = (4, 1 << 20, 25 << 20)
COLORS = {"ring": "#c33", "tree": "#38c", "hierarchical": "#2a2"}


def predicted(check, measured):
    """The predicted seconds of one check. All its nodes share the cores of one machine."""
    layout = [int(n) for n in check["layout"].split(",")]
    cores = measured["machine"]["cores"]
    network = next(iter(measured["networks"].values()))
    cluster = prediction.cluster_from(measured["node"], network, layout[0], max(1, cores // len(layout)))
    schedule = prediction.SCHEDULES[check["schedule"]]
    if check["what"] == "all-reduce":
        return schedule(cluster, len(layout), check["bytes"])
    slower = max(1.0, sum(layout) / cores)
    profile = measured["profiles"][check["model"]]
    return prediction.step_seconds(profile, lambda size: schedule(cluster, len(layout), size), overlap=False, slower=slower)


def check_lines(measured):
    lines = ["| what | nodes x ranks of a node | schedule | measured, ms | predicted, ms | error |", "|---|---|---|---|---|---|"]
    errors = {}
    for check in measured["checks"]:
        layout = check["layout"].split(",")
        want, got = check["seconds"], predicted(check, measured)
        what = f"step, {check['model']}" if check["what"] == "step" else f"all-reduce, {check['bytes'] >> 20} MiB"
        errors.setdefault(check["schedule"], []).append(abs(got / want - 1))
        lines.append(
            f"| {what} | {len(layout)} x {layout[0]} | {check['schedule']} | {want * 1e3:.2f} | {got * 1e3:.2f} | {got / want - 1:+.0%} |"
        )
    summary = ", ".join(f"{name} {statistics.median(e):.0%} (at most {max(e):.0%})" for name, e in errors.items())
    return [*lines, "", f"Median of the absolute relative error: {summary}."]


def inputs_lines(measured):
    node, rate = measured["node"], measured["rate"]
    network = measured["networks"][rate]
    lines = [
        "| input | value | from |",
        "|---|---|---|",
        f"| latency of a sum in shared memory | {node['meeting'] * 1e6:.2f} us | Syncline's all-reduce, 2 ranks of a node |",
        f"| memory bandwidth of a core | {node['memory'] * 1e-9:.2f} GB/s | same |",
        f"| message within a node | {node['message_latency'] * 1e6:.2f} us, {node['message_bandwidth'] * 1e-9:.2f} GB/s "
        "| MPI_Allreduce, 2 ranks of a node |",
        f"| message between nodes, {rate} | {network['latency'] * 1e6:.0f} us, {network['bandwidth'] * 1e-9:.4f} GB/s "
        "| MPI's ring, 3 nodes |",
        f"| exchange between nodes, {rate} | {network['exchange_latency'] * 1e6:.0f} us, "
        f"{network['exchange_bandwidth'] * 1e-9:.4f} GB/s, {network['gap'] * 1e6:.0f} us per message "
        "| Syncline's all-reduce, 3 and 4 nodes |",
    ]
    for model, profile in measured["profiles"].items():
        sizes = [size for action, _, size in profile if action == "submit"]
        text = f"{prediction.compute_seconds(profile) * 1e3:.2f} ms, buckets of {', '.join(f'{s / 2**20:.2f}' for s in sizes)} MiB"
        lines.append(f"| step, {model} | {text} | a rank's timeline, 2 ranks of a node |")
    return lines


def simulation_lines(network):
    """Syncline's all-reduce: simulated, by the model, and the limit of the links' bandwidth."""
    link = prediction.link_of_exchange(network)
    lines = ["| nodes | ranks a node | bytes | simulated, us | model, us | error | limit, us | simulated / limit |", "|---" * 8 + "|"]
    errors = []
    runs = ((nodes, ranks) for ranks in SIMULATED_NODES for nodes in SIMULATED_NODES[ranks])
    sizes = ",".join(map(str, SIMULATED_SIZES))
    for line in (
        line for nodes, ranks in runs for line in prediction.simulate((nodes,), link, "--bytes", sizes, "--ranks-a-node", str(ranks))
    ):
        simulated, model, limit = (1e6 * line[key] for key in ("simulated", "model", "limit"))
        errors.append(abs(model / simulated - 1))
        ratio = f"{simulated / limit:.3f}" if line["bytes"] >= 1 << 20 else "-"
        cells = [f"{line[key]:,}" for key in ("nodes", "ranks_a_node", "bytes")]
        cells += [f"{simulated:,.1f}", f"{model:,.1f}", f"{model / simulated - 1:+.1%}"]
        lines.append(f"| {' | '.join(cells)} | {limit:,.1f} | {ratio} |")
    return [*lines, "", f"Median of the model's absolute relative error: {statistics.median(errors):.1%} (at most {max(errors):.1%})."]


def efficiency(measured, network, profile, schedule, ranks_a_node, ranks):
    cluster = prediction.cluster_from(measured["node"], network, ranks_a_node)
    return prediction.efficiency(profile, cluster, ranks // ranks_a_node, schedule)


def prediction_lines(measured, model):
    profile = measured["profiles"][model]
    rank_counts = (2, 8, 64, 512, 4096)
    lines = []
    for name, network in ASSUMED.items():
        lines += [f"{name}, {model}:", "", "| schedule | ranks per node | " + " | ".join(f"{n:,}" for n in rank_counts) + " |"]
        lines.append("|---" * (len(rank_counts) + 2) + "|")
        for schedule in prediction.SCHEDULES:
            for ranks_a_node in RANKS_A_NODE:
                cells = [
                    f"{efficiency(measured, network, profile, schedule, ranks_a_node, n):.3f}" if n >= ranks_a_node else "-"
                    for n in rank_counts
                ]
                lines.append(f"| {schedule} | {ranks_a_node} | " + " | ".join(cells) + " |")
        lines.append("")
    return lines


def panel(measured, network, profile, title, left):
    """One diagram of efficiency over ranks. Each schedule has a thin line for 1 rank per node and a thick one for 16."""
    top, width, height = 40, 300, 220
    x = lambda ranks: left + width * math.log2(ranks) / 12  # noqa: E731
    y = lambda value: top + height * (1 - value)  # noqa: E731
    parts = [f'<text x="{left}" y="24" font-weight="bold">{title}</text>']
    for i in range(0, 13, 2):
        parts.append(f'<path d="M{x(2**i):.1f} {top}V{top + height}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(2**i):.1f}" y="{top + height + 16}" text-anchor="middle">{2**i}</text>')
    for i in range(6):
        parts.append(f'<path d="M{left} {y(i / 5):.1f}h{width}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y(i / 5) + 4:.1f}" text-anchor="end">{i / 5:.1f}</text>')
    for schedule, color in COLORS.items():
        for ranks_a_node, stroke in ((1, 1), (16, 2.5)):
            ranks = [2**i for i in range(13) if 2**i >= ranks_a_node]
            points = [(x(n), y(efficiency(measured, network, profile, schedule, ranks_a_node, n))) for n in ranks]
            text = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
            parts.append(f'<polyline points="{text}" fill="none" stroke="{color}" stroke-width="{stroke}"/>')
    return parts


def plot(measured, model):
    profile = measured["profiles"][model]
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" width="760" height="310" font-family="sans-serif" font-size="11">',
        '<rect width="760" height="310" fill="white"/>',
    ]
    for i, (name, network) in enumerate(ASSUMED.items()):
        parts += panel(measured, network, profile, f"{model}: {name}", 45 + 370 * i)
    for i, (schedule, color) in enumerate(COLORS.items()):
        parts.append(f'<text x="{45 + 110 * i}" y="300" fill="{color}">{schedule}</text>')
    parts.append('<text x="385" y="300">efficiency over ranks; thin: 1 rank a node, thick: 16</text></svg>')
    return "\n".join(parts) + "\n"


def report(measured):
    machine, model = measured["machine"], next(iter(measured["profiles"]))
    name, network = next(iter(ASSUMED.items()))
    rate, latency, gap = (network[what] for what in ("bandwidth", "latency", "gap"))
    cluster = prediction.cluster_from(measured["node"], network, 4)
    simulated = prediction.simulated_efficiency(measured["profiles"]["mlp_wide"], cluster, 256)
    modelled = [efficiency(measured, network, measured["profiles"]["mlp_wide"], "hierarchical", 4, n) for n in (1024, 4096)]
    return "\n".join(
        [
            "# Scaling",
            "",
            "Written by `benchmarks/scaling/report.py` from the measurements of `benchmarks/scaling/measure.py`; do not edit.",
            "`benchmarks/scaling/prediction.py` describes the model. Efficiency is that of weak scaling: the time of a step without",
            "communication divided by the time with it.",
            "",
            "## Inputs",
            "",
            *inputs_lines(measured),
            "",
            "## Comparison with measurements",
            "",
            f"{machine['date']}, commit {machine['commit']}, {machine['cpu']}, {machine['cores']} cores; load average",
            f"{measured['load'][0]:.1f} before and {measured['load'][1]:.1f} after the measurement, which itself causes 2. Nodes are",
            f"network namespaces whose links are limited to {measured['rate']} (`tc tbf`; this kernel has no `netem`, so latency is that",
            "of the virtual link). All nodes share the machine's cores: the prediction multiplies a step's computation by ranks / cores",
            "if there are more ranks than cores, and gives each node its share of the cores. Ring and tree are MPI's, with a",
            "fixed algorithm; the hierarchical schedule is Syncline's. Only the inputs above are fitted.",
            "",
            *check_lines(measured),
            "",
            "The model is least accurate for MPI's tree, in both directions. While several",
            "nodes exchange data, the bandwidth that TCP achieves varies from run to run. A load above 2 means that other",
            "processes were running; some rows then deviate.",
            "",
            "## Simulation",
            "",
            "`build/release/benchmarks/simulate` runs the wire's own code for many nodes in virtual time: agreement, pieces and rounds as",
            "on a cluster, messages that exist as lengths; with `--real` each rank has numbers of its own and all must get the same bits.",
            "Memory and sums take no time. The model computes the same rounds without running them. The network is",
            f"{name}: {rate / 1e9:.0f} GB/s, {latency * 1e6:.0f} us, and {gap * 1e6:.1f} us a message at its sender.",
            f"The limit is 2 (M - 1) / M times the bytes at {rate / 1e9:.0f} GB/s on M nodes.",
            "",
            *simulation_lines(network),
            "",
            "6 ranks of a node are two blocks of the tree of sums: the node sends a sum of each in the first round.",
            "",
            f"Efficiency of mlp_wide on 256 nodes of 4 ranks: {simulated:.3f} in a simulated step, whose 1,024 ranks compute while their",
            f"sums are under way, {modelled[0]:.3f} by the model, which adds the sums within nodes; on 1,024 nodes of 4 ranks:",
            f"{modelled[1]:.3f} by the model.",
            "",
            "## Prediction",
            "",
            "The node is the measured one, with a core for each rank and a spare one for transfers; **the networks are assumed**.",
            "Random delays of ranks and traffic of other jobs are not in the model: the tables compare the schedules and promise no speed.",
            "",
            "![efficiency over ranks](scaling.svg)",
            "",
            *prediction_lines(measured, model),
        ]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("measured")
    parser.add_argument("--write", help="also write the report to this file, and the plot beside it")
    args = parser.parse_args()
    with open(args.measured, encoding="utf-8") as file:
        measured = json.load(file)
    text = report(measured)
    print(text)
    if args.write:
        with open(args.write, "w", encoding="utf-8") as file:
            file.write(text)
        with open(os.path.splitext(args.write)[0] + ".svg", "w", encoding="utf-8") as file:
            file.write(plot(measured, next(iter(measured["profiles"]))))


if __name__ == "__main__":
    main()
