"""The checkpoints of Keras trainings in a folder: names, order, and the link `latest`."""

import contextlib
import os
import re

from syncline.checkpoint.whole_files import sync_folder

NAME = re.compile(r"epoch-(\d{4,})(?:-batch-\d{6,})?\.h5")  # numbers of finished epochs and of finished batches of the next epoch

_TICK = 2_000_000_000  # nanoseconds by which every file system tells times apart


def epochs(path):
    """The number of finished epochs."""
    return int(NAME.fullmatch(os.path.basename(path))[1])


def latest(folder):
    """The target of the link `latest`, as a path in the folder."""
    return os.path.join(folder, os.path.basename(os.path.realpath(os.path.join(folder, "latest"))))


def age(path):
    """Sorts checkpoints by age, the oldest first. A file that cannot be looked at counts as the oldest."""
    with contextlib.suppress(OSError):
        return os.lstat(path).st_mtime_ns, path
    return 0, path


def newest_first(folder):
    """Paths of the checkpoints: first the target of `latest`, then the others, newest first. Raises OSError."""
    if not os.path.isdir(folder):
        return []
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if NAME.fullmatch(name)]
    paths.sort(key=age, reverse=True)
    target = latest(folder)
    return sorted(paths, key=lambda path: path != target)


def make_newest(file, folder):
    """Makes the open file newer than the checkpoints of the folder, also if the clock was set back."""
    newest = max((age(path)[0] for path in newest_first(folder)), default=0)
    if os.fstat(file.fileno()).st_mtime_ns <= newest:
        with contextlib.suppress(OSError):  # a file system that sets no times
            os.utime(file.fileno(), ns=(newest + _TICK, newest + _TICK))


def older_than_latest(folder):
    """Paths of the checkpoints that are older than the target of `latest`, or than the newest one without this link. The oldest first."""
    newest, *others = newest_first(folder) or [""]
    return [path for path in reversed(others) if age(path) < age(newest)]


def point_at(folder, name):
    """Makes `latest` a link to the checkpoint of this name. Raises OSError."""
    link = os.path.join(folder, "latest")
    if os.path.lexists(link + ".tmp"):
        os.remove(link + ".tmp")
    os.symlink(name, link + ".tmp")
    os.replace(link + ".tmp", link)
    sync_folder(folder)
