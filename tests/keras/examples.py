"""Runs Keras's examples on 1 and 2 ranks and compares their histories (scripts/keras/examples).

usage: examples.py EXAMPLES-FOLDER [--whole] [NAME...]

The examples run in float64, so that rounding changes no choices within these few steps; those in FLOAT32 set float32. Prints one line
per example. Fails if one does not run or if the histories of 1 and 2 ranks differ by more than rounding.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import made_data
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCH = os.path.join(HERE, "..", "mpi", "launch")
WHOLE = ("addition_rnn", "lstm_stateful")
# These examples set float32 themselves, and no backend mixes float32 with float64.
FLOAT32 = ("deep_dream", "image_ocr", "neural_doodle")
TOLERANCES = {"float32": 1e-4, "float64": 1e-8}


def needs(name):
    """Returns the example that writes a file which example `name` reads, or None."""
    return "lstm_seq2seq" if name == "lstm_seq2seq_restore" else None


def floatx(name):
    return "float32" if name in FLOAT32 else "float64"


def run(folder, name, ranks, data, whole, batches):
    """Returns (histories or None, seconds, the last line of an error). The folder `batches` keeps generators' batches for the next run."""
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(data, work, dirs_exist_ok=True)
        home = os.path.join(work, "keras_home")
        os.makedirs(home, exist_ok=True)
        with open(os.path.join(home, "keras.json"), "w", encoding="utf-8") as file:
            json.dump({"floatx": floatx(name), "epsilon": 1e-7, "image_data_format": "channels_last"}, file)
        environment = {**os.environ, "KERAS_HOME": home}
        start = time.monotonic()
        for each in [n for n in (needs(name), name) if n]:
            out = os.path.join(work, each + ".json")
            command = [LAUNCH, name, str(ranks), sys.executable, os.path.join(HERE, "run_example.py")]
            command += [os.path.join(folder, each + ".py"), out, os.path.join(batches, each)] + ["--whole"] * whole
            limit = 3600 if whole else 300
            try:
                done = subprocess.run(
                    command, cwd=work, env=environment, timeout=limit, stdin=subprocess.DEVNULL, capture_output=True, text=True
                )
                status, said = done.returncode, done.stdout + done.stderr
            except subprocess.TimeoutExpired:
                status, said = 1, f"longer than {limit} s"
        seconds = time.monotonic() - start
        if status == 0 and os.path.exists(out):
            with open(out, encoding="utf-8") as file:
                return json.load(file), seconds, ""
        errors = [line for line in said.split("\n") if "Error" in line or "no training" in line or "longer" in line]
        return None, seconds, (errors or said.strip().split("\n"))[-1][:160]


def difference(a, b):
    """Returns the largest difference between two lists of histories, relative where values are above 1; inf if names or shapes differ."""
    if [sorted(x) for x in a] != [sorted(x) for x in b]:
        return float("inf")
    worst = 0.0
    for x, y in zip(a, b):
        for name in x:
            p, q = np.array(x[name]), np.array(y[name])
            if p.shape != q.shape:
                return float("inf")
            gap = np.abs(p - q) / np.maximum(1, np.abs(p))
            # Two NaNs are equal.
            worst = max(worst, float(np.max(np.where(np.isnan(p) & np.isnan(q), 0, gap), initial=0)))
    return worst


def check(folder, name, data, whole):
    """Returns (whether the histories agree, the line to print)."""
    # Two ranks run first: the run on one rank replays the batches of rank 0's generators.
    with tempfile.TemporaryDirectory() as batches:
        two, seconds_2, error = run(folder, name, 2, data, whole, batches)
        if two is None:
            return False, f"does not run with 2 ranks: {error}"
        one, seconds, error = run(folder, name, 1, data, whole, batches)
    if one is None:
        return False, f"runs with 2 ranks, with 1 not: {error}"
    worst = difference(one, two)
    alike = worst <= TOLERANCES[floatx(name)]
    return alike, f"{seconds:6.1f} s {seconds_2:6.1f} s   difference {worst:.1e}" + "   TOO LARGE" * (not alike)


def main(folder, *arguments):
    whole = "--whole" in arguments
    names = [a for a in arguments if not a.startswith("--")]
    everything = sorted(f[:-3] for f in os.listdir(folder) if f.endswith(".py"))
    wrong = []
    with tempfile.TemporaryDirectory() as data:
        made_data.write_files(data)
        for name in names or everything:
            alike, line = check(folder, name, data, whole and name in WHOLE)
            wrong += [name] * (not alike)
            print(f"{'' if alike else '!':2}{name:32}{line}", flush=True)
    count = len(names or everything)
    print(f"keras_examples: {count - len(wrong)} of {count} run with 1 and 2 ranks alike; not: {', '.join(wrong) or 'none'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
