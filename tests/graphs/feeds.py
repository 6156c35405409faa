"""Random functions fed with values of every layout and dtype.

    feeds.py [--first SEED] [--count FUNCTIONS | --seconds S]

Each function is called several times: with arrays that are strided, reversed, unaligned, big-endian, read-only, in
Fortran order or of another dtype, with NumPy scalars, numbers and lists. It must return what a new function returns for
the same values as plain arrays of the placeholder's dtype, bit for bit. A crash is a finding too. The exit
status is 1 if there are findings.
"""

import argparse
import random
import subprocess
import sys
import time

BATCH = 200
DTYPES = ["float32", "float32", "float64", "int32", "bool", "uint8", "float16", "int64"]


def other_dtypes(np, values, dtype):
    """The dtypes in which the same values can be fed."""
    kinds = {"float32": ["float64", "float32", "float16", "int32"], "float64": ["float32", "float64", "int64"],
             "float16": ["float32", "float64", "float16"], "int32": ["int32", "int64", "int8"], "int64": ["int64", "int32"],
             "uint8": ["uint8", "int32"], "bool": ["bool"]}  # fmt: skip
    return [kind for kind in kinds[dtype] if np.array_equal(values.astype(kind).astype(dtype), values)]


def laid_out(np, values, choose):
    """The same values in another memory layout, or as Python numbers."""
    way = choose.randrange(7)
    if values.ndim == 0 and way < 4:
        return choose.choice([values, values[()], values.item()])
    if way == 0:
        wide = np.zeros(tuple(2 * n for n in values.shape), values.dtype)
        view = wide[tuple(slice(None, None, 2) for _ in values.shape)]
        view[...] = values
        return view
    if way == 1:
        return values[::-1].copy()[::-1]
    if way == 2:
        return np.asfortranarray(values)
    if way == 3:
        return values.tolist() if values.size else values
    if way == 4:
        memory = np.zeros(values.nbytes + 1, np.uint8)[1:]
        view = memory.view(values.dtype).reshape(values.shape)
        view[...] = values
        return view
    if way == 5:
        return values.astype(values.dtype.newbyteorder(">"))
    frozen = values.copy()
    frozen.setflags(write=False)
    return frozen


def make(K, choose, shapes, dtypes):
    """Placeholders, and outputs that use all of them."""
    inputs = [K.placeholder(tuple(None if i == 0 else n for i, n in enumerate(shape)), dtype=dtype)
              for shape, dtype in zip(shapes, dtypes)]  # fmt: skip
    outputs = []
    for x, dtype, shape in zip(inputs, dtypes, shapes):
        y = x if dtype == "bool" else x + x
        y = choose.choice([lambda y=y: y, lambda y=y: K.cast(y, "float64"), lambda y=y: K.identity(y)])()
        outputs.append(y)
        if shape:
            outputs.append(K.sum(K.cast(y, "float32"), axis=-1))
    return inputs, outputs


def run_one(K, np, seed):
    choose = random.Random(seed)
    np.random.seed(seed % 2**32)
    count = choose.randrange(1, 4)
    shapes = [tuple(choose.choice([1, 2, 3, 5]) for _ in range(choose.choice([0, 0, 1, 2, 2, 3]))) for _ in range(count)]
    dtypes = [choose.choice(DTYPES) for _ in range(count)]
    inputs, outputs = make(K, random.Random(seed), shapes, dtypes)
    function = K.function(inputs, outputs)
    for _ in range(choose.randrange(2, 6)):
        rows = choose.choice([0, 1, 2, 3, 4])
        plain, fed = [], []
        for shape, dtype in zip(shapes, dtypes):
            own = (rows,) + shape[1:] if shape and choose.random() < 0.7 else shape
            whole = choose.random() < 0.5
            values = np.random.randint(0, 9, own) if whole else np.random.normal(size=own)
            values = np.asarray(values).astype(dtype)
            plain.append(values.copy())
            kinds = other_dtypes(np, values, dtype)
            fed.append(laid_out(np, np.asarray(values.astype(choose.choice(kinds))), choose))
        got = function(fed)
        fresh_inputs, fresh_outputs = make(K, random.Random(seed), shapes, dtypes)
        wanted = K.function(fresh_inputs, fresh_outputs)(plain)
        for a, b in zip(got, wanted):
            if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
                return f"{a!r}, wanted {b!r}"
    return ""


def child(first, count):
    import numpy as np

    import syncline as K

    for seed in range(first, first + count):
        print("at", seed, flush=True)
        try:
            wrong = run_one(K, np, seed)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        if wrong:
            print("found", f"seed {seed}:", wrong.replace("\n", " "), flush=True)


def run_batch(first, count):
    process = subprocess.run([sys.executable, __file__, "--child", str(first), str(count)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=300, check=False)  # fmt: skip
    lines = process.stdout.splitlines()
    findings = [line[6:] for line in lines if line.startswith("found ")]
    last = max([int(line[3:]) for line in lines if line.startswith("at ")], default=first)
    if process.returncode == 0:
        return findings, first + count
    findings.append(f"seed {last}: the process ended with {process.returncode} {process.stderr[-300:]}")
    return findings, last + 1


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        return child(int(sys.argv[2]), int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=10**9)
    options = parser.parse_args()
    start, seed, found = time.time(), options.first, 0
    while seed < options.first + options.count and time.time() - start < options.seconds:
        findings, seed = run_batch(seed, min(BATCH, options.first + options.count - seed))
        for finding in findings:
            print(f"{finding} ({time.time() - start:.1f} s)", flush=True)
        found += len(findings)
    print(f"{seed - options.first} functions in {time.time() - start:.0f} s, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
