"""HDF5 files that nobody vouches for are read by a process with limits first: a damaged one can make HDF5 loop, crash, or ask for all
memory, and takes nothing with it there. As tools/confined.h does it; a process that computes cannot be forked for that, for it has threads.
"""

import os
import signal
import subprocess
import sys

# Of processor time, beside 1 for each 20 MB of the file; memory beside 4 times the file's size. A file system that many ranks read
# from may be slow, so the wall time has a limit ten times as long.
_SECONDS = 60
_MEMORY = 1 << 30
_REFUSED = 3  # the reader's exit status; any other one above 0 means that it could not start

_READER = """
import sys
sys.path[:] = sys.argv[4:]
import resource

def limit(kind, wanted):
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))

memory, seconds = map(int, sys.argv[2:4])
limit(resource.RLIMIT_CPU, seconds)
limit(resource.RLIMIT_CORE, 0)
import h5py

def read(item):
    for name in item.attrs:
        item.attrs[name]
    if isinstance(item, h5py.Dataset):
        if item.is_virtual or item.external:
            raise OSError(f"the values of '{item.name}' lie in other files")
        item[()]
    if isinstance(item, h5py.Group):
        for name in item:
            if not isinstance(item.get(name, getlink=True), h5py.HardLink):
                raise OSError(f"'{name}' in '{item.name}' is a link")
            read(item[name])

with open("/proc/self/statm") as file:
    memory += int(file.read().split()[0]) * resource.getpagesize()
limit(resource.RLIMIT_AS, memory)
try:
    with h5py.File(sys.argv[1], "r") as file:
        read(file)
except Exception as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(REFUSED)
""".replace("REFUSED", str(_REFUSED))


def check_hdf5(path):
    """Returns if all of the file can be read, or if no process can be started to find out. Raises OSError that says why not."""
    if not os.path.isfile(path):
        raise OSError("it is no regular file")
    size = os.path.getsize(path)
    seconds = _SECONDS + size // 20_000_000
    command = [sys.executable or "python3", "-S", "-c", _READER, path, str(_MEMORY + 4 * size), str(seconds), *sys.path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=10 * seconds, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise OSError(f"reading it was not done within {10 * seconds} s and was ended") from None
    except OSError:
        return
    if done.returncode == -signal.SIGXCPU:
        raise OSError(f"reading it was not done within {seconds} s of processor time and was ended; it is damaged")
    if done.returncode < 0:
        raise OSError(f"the process that read it was ended by signal {-done.returncode}; it is damaged")
    if done.returncode == _REFUSED:
        raise OSError(done.stderr.strip().rpartition("\n")[2])
