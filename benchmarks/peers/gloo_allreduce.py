"""Times all-reduce of float32 over PyTorch's gloo: gloo_allreduce.py --ranks R [--bytes N,N...] [--repetitions N] --json.

Like benchmarks/collectives (timing.cc explains the values in the buffers), it checks a sum, then takes the median over the repetitions of
the mean time of a call on the slowest rank. Rank 0 prints one JSON object per line."""

import argparse
import json
import math
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing

SAMPLE_SECONDS = 0.01
SMALLEST, DOUBLINGS = 1.2e-38, 250


def check(rank, ranks, count):
    pattern = torch.arange(count, dtype=torch.float32) % 7 + 1
    data = pattern * (rank + 1)
    distributed.all_reduce(data)
    if not torch.equal(data, pattern * (ranks * (ranks + 1) // 2)):
        raise RuntimeError(f"gloo: a wrong sum of {count} elements on rank {rank}")


def seconds_a_call(data, calls):
    data.fill_(SMALLEST)
    distributed.barrier()
    start = time.perf_counter()
    for _ in range(calls):
        distributed.all_reduce(data)
    slowest = torch.tensor([(time.perf_counter() - start) / calls], dtype=torch.float64)
    distributed.all_reduce(slowest, op=distributed.ReduceOp.MAX)
    return slowest.item()


def rank_main(rank, args, meeting_point):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=args.ranks)
    for size in args.bytes:
        count = size // 4
        check(rank, args.ranks, count)
        data = torch.empty(count, dtype=torch.float32)
        seconds_a_call(data, 2)
        most = DOUBLINGS // math.log2(args.ranks)
        calls = int(min(max(SAMPLE_SECONDS / seconds_a_call(data, 3), 1), most))
        median = statistics.median(seconds_a_call(data, calls) for _ in range(args.repetitions))
        if rank == 0:
            line = {"bytes": size, "ranks": args.ranks, "gloo_gbs": size / median * 1e-9, "gloo_us": median * 1e6}
            print(json.dumps(line | {"version": f"PyTorch {torch.__version__}"}), flush=True)
    distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", type=lambda text: [int(n) for n in text.split(",")], default=[4**i for i in range(1, 15)])
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="the only form of output; accepted for symmetry")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(rank_main, (args, os.path.join(folder, "store")), nprocs=args.ranks)


if __name__ == "__main__":
    main()
