"""Reads of variables. Those that are split between nodes (SYNCLINE_OPTIMIZER_STATE=split) take all ranks.

Rank 0 posts a note before each of these reads, so that a rank which waits for a file of rank 0 meanwhile gets an error at once.
"""

from syncline import _core
from syncline.distribution import ranks

# Each note of this kind, which differs from those of syncline.distribution.files and own_files.
NOTE = 3

# How often this rank has begun such a read, and how often rank 0 has, as far as its notes tell.
_ours = _theirs = 0

_file = ""  # that Keras writes now


def values_of(variables):
    """The values of variables, as NumPy arrays. Ranks that read split ones for different files get an error."""
    global _ours
    if ranks.is_rank() and _core.are_split(variables):
        _ours += 1
        if ranks.rank() == 0:
            _core.post_note(NOTE)
    return _core.batch_get_value(variables, _file)


def set_file(path):
    """From now on variables are read to be written into this file; "": for no file."""
    global _file
    _file = f"'{path}'" if path else ""


def heard():
    """Called by others that take a note of this kind."""
    global _theirs
    _theirs += 1


def require_rank_0(path):
    """Called while this rank waits for rank 0 to write a file. Raises DisagreementError if rank 0 waits for this rank meanwhile."""
    if _theirs > _ours:
        raise _core.DisagreementError(
            f"rank {ranks.rank()} waits for the file '{path}' of rank 0, and rank 0 reads variables that are split between nodes "
            "(SYNCLINE_OPTIMIZER_STATE=split), which takes all ranks: call model.save and K.get_value of such variables on every rank"
        )
