"""Reads of variables. Those that are split between nodes (SYNCLINE_OPTIMIZER_STATE=split) take all ranks.

Rank 0 posts a note before each of these reads, so that a rank which waits for a file of rank 0 meanwhile gets an error at once.
"""

import threading

from syncline import _core
from syncline.distribution import ranks

# Each note of this kind, which differs from those of syncline.distribution.files and own_files.
NOTE = 3

# How often this rank has begun such a read, and how often rank 0 has, as far as its notes tell.
_ours = _theirs = 0

_thread = threading.local()  # its `file`: the name of the file that Keras writes now


def values_of(variables):
    """The values of variables, as NumPy arrays. Ranks that read split ones for different files get an error."""
    global _ours
    if not ranks.is_rank() or not _core.are_split(variables):
        return _core.batch_get_value(variables)
    _ours += 1
    if ranks.rank() == 0:
        _core.post_note(NOTE)
    else:
        from syncline.distribution import files

        while files.take_note() is not None:
            pass
    return _core.batch_get_value(variables, getattr(_thread, "file", ""))


def set_file(path):
    """From now on this thread reads variables to write them into this file; "": into no file."""
    _thread.file = "'" + path.encode(errors="backslashreplace").decode() + "'" if path else ""


def heard():
    """Called by others that take a note of this kind."""
    global _theirs
    _theirs += 1


def rank_0_waits():
    """Whether rank 0 waits in such a read for this rank, whose main thread waits for a file of rank 0."""
    return _theirs > _ours and threading.current_thread() is threading.main_thread()


def refusal(path):
    """The error for this."""
    return _core.DisagreementError(
        f"rank {ranks.rank()} waits for the file '{path}' of rank 0, and rank 0 reads variables that are split between nodes "
        "(SYNCLINE_OPTIMIZER_STATE=split), which takes all ranks: call model.save and K.get_value of such variables on every rank"
    )
