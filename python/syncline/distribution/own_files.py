"""A warning, printed once, about files that the script itself opens for writing on several ranks.

Every rank opens such files. Rank 0 posts a note for each file that it opens for writing, and rank 1 compares them with its own. Files
with different names are not reported. No file operation is changed.
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

# The first files of a program are enough to find a case.
_KEPT = 1000

# How long rank 1 waits at its end for notes of rank 0 that are still in transit.
_SECONDS_AT_THE_END = 0.3

# The lowest bits of notes of this kind, which differ from those of syncline.distribution.files.
KIND = 2

_by_rank_0, _here, _told = set(), {}, False


def _number(path):
    return int.from_bytes(hashlib.blake2b(path.encode(errors="replace"), digest_size=8).digest(), "little") & ~3 | KIND


def _hook(event, arguments):
    """Audit hook of Python."""
    if event == "open" and arguments[2] & _WRITES and isinstance(arguments[0], (str, bytes)):
        opened(arguments[0])


def opened(path):
    """Called when the script opens a file for writing, if possible before it is opened."""
    if _told or len(_here) >= _KEPT:
        return
    try:
        if ranks.is_rank() and ranks.rank() < 2:
            _note(os.path.abspath(os.fsdecode(path)))
    except Exception:
        pass  # for example at the end of the program; the file must be opened anyway


def _note(path):
    # Ignores caches and settings, which are not the script's, and devices.
    if path.startswith(("/dev/", "/proc/", "/sys/")) or "/." in path or "/__pycache__/" in path:
        return
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.stat(path).st_mode):
            return  # an unnamed temporary file (O_TMPFILE) in this folder
    number = _number(path)
    new = number not in _here
    _here[number] = path
    if ranks.rank() == 1:
        _hear()
    elif new:
        _core.post_note(number)


def heard(note):
    """Called by others that take a note of this kind."""
    _by_rank_0.add(note)


def _hear():
    """Takes the notes of rank 0, and prints the warning if both ranks have opened a file."""
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
            f"every rank writes '{both[0]}', and the file of the last rank remains: all ranks open the files that the script opens itself. "
            "Write it on one rank, behind `if syncline.distributed.rank() == 0`, or put the rank into the name",
        )


def watch():
    """Installs the hook on ranks 0 and 1."""
    if ranks.rank() < 2:
        sys.addaudithook(_hook)
    if ranks.rank() == 1:
        atexit.register(_hear_the_last)
