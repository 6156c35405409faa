"""Calls of the backend's functions with arguments of all kinds, most of them wrong.

    wrong_calls.py [--first SEED] [--count CALLS | --seconds S] [--only FUNCTION]

Each call must end with a result or with a plain error: ValueError, TypeError and the like. Findings are an internal error, a
crash, a hang, and a call that adds more than a gigabyte of memory. Each seed is one call. The calls run in child processes
with limits. The exit status is 1 if there are findings.
"""

import argparse
import csv
import inspect
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "functions.tsv")
BATCH = 100  # calls per child
MOST_SECONDS = 20  # of one call
MOST_MEMORY = 1 << 20  # KiB that one call may add
# The permitted ends of a call.
PLAIN = ("result", "ValueError", "TypeError", "OverflowError", "MemoryError", "NotImplementedError", "OSError", "IndexError", "KeyError")


def functions():
    with open(TABLE, newline="") as table:
        return [row["function"] for row in csv.DictReader(table, delimiter="\t")]


class Pool:
    """Random values. The values of a seed do not depend on earlier calls in the process."""

    def __init__(self, K, np, choose):
        self.K, self.np, self.choose = K, np, choose

    def shape(self):
        return tuple(self.choose.choice([0, 1, 2, 3, 4, 5, 7]) for _ in range(self.choose.randrange(5)))

    def array(self):
        np = self.np
        dtype = self.choose.choice(["float32"] * 5 + ["float64", "int32", "int64", "bool", "uint8", "int8", "float16", ">f4", ">i8",
                                    "uint16", "uint64", "complex64", "U3", "object"])
        shape = self.shape()
        if dtype in ("U3", "object"):
            return np.full(shape, "abc", dtype)
        values = np.random.RandomState(self.choose.randrange(1000)).randint(-3, 9, shape)
        return values.astype(dtype)

    def tensor(self):
        K, np = self.K, self.np
        kind = self.choose.randrange(7)
        dtype = self.choose.choice(["float32"] * 6 + ["float64", "int32", "int64", "bool", "uint8", "float16"])
        shape = self.shape()
        values = np.ones(shape, dtype)
        if kind == 0:
            return K.variable(values, dtype=dtype)
        if kind == 1:
            return K.placeholder(tuple(self.choose.choice([n, None]) for n in shape), dtype=dtype)
        if kind == 2:
            return K.placeholder(ndim=len(shape))
        if kind == 3:
            return K.placeholder((3, 4), sparse=True)
        if kind == 4:
            return K.cast(K.constant(values, dtype=dtype), "float32") * 2.0
        return K.constant(values, dtype=dtype)

    def number(self):
        return self.choose.choice([0, 1, 2, 3, -1, -2, 5, 0.5, -0.5, 1.0, 1e30, 2**31, 2**32, 2**63, -(2**31), 2**40, 10**30, 1e308,
                                   float("nan"), float("inf"), True, False, self.np.int64(3), self.np.float32(0.5), 1j])

    def text(self):
        return self.choose.choice(["float32", "int32", "bool", "same", "valid", "causal", "channels_first", "channels_last", "max",
                                   "avg", "nearest", "bilinear", "", "x", "\x00", "\u00e9" * 3, "a" * 5000, b"float32"])

    def function(self):
        K, choose = self.K, self.choose
        return choose.choice([
            lambda *x: x[0],
            lambda x: x * 2,
            lambda a, b: a + b,
            lambda a, b: (a, [a]),
            lambda x, states: (x, states),
            lambda *x: None,
            lambda: K.constant(1.0),
            lambda *x: 3,
        ])  # fmt: skip

    def value(self, depth=0):
        way = self.choose.randrange(12)
        if way < 4:
            return self.tensor()
        if way < 6:
            return self.number()
        if way == 6:
            return self.array()
        if way == 7:
            return self.text()
        if way == 8:
            return self.choose.choice([None, None, object(), {}, {"a": 1}, set(), int, "float64", ..., slice(1, 2), self.function()])
        if way == 9:
            return self.shape() if self.choose.randrange(2) else list(self.shape())
        if way == 10 and depth < 2:
            return [self.value(depth + 1) for _ in range(self.choose.randrange(4))]
        return self.choose.choice([(1, 2), [0], (2, 2), (1, 1), [1, -1], (0,), (-1,), (2**32, 2), ((1, 1), (0, 2)), [[1, 2], [3]]])

    def likely(self, name):
        """A value of the kind that a parameter of this name expects."""
        if name in ("x", "y", "tensor", "inputs", "output", "target", "a", "b", "kernel", "bias", "reference", "variables", "loss"):
            return self.tensor()
        if name in ("axis", "n", "k", "rep", "ndim", "size", "seed", "num_classes", "strides", "alpha", "epsilon", "p", "level"):
            return self.number()
        if name in ("dtype", "padding", "data_format", "pool_mode", "interpolation", "name", "message"):
            return self.text()
        if name in ("shape", "pool_size", "kernel_size", "output_shape", "axes", "pattern", "dilation_rate", "noise_shape"):
            return self.shape()
        if name in ("fn", "step_function", "then_expression", "else_expression"):
            return self.function()
        return self.value()


def arguments(function, pool, choose):
    args, named = [], {}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [pool.value() for _ in range(choose.randrange(4))], {}
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if p.default is not p.empty and choose.random() < 0.6:
            continue
        value = pool.likely(p.name) if choose.random() < 0.6 else pool.value()
        if p.default is p.empty and p.kind is not p.KEYWORD_ONLY and not named:
            args.append(value)
        else:
            named[p.name] = value
    if choose.random() < 0.02:
        args.append(pool.value())
    if choose.random() < 0.02:
        named["surplus"] = 1
    return args, named


def use(K, np, result):
    """Evaluates the tensors in the result of a call that have few elements."""
    for one in result if isinstance(result, (list, tuple)) else [result]:
        if not isinstance(one, K.Tensor):
            continue
        shape = K.int_shape(one)
        size = 1
        for n in shape:
            size *= n if n is not None else 1
        if size < 1 << 20:
            K.eval(one)


def call(K, np, name, seed):
    """The end of the call: the error's type and message, or "result" and ""."""
    choose = random.Random(seed)
    np.random.seed(seed % 2**32)
    function = getattr(K, name)
    args, named = arguments(function, Pool(K, np, choose), choose)
    try:
        use(K, np, function(*args, **named))
    except Exception as error:
        return type(error).__name__, str(error)
    return "result", ""


def describe(value):
    text = repr(value)
    return text if len(text) < 200 else text[:200] + "..."


def child(first, count, only):
    import numpy as np

    import syncline as K

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    devnull = os.open(os.devnull, os.O_WRONLY)
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(devnull, 1)  # discards what print_tensor writes
    names = [only] if only else functions()
    for seed in range(first, first + count):
        name = random.Random(seed * 31 + 7).choice(names)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        out.write(json.dumps({"seed": seed, "function": name}) + "\n")
        signal.alarm(MOST_SECONDS)
        end, message = call(K, np, name, seed)
        signal.alarm(0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        found = ""
        if "internal" in message or end not in PLAIN:
            found = f"{end}: {message}"
        elif grown > MOST_MEMORY:
            found = f"took {grown >> 10} MiB ({end}: {message})"
        out.write(json.dumps({"seed": seed, "function": name, "end": end, "found": found, "message": message[:300]}) + "\n")
    K.clear_session()


def limited():
    # 2.5 GiB of address space: the system rejects a call whose arguments demand gigabytes.
    resource.setrlimit(resource.RLIMIT_AS, (5 << 29, 5 << 29))


def run_batch(first, count, only):
    """The ends of the calls, the findings as texts, and the number of calls that ran."""
    command = [sys.executable, os.path.abspath(__file__), "--child", str(first), str(count), only or ""]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited, check=False)
    lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    ends = [line for line in lines if "end" in line]
    findings = [f"seed {line['seed']}, {line['function']}: {line['found']}" for line in ends if line["found"]]
    if process.returncode != 0:
        last = lines[-1] if lines else {"seed": first, "function": "?"}
        how = "a hang" if process.returncode == -signal.SIGALRM else f"the process ended with {process.returncode}"
        findings.append(f"seed {last['seed']}, {last['function']}: {how}\n{process.stderr[-600:]}")
        return ends, findings, last["seed"] - first + 1
    return ends, findings, count


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        return child(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=10**9)
    parser.add_argument("--only")
    options = parser.parse_args()
    start, seed, found, ends = time.time(), options.first, [], {}
    while seed < options.first + options.count and time.time() - start < options.seconds:
        batch, findings, ran = run_batch(seed, min(BATCH, options.first + options.count - seed), options.only)
        for line in batch:
            ends[line["end"]] = ends.get(line["end"], 0) + 1
        for finding in findings:
            print(finding, flush=True)
        found += findings
        seed += ran
    counts = ", ".join(f"{n} {end}" for end, n in sorted(ends.items(), key=lambda e: -e[1]))
    print(f"{seed - options.first} calls in {time.time() - start:.0f} s, {len(found)} findings;", counts)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
