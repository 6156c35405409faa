"""Starts programs on several ranks, with a time limit.

tests/mpi/launch chooses the layout of the ranks by the test's name. A test that depends on a layout names it: `layout="one_node"`.
"""

import os
import pathlib
import subprocess
import sys
import textwrap
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYOUTS = ("one_node", "by_node", "messages")


class Ended:
    """How a program ended: exit code, standard output, standard error, seconds."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def __repr__(self):
        return f"exit code {self.code} after {self.seconds:.1f} s\n{self.out}\n{self.err}"


def on_ranks(ranks, command, layout=None):
    """Returns the command that runs `command` on this number of ranks; 0: without mpirun."""
    if not ranks:
        return command
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0].rpartition("/")[2]
    return [str(ROOT / "tests" / "mpi" / "launch"), layout or test or "one_node", str(ranks), *command]


def launch(ranks, program, *arguments, limit=120, folder=None, layout=None, **environment):
    """Runs a program (source text or a path) on this number of ranks; 0: without mpirun. It is killed after `limit` seconds."""
    if isinstance(program, pathlib.Path):
        command = [sys.executable, str(program), *arguments]
    else:
        command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    command = on_ranks(ranks, command, layout)
    environment = {**os.environ, "KERAS_BACKEND": "syncline", "PYTHONHASHSEED": "0", **environment}
    begin = time.monotonic()
    done = subprocess.run(
        ["timeout", "-k", "5", str(limit), *command], capture_output=True, text=True, env=environment, cwd=folder, stdin=subprocess.DEVNULL
    )
    if done.returncode == 77 and layout == "by_node":
        pytest.skip(done.stdout)
    return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - begin)


def run(ranks, program, *arguments, **options):
    """Calls launch(), requires exit code 0, and returns the standard output."""
    ended = launch(ranks, program, *arguments, **options)
    assert ended.code == 0, str(ended)
    return ended.out
