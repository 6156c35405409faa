"""The ranks of a job, for programs that want to know of them.

A Keras script needs nothing of this. Started as one of several ranks (mpirun, srun, PBS), the process joins the others when
`syncline` is imported; from then on every function is one step of the whole job: each rank hands over the same global batch,
computes its share, and gets the same results. numpy's and random's generators begin with rank 0's state, only rank 0 prints
(SYNCLINE_OUTPUT=all: everyone) and writes what Keras writes, and an uncaught exception on one rank ends the job.

`local_feeds` is for those who want each rank to load only its rows.
"""

from syncline.distribution import data, ending, feeds, files, quiet, ranks
from syncline._core import DisagreementError, StallError
from syncline.distribution.accumulation import accumulate_gradients
from syncline.distribution.data import EvenSteps, ShardedSequence, local_feeds, shard
from syncline.distribution.collectives import Group
from syncline.distribution.ranks import (
    agree_steps,
    all_gather,
    all_reduce,
    barrier,
    broadcast,
    group,
    local_rank,
    rank,
    reduce_scatter,
    size,
)

__all__ = [
    "DisagreementError",
    "EvenSteps",
    "Group",
    "ShardedSequence",
    "StallError",
    "accumulate_gradients",
    "agree_steps",
    "all_gather",
    "all_reduce",
    "barrier",
    "broadcast",
    "group",
    "local_feeds",
    "local_rank",
    "rank",
    "reduce_scatter",
    "shard",
    "size",
]

if ranks.join():
    ending.watch()
    data.equalize()
    feeds.follow_rank_0()
if size() > 1:
    files.divide()
if rank() != 0:
    quiet.hush()
