"""Atomic files, and locks: of a folder for one job, and among the ranks of a job for one write."""

import contextlib
import errno
import fcntl
import os
import time

# Seconds that acquire() waits for a job that is just ending to release its folder.
_PATIENCE = 5.0

_held = set()  # (process, folder): a POSIX lock does not exclude the process that holds it


def write_atomically(path, write, temporary=None):
    """Writes an atomic file: write(file) fills a temporary file, which replaces `path` when its data are on the disk.

    The temporary file (`path`.tmp) is always a new file, so a link of that name is not followed. It is removed after an error. Raises
    OSError, and the exceptions of `write`.
    """
    temporary = temporary or path + ".tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(os.path.dirname(path) or ".")


def replace_in_place(path, text):
    """Overwrites a short file in place, with one write; for full disks. Spaces pad the text to the length of the old one.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, text.ljust(os.fstat(descriptor).st_size), 0)
    finally:
        os.close(descriptor)


def sync_folder(folder):
    """Flushes the folder to the disk: names of files that were added, replaced or removed."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # a folder that may be written, but not read
        return os.sync()
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # this file system cannot flush a folder
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def alone_in(folder):
    """Context manager: excludes the other ranks that use it on this folder, also C++ ones (runtime/training/status.cc).

    A rank that holds the lock for more than a minute has a disk that hangs; the others then go on, as on a file system without locks.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            held.callback(os.close, descriptor)
            _lock_briefly(descriptor)
            held.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)  # a forked process may have a copy of the descriptor
        yield


def _lock_briefly(descriptor):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.001)


def make_folder(folder):
    """Makes the folder and its parents, if they are missing, and flushes their names to the disk. Raises OSError."""
    missing, path = [], os.path.abspath(folder)
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    for made in missing:
        sync_folder(os.path.dirname(made))


class FolderLock:
    """Reserves a folder for this process while it is held. The file `.lock` in the folder names the holder.

    It is the POSIX lock that C++ trainings take (io/files/folder_lock.h): it ends with the process however that ends, children do not
    inherit it, and network file systems support it. On a file system without locks it locks nothing.
    """

    def __init__(self, folder):
        self._path, self._descriptor, self._mine = os.path.join(folder, ".lock"), None, None

    def acquire(self):
        """Waits up to _PATIENCE seconds, then raises BlockingIOError that names the holder. Raises OSError if `.lock` cannot be created."""
        folder = os.path.dirname(self._path)
        mine = (os.getpid(), os.path.realpath(folder))
        if mine in _held:  # opening and closing the file again would release the lock
            raise BlockingIOError(f"another training of this process writes to '{folder}'")
        end = time.monotonic() + _PATIENCE
        while not self._try():
            if time.monotonic() > end:
                raise BlockingIOError(f"another job writes to '{folder}': {self._holder()}")
            time.sleep(0.1)
        self._mine = mine
        _held.add(mine)

    def release(self):
        """Does nothing if the lock is not held. In a forked process the parent keeps the lock."""
        if self._descriptor is not None:
            if self._mine[0] == os.getpid():
                with contextlib.suppress(OSError):
                    os.unlink(self._path)
            os.close(self._descriptor)
            self._descriptor = None
            _held.discard(self._mine)

    def _try(self):
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(descriptor)
            return False
        except OSError:
            self._descriptor = descriptor  # the file system has no locks
            return True
        if not self._is_at_its_place(descriptor):  # the holder has removed the file meanwhile
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        with contextlib.suppress(OSError):  # the disk is full: the lock holds without the text
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {os.uname().nodename}, since {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
        return True

    def _is_at_its_place(self, descriptor):
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self._path, follow_symlinks=False))
        except OSError:
            return False

    def _holder(self):
        try:
            with open(self._path, encoding="utf-8") as file:
                return file.readline().strip() or "its process is not known"
        except OSError as error:
            return str(error)
