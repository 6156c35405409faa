"""Starts programs on several ranks, with a time limit."""

import os
import pathlib
import subprocess
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Ended:
    """How a program ended: exit code, standard output, standard error, seconds."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def __repr__(self):
        return f"exit code {self.code} after {self.seconds:.1f} s\n{self.out}\n{self.err}"


def launch(ranks, program, *arguments, limit=120, folder=None, **environment):
    """Runs a program (source, or a path) on so many ranks; 0: without mpirun. Killed after `limit` seconds."""
    if isinstance(program, pathlib.Path):
        command = [sys.executable, str(program), *arguments]
    else:
        command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    if ranks:
        command = [str(ROOT / "scripts" / "launch"), str(ranks), *command]
    environment = {**os.environ, "KERAS_BACKEND": "syncline", "PYTHONHASHSEED": "0", **environment}
    begin = time.monotonic()
    done = subprocess.run(
        ["timeout", "-k", "5", str(limit), *command], capture_output=True, text=True, env=environment, cwd=folder, stdin=subprocess.DEVNULL
    )
    return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)


def run(ranks, program, *arguments, **options):
    """As launch; the program must end well. Returns its standard output."""
    ended = launch(ranks, program, *arguments, **options)
    assert ended.code == 0, str(ended)
    return ended.out
