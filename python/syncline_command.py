"""The command `syncline` of an installed wheel: runs the native command, which is in the package's folder beside this module.

A module of its own: importing the package would join the ranks of a job.
"""

import os
import sys


def main():
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "syncline", "syncline")
    if not os.path.isfile(command):
        sys.exit(f"syncline: '{command}' is missing; install the wheel")
    os.execv(command, [command, *sys.argv[1:]])
