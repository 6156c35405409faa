"""What a script opens itself, every rank opens: two ranks that write one file are told of, once.

Rank 0 notes the files that it opens for writing, rank 1 compares them with its own. Other files than equally named ones are nobody's
business: a rank may write what it likes. Nothing is changed.
"""

import atexit
import contextlib
import hashlib
import os
import stat
import sys
import time

from syncline import _core
from syncline.distribution import quiet, ranks

_WRITES = os.O_WRONLY | os.O_RDWR

# So many files are enough to find the habit.
_KEPT = 1000

# How long a note of rank 0's may be on its way.
_SECONDS_AT_THE_END = 0.3

# Notes of this kind beside those of syncline.distribution.files.
KIND = 2

_by_rank_0, _here, _told = set(), {}, False


def _number(path):
    return int.from_bytes(hashlib.blake2b(path.encode(errors="replace"), digest_size=8).digest(), "little") & ~3 | KIND


def _opened(event, arguments):
    """Python's audit hook."""
    if event != "open" or not arguments[2] & _WRITES or _told or len(_here) >= _KEPT:
        return
    try:
        if isinstance(arguments[0], (str, bytes)) and ranks.is_rank():
            _note(os.path.abspath(os.fsdecode(arguments[0])))
    except Exception:
        pass  # at the end of the program; the file is opened all the same


def _note(path):
    # Caches and settings are not the script's, what stands in /dev is no file.
    if path.startswith(("/dev/", "/proc/", "/sys/")) or "/." in path or "/__pycache__/" in path:
        return
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.stat(path).st_mode):
            return  # a temporary file in there
    number = _number(path)
    new = number not in _here
    _here[number] = path
    if ranks.rank() == 1:
        _hear()
    elif new:
        _core.post_note(number)


def heard(note):
    """To be told of the notes of this kind that others take."""
    _by_rank_0.add(note)


def _hear():
    """Takes what rank 0 has noted, and says if both have written a file."""
    from syncline.distribution import files

    while files.take_note() is not None:
        pass
    _tell()


def _hear_the_last():
    end = time.monotonic() + _SECONDS_AT_THE_END
    with contextlib.suppress(RuntimeError):  # the job has failed
        while _here and not _told and time.monotonic() < end:
            _hear()
            time.sleep(0.005)


def _tell():
    global _told
    both = [path for number, path in _here.items() if number in _by_rank_0]
    if both and not _told:
        _told = True
        quiet.say(
            f"every rank writes '{both[0]}', as each file that the script opens itself; the last one wins. "
            "Let one rank do it, behind `if syncline.distributed.rank() == 0`, or put the rank into the name",
        )


def watch():
    """From now on files are noted."""
    if ranks.rank() < 2:
        sys.addaudithook(_opened)
    if ranks.rank() == 1:
        atexit.register(_hear_the_last)
