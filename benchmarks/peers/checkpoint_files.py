"""Times h5py or PyTorch saving and loading 64 float32 arrays of 4 MiB: checkpoint_files.py --framework h5py|torch [--rounds N] --json.

Prints one JSON line. As in benchmarks/checkpoint_bench.cc, times are medians over the rounds, a save includes fsync, and a load reads
from the page cache. The frameworks compute no digest and overwrite the old file: a process killed in a save loses both checkpoints.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

import numpy as np

ARRAYS, SHAPE = 64, (1024, 1024)


def sync(path):
    file = os.open(path, os.O_RDWR)
    os.fsync(file)
    os.close(file)


def with_h5py(arrays):
    import h5py

    def save(path):
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
        sync(path)

    def load(path):
        with h5py.File(path, "r") as file:
            return {name: file[name][()] for name in arrays}

    return save, load, f"h5py {h5py.__version__}"


def with_torch(arrays):
    import torch

    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}

    def save(path):
        torch.save(tensors, path)
        sync(path)

    return save, lambda path: torch.load(path, weights_only=True), f"PyTorch {torch.__version__}"


def seconds(action, *arguments):
    start = time.perf_counter()
    result = action(*arguments)
    return time.perf_counter() - start, result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--framework", choices=["h5py", "torch"], required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="the only form of output; accepted for symmetry")
    args = parser.parse_args()
    arrays = {f"dense_{i}": np.full(SHAPE, i, "float32") for i in range(ARRAYS)}
    save, load, version = (with_h5py if args.framework == "h5py" else with_torch)(arrays)
    saves, loads = [], []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = os.path.join(folder, "file")
        for _ in range(args.rounds):
            saves.append(seconds(save, path)[0])
            took, loaded = seconds(load, path)
            loads.append(took)
            if any(float(loaded[name][-1][-1]) != array[-1, -1] for name, array in arrays.items()):
                raise RuntimeError(f"{args.framework} loads other values than it saved")
            del loaded
    times = {"save": saves, "load": loads}
    line = {f"{args.framework}_{name}_ms": 1000 * statistics.median(values) for name, values in times.items()}
    print(json.dumps({"bytes": sum(array.nbytes for array in arrays.values())} | line | {"version": version}))


if __name__ == "__main__":
    main()
