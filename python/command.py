#!/usr/bin/env python3
# The script `syncline` of an installed wheel: runs the command in the package's folder. It does not import the package, which
# would join the ranks of a job.
import importlib.util
import os
import sys

package = importlib.util.find_spec("syncline")
command = package and os.path.join(package.submodule_search_locations[0], "syncline")
if not command or not os.path.isfile(command):
    sys.exit("syncline: the package syncline of this Python has no command; install its wheel")
os.execv(command, [command, *sys.argv[1:]])
