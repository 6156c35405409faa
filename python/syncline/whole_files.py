"""Files that are whole before they get their name, and a lock that keeps a folder to one job."""

import contextlib
import fcntl
import os
import time

# How long a job that has just been ended may take to let go of its folder.
_PATIENCE = 5.0

_held = set()  # (process, folder): a POSIX lock does not keep a process from itself


def write_whole(path, write, temporary=None):
    """Gives a new file this name, in place of an old one, once write(file) has filled it and it is on the disk.

    The temporary file (`path`.tmp) is always a new one, so that a link of that name is not written through. It is removed where
    something fails. Raises OSError, and what write raises.
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
    """Where the disk is full: writes over the file in one piece, and what the new text is shorter by is blank. For short texts.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, text.ljust(os.fstat(descriptor).st_size), 0)
    finally:
        os.close(descriptor)


def sync_folder(folder):
    """Names that files in the folder have got or lost are on the disk afterwards."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FolderLock:
    """Keeps a folder to this process while it is held. The file `.lock` in the folder names the holder.

    It is a POSIX lock, the same as C++ trainings take (io/files/folder_lock.h): it ends with the process however that ends, children do
    not inherit it, and network file systems have it. Where the file system has no locks, it locks nothing.
    """

    def __init__(self, folder):
        self._path, self._descriptor, self._mine = os.path.join(folder, ".lock"), None, None

    def acquire(self):
        """Waits a little for another holder. Raises BlockingIOError that names it, and OSError where the file cannot be made."""
        folder = os.path.dirname(self._path)
        mine = (os.getpid(), os.path.realpath(folder))
        if mine in _held:  # to open the file and to close it would end the lock
            raise BlockingIOError(f"another training of this process writes to '{folder}'")
        end = time.monotonic() + _PATIENCE
        while not self._try():
            if time.monotonic() > end:
                raise BlockingIOError(f"another job writes to '{folder}': {self._holder()}")
            time.sleep(0.1)
        self._mine = mine
        _held.add(mine)

    def release(self):
        """Does nothing if it is not held. In a forked process it leaves the lock to the one that took it."""
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
            self._descriptor = descriptor  # no locks here
            return True
        if not self._is_at_its_place(descriptor):  # its holder has removed it meanwhile
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
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
