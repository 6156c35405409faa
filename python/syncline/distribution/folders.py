"""Folders that every rank looks for and then makes: os.mkdir succeeds on all of them, although only one rank makes the folder.

mkdir of an existing folder succeeds only if this rank has looked for the folder before and not found it. Otherwise it raises
FileExistsError as usual, so mkdir without a look still works as a lock.
"""

import functools
import os
import pathlib

_KEPT = 1000  # entries of _missing

_missing = {}  # paths that this process has looked for and not found, the latest last


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
                    error.add_note("Another rank may have made this folder: call os.path.isdir first, or os.makedirs(..., exist_ok=True).")
                raise

    return make


def share():
    """Makes os.mkdir succeed from now on for a folder that has appeared since this rank looked for it."""
    for module, name in ((os.path, "exists"), (os.path, "isdir"), (pathlib.Path, "exists"), (pathlib.Path, "is_dir")):
        setattr(module, name, _remembering(getattr(module, name)))
    os.mkdir = _making(os.mkdir)
