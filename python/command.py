#!/usr/bin/env python3
# The script `syncline` of an installed wheel: runs the command in the package's folder. It does not import the package, which
# would join the ranks of a job.
import importlib.util
import os
import sys

folder = importlib.util.find_spec("syncline").submodule_search_locations[0]
os.execv(os.path.join(folder, "syncline"), sys.argv)
