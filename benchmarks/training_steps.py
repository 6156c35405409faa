"""Training steps of networks that the project measures: what a row is, and how its time is taken. Used by parts.py and ranks.py."""

import re
from collections import namedtuple

import interleave

# field: the time that the program prints. rows: of a batch.
Row = namedtuple("Row", "name task model rows field")
ROWS = [
    Row("MLP 784-512-512-10, dropout, batch 128, Adam", "step", "mlp", 128, "step_ms"),
    Row("MLP 1024-2048-2048-10, batch 128, SGD", "step", "mlp_wide", 128, "step_ms"),
    Row("CNN 32-64-128-10, batch 128, Adadelta", "step", "cnn", 128, "step_ms"),
    Row("LSTM 128, embedding 20000x128, batch 128, 80 words, Adam", "step", "lstm", 128, "step_ms"),
    Row("Residual, 3 blocks of 64 channels, batch 32, SGD", "step", "residual", 32, "step_ms"),
    Row("ResNet50, 128x128, batch 128, Adam", "net", "resnet50", 128, "train_ms"),
    Row("ResNet50, 128x128, batch 16, Adam", "net", "resnet50", 16, "train_ms"),
    Row("transformer, batch 16, Adam", "net", "transformer", 16, "train_ms"),
]
STEPS = {"mlp": 200, "mlp_wide": 60, "cnn": 20, "lstm": 20, "residual": 10, "resnet50": 3, "transformer": 10}


def rows_named(pattern, parser):
    """The rows whose name matches. Ends the program if there are none."""
    rows = [row for row in ROWS if re.search(pattern, row.name)]
    if not rows:
        parser.error(f"--only {pattern!r}: no row's name matches")
    return rows


def contender_of(build):
    """How Syncline's programs of a build are called."""
    return interleave.load_spec()["contenders"]["syncline"] | {"build": build}


def milliseconds(row, batch, ranks, threads, contender, prefix=(), environment=None):
    """The time of a step with this batch, which the ranks share. `prefix`: words before the program. Raises RuntimeError if it fails."""
    key = ("syncline", row.task, row.model, threads, ranks, STEPS[row.model])
    options = ["--rows", batch // ranks] if row.task == "step" else ["--batch", batch, "--training", STEPS[row.model]]
    words = [*prefix, *contender[row.task], *map(str, options)]
    program = contender | {row.task: words, "environment": environment or {}}
    measured = interleave.measure(key, {"syncline": program}, 600)
    if row.field not in measured:
        raise RuntimeError(f"{row.name}, {ranks} ranks {environment or ''}: {measured.get('error', 'no time')}")
    return measured[row.field]
