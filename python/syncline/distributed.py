"""The ranks of a job: their numbers, collectives and data.

A Keras script does not need this module. A process launched as one of several ranks (mpirun, srun, PBS) joins the others when
`syncline` is imported. From then on every function is one step of the whole job: each rank receives the same global batch, computes
its share, and gets the same results. The generators of `numpy.random` and `random` start with rank 0's state. Only rank 0 prints
(SYNCLINE_OUTPUT=all: every rank) and writes the files that Keras writes. An uncaught exception on one rank ends the job.

With `local_feeds` each rank loads only its own rows.
"""

from syncline.distribution import data, ranks
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
    parts,
    rank,
    reduce_scatter,
    set_parts,
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
    "parts",
    "rank",
    "reduce_scatter",
    "set_parts",
    "shard",
    "size",
]

# Modules that only several ranks need, because a process alone should start soon.
if ranks.join():
    from syncline.distribution import ending, feeds

    ending.watch()
    data.share_averages()
    feeds.follow_rank_0()
if size() > 1:
    from syncline.distribution import files

    files.write_on_primary()
if rank() != 0:
    from syncline.distribution import quiet

    quiet.silence()
