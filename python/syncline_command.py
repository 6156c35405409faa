"""The command `syncline` of an installed wheel: runs the native command, which is in the package's folder.

A module of its own: importing the package would join the ranks of a job.
"""

import importlib.util
import os
import sys


def main():
    package = importlib.util.find_spec("syncline")
    command = package and os.path.join(package.submodule_search_locations[0], "syncline")
    if not command or not os.path.isfile(command):
        sys.exit("syncline: the package syncline of this Python has no command; install its wheel")
    os.execv(command, [command, *sys.argv[1:]])
