"""Checks of untrusted HDF5 files. A process with limits reads the file first, because a damaged file can make HDF5 loop, crash, or
allocate all memory. tools/confined.h does the same with fork, which is not possible here: this process has threads.
"""

import os
import signal
import subprocess
import sys

# The limits are 60 s of processor time plus 1 s for each 20 MB of the file, and 1 GiB of memory plus 4 times the file's size. The limit
# of wall time is ten times that of processor time, because a file system that many ranks read from may be slow.
_SECONDS = 60
_MEMORY = 1 << 30
_REFUSED = 3  # the reader's exit status for an unreadable file; other positive ones mean that the reader could not start

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
            raise OSError(f"the values of '{item.name}' are in other files")
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
    """Raises OSError with the reason if some of the file cannot be read. Returns without a check if the reader cannot be started."""
    if not os.path.isfile(path):
        raise OSError("it is not a regular file")
    size = os.path.getsize(path)
    seconds = _SECONDS + size // 20_000_000
    command = [sys.executable or "python3", "-S", "-c", _READER, path, str(_MEMORY + 4 * size), str(seconds), *sys.path]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=10 * seconds, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise OSError(f"reading it took more than {10 * seconds} s and was stopped") from None
    except OSError:
        return
    if done.returncode == -signal.SIGXCPU:
        raise OSError(f"reading it took more than {seconds} s of processor time and was stopped; the file is damaged")
    if done.returncode < 0:
        raise OSError(f"the process that read it was killed by signal {-done.returncode}; the file is damaged")
    if done.returncode == _REFUSED:
        raise OSError(done.stderr.strip().rpartition("\n")[2])
