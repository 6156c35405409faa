"""Ranks that all look for a folder and then make it: one of them is the first, and the others take its folder for theirs.

Only who has looked, and found nothing, is told that it has made the folder. So one that was there before stays an error, and mkdir
stays a lock for those who make the folder without looking.
"""

import functools
import os
import pathlib

_KEPT = 1000

_missing = {}  # folders that this process has looked for in vain, the latest last


def _is_path(path):
    return isinstance(path, (str, bytes, os.PathLike))


def _place(path):
    return os.path.abspath(os.fsdecode(path))


def _remembering(question):
    @functools.wraps(question)
    def ask(path, *arguments, **keywords):
        answer = question(path, *arguments, **keywords)
        if not answer and _is_path(path):
            place = _place(path)
            _missing.pop(place, None)
            _missing[place] = True
            if len(_missing) > _KEPT:
                _missing.pop(next(iter(_missing)), None)
        return answer

    return ask


def _making(mkdir):
    @functools.wraps(mkdir)
    def make(path, *arguments, **keywords):
        looked = not keywords.get("dir_fd") and _is_path(path) and _missing.pop(_place(path), False)
        try:
            mkdir(path, *arguments, **keywords)
        except FileExistsError as error:
            if not os.path.isdir(path):
                raise
            if not looked:
                if hasattr(error, "add_note"):
                    error.add_note("Another rank may have made this folder: ask os.path.isdir first, or os.makedirs(..., exist_ok=True).")
                raise

    return make


def share():
    """From now on a rank takes a folder that has appeared since it looked as made."""
    for module, name in ((os.path, "exists"), (os.path, "isdir"), (pathlib.Path, "exists"), (pathlib.Path, "is_dir")):
        setattr(module, name, _remembering(getattr(module, name)))
    os.mkdir = _making(os.mkdir)
