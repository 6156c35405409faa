"""Times a training step of PyTorch's DistributedDataParallel over gloo, each rank a process with its own batch:
torch_ddp.py --model M --ranks R --threads T --steps N --json. Rank 0 prints."""

import os
import tempfile

import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from torch.nn.parallel import DistributedDataParallel

import measure
import torch_model


def rank_main(rank, args, meeting_point):
    torch.set_num_threads(args.threads)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=args.ranks)
    net = DistributedDataParallel(torch_model.network(args.model).train())
    step = torch_model.training_step(args.model, net)
    seconds = measure.median_step_seconds(step, distributed.barrier, args.steps, warm_up=0)
    if rank == 0:
        measure.report(args, seconds, f"PyTorch {torch.__version__}", args.ranks)
    distributed.destroy_process_group()


def main():
    args = measure.arguments(ranks=True)
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(rank_main, (args, os.path.join(folder, "store")), nprocs=args.ranks)


if __name__ == "__main__":
    main()
