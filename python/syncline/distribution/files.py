"""Files that Keras writes (saved models and weights, checkpoints, logs, pictures): only rank 0 writes them.

On the other ranks the same calls write to memory or nowhere, and return when rank 0's file is complete, so later code finds it on every
rank. Rank 0 never waits; another rank waits only if it calls the same function with the same name at the same place: after as many
steps. So a script that saves behind `if rank() == 0` does not hang. A file whose name is not rank 0's (tempfile, uuid), and files that
the script opens itself, are written by each rank.
"""

import collections
import contextlib
import fcntl
import functools
import hashlib
import inspect
import io
import os
import time

from syncline import _core
from syncline.distribution import folders, own_files, quiet, ranks, reads
from syncline.distribution.collectives import place
from syncline.keras_support.compat import called_from_keras
from syncline.keras_support.import_hook import after_import

# How long another rank waits for rank 0 to begin the file: in general, and if rank 0 has begun another file at this place that this rank
# does not write, so the names may differ. Then the rank writes its own file.
_SECONDS, _SECONDS_AFTER_OTHERS = 60, 5

# On ranks other than 0, by a file's number: how often this rank was to write it, and how often rank 0 has begun and completed it.
_ours, _begun, _ended = collections.Counter(), collections.Counter(), collections.Counter()

_open_files = {}  # by path: files of Keras's modules; one of a fit that raised stays open

_temporary_names = {}  # random names made by tempfile, the latest last
_TEMPORARY_NAMES = 1000

_PLACE = 0xFFFF << 2  # the bits of a file's number that tell the place

_told_of_names = _told_of_folders = False


def _is_path(path):
    return isinstance(path, (str, bytes, os.PathLike))


def _number(path):
    # Of the path as the program spells it, and of the place: a file that rank 0 alone has written earlier is another one. A note with this
    # number means that rank 0 has begun the file, with number | 1: completed.
    number = int.from_bytes(hashlib.blake2b(os.fsencode(path), digest_size=8).digest(), "little")
    return number & ~_PLACE & ~3 | place.calls << 2 & _PLACE


def _others(counts, number):
    """Whether rank 0 has begun or completed, by these counts, files at the place of this number that this rank does not write."""
    return any(count > _ours[other] for other, count in counts.items() if not (other ^ number) & _PLACE)


def _is_of_this_process(path):
    return any(name in part for part in os.fsdecode(path).split(os.sep) for name in _temporary_names)


def _begin(path):
    """Called before a file that rank 0 writes and the other ranks drop. Returns its number."""
    number = _number(path)
    if ranks.is_rank() and ranks.rank() == 0:
        _core.post_note(number)
    elif ranks.is_rank():
        _ours[number] += 1
    return number


def take_note():
    """Takes the next note of rank 0 and returns it; None if there is none."""
    note = _core.take_note()
    if note is not None:
        if note == reads.NOTE:
            reads.heard()
        elif note & own_files.KIND:
            own_files.heard(note)
        else:
            (_ended if note & 1 else _begun)[note & ~1] += 1
    return note


def _end(path, number, watched=(), needed=True, tell=True):
    """On rank 0: posts that the file is complete. On others: waits for this. Returns False if rank 0 does not write the file.

    `watched`: paths whose changes show that rank 0 goes on (default: the file). Without them for wait_limit, raises StallError if the
    caller needs the file.
    """
    if not ranks.is_rank():
        return True
    name = os.fsdecode(path)
    if ranks.rank() == 0:
        _core.post_note(number | 1)
        return True
    watched = watched or (path,)
    last, states = time.monotonic(), list(map(_state, watched))
    while _ended[number] < _ours[number]:
        note = take_note()
        if note is not None:
            last = last if note & own_files.KIND else time.monotonic()
            continue
        begun, others = _begun[number] >= _ours[number], _others(_ended, number)
        if reads.rank_0_waits() and (begun or not others):
            raise reads.refusal(name)
        limit = _limit(begun, others or _others(_begun, number))
        if time.monotonic() - last > limit:
            before, states = states, list(map(_state, watched))
            if begun and states != before:
                last = time.monotonic()
                continue
            if begun and needed:
                raise _core.StallError(f"rank 0 has begun to write '{name}', and has not gone on for {limit:g} s (SYNCLINE_WAIT_LIMIT)")
            _ours[number] -= 1
            if not begun:
                _tell_of_names(path)
            return begun
        time.sleep(0.001)
    if _begun[number] == _ended[number] == _ours[number]:  # saves at later places have other numbers
        for counts in (_begun, _ended, _ours):
            del counts[number]
    if tell:
        _tell_of_folders(path)
    return True


def _limit(begun, others):
    """How many seconds a rank waits for the next note of rank 0. `others`: rank 0 writes files here that this rank does not."""
    if begun:
        return _core.wait_limit()
    if reads.rank_0_waits():
        return 0  # the names differ: rank 0 has written its file, and goes on
    return _SECONDS_AFTER_OTHERS if others else _SECONDS


def _give_up(number):
    """Called instead of _end() if the file cannot be opened. This rank does not wait for it, and the others see that rank 0 has ended."""
    if ranks.is_rank() and ranks.rank() == 0:
        _core.post_note(number | 1)


def _state(path):
    """Size and time of the last change of a file; None if there is none."""
    with contextlib.suppress(OSError):
        state = os.stat(path)
        return state.st_size, state.st_mtime_ns
    return None


def _tell_of_names(path):
    global _told_of_names
    if ranks.rank() == 1 and not _told_of_names:
        _told_of_names = True
        quiet.say(
            f"rank 1 writes '{os.fsdecode(path)}' itself, because rank 0 writes no file of this name. If the name depends on the "
            "clock, use rank 0's: name = syncline.distributed.broadcast(name)",
        )


def _tell_of_folders(path):
    global _told_of_folders
    if ranks.local_rank() == 0 and not _told_of_folders and not os.path.exists(path):
        _told_of_folders = True
        quiet.say(
            f"rank {ranks.rank()} does not find '{os.fsdecode(path)}', which rank 0 has written. If the script has not removed "
            "it, save to a folder that all nodes share",
        )


def _temporary_files(tempfile):
    names = tempfile._RandomNameSequence
    original = names.__next__

    def __next__(self):
        name = original(self)
        _temporary_names[name] = True
        if len(_temporary_names) > _TEMPORARY_NAMES:
            _temporary_names.pop(next(iter(_temporary_names)), None)
        return name

    names.__next__ = __next__


def _hdf5(h5py):
    File = h5py.File
    if hasattr(File.__init__, "of_every_rank"):
        return
    original, original_close = File.__init__, File.close

    @functools.wraps(original)
    def __init__(self, name, mode=None, *arguments, **keywords):
        plain = _is_path(name) and mode not in (None, "r") and not arguments and "driver" not in keywords
        ours = plain and called_from_keras() and not _is_of_this_process(name)
        if ours:
            number = _begin(name)
        elif plain:
            own_files.opened(name)
        opened = name
        if ours and ranks.rank() != 0:
            if mode not in ("a", "r+") or not os.path.exists(name):
                # HDF5 would first read an old file of that name, which rank 0 truncates meanwhile: HDF5 then loops forever.
                mode, opened = "w", f"{os.fspath(name)}.rank{ranks.rank()}"
            keywords.update(driver="core", backing_store=False)
        # A missing mode stays missing: its meaning depends on h5py's version and on syncline.keras_support.compat.
        try:
            original(self, opened, *(() if mode is None else (mode,)), *arguments, **keywords)
        except BaseException:
            if ours:
                _give_up(number)
            raise
        if ours:
            self._for_all = name, number
            reads.set_file(os.fsdecode(name))

    @functools.wraps(original_close)
    def close(self):
        name, number = self.__dict__.pop("_for_all", (None, 0))
        if name is None:
            return original_close(self)
        reads.set_file("")
        if ranks.rank() != 0 and not _end(name, number):
            self.flush()
            with open(name, "wb") as file:
                file.write(self.id.get_file_image())
        try:
            original_close(self)
        finally:
            if ranks.rank() == 0:
                _end(name, number)

    __init__.of_every_rank = original
    File.__init__, File.close = __init__, close


def _open(path, mode="r", *arguments, **keywords):
    """open() for modules of Keras: rank 0 writes the file, other ranks write to /dev/null."""
    if not _is_path(path) or not set(mode) & set("wax+") or _is_of_this_process(path):
        return io.open(path, mode, *arguments, **keywords)
    name = os.fsdecode(path)
    earlier, number = _open_files.get(name) or (None, _begin(path))
    if earlier is not None:
        with contextlib.suppress(OSError, ValueError):
            earlier.flush()  # else it would write over the new file's text when it is collected
    try:
        file = io.open(path if ranks.rank() == 0 else os.devnull, mode, *arguments, **keywords)
    except BaseException:
        if earlier is None:
            _give_up(number)
        raise
    if earlier is not None:
        del earlier.close  # the new file's close() tells of the end
    close = file.close

    def close_for_all():
        try:
            close()
        finally:
            if _open_files.get(name, (None,))[0] is file:
                del _open_files[name]
                _end(path, number, needed=False)

    _open_files[name] = file, number
    file.close = close_for_all
    return file


class _Io:
    """The module io with _open() as open()."""

    open = staticmethod(_open)

    def __getattr__(self, name):
        return getattr(io, name)


def _callbacks(module):
    if hasattr(module, "__path__"):
        return  # a package, which opens no files itself
    module.open = _open
    if hasattr(module, "io"):
        module.io = _Io()
    # A logger whose `fit` has raised is collected at another time on each rank. Its file stays begun until it is opened again.
    if "__del__" in vars(module.CSVLogger):
        del module.CSVLogger.__del__
    if ranks.rank() != 0:
        module.RemoteMonitor.on_epoch_end = lambda self, epoch, logs=None: None


def _by_rank_0(module, name, parameter):
    """Lets only rank 0 run a function that writes the file named by this parameter."""
    original = getattr(module, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def function(*arguments, **keywords):
        bound = signature.bind(*arguments, **keywords)
        bound.apply_defaults()
        path = bound.arguments[parameter]
        if not _is_path(path) or _is_of_this_process(path):
            return original(*arguments, **keywords)
        number = _begin(path)
        if ranks.rank() != 0:
            return None if _end(path, number) else original(*arguments, **keywords)
        try:
            return original(*arguments, **keywords)
        finally:
            _end(path, number)

    setattr(module, name, function)


class _NoPicture:
    def save(self, *arguments, **keywords):
        pass


def _saved_batches(module):
    # These modules make pictures only to save them; only rank 0 does.
    if ranks.rank() != 0:
        module.array_to_img = lambda *arguments, **keywords: _NoPicture()


def _questions(module):
    if ranks.rank() != 0:
        module.ask_to_proceed_with_overwrite = lambda filepath: False


@contextlib.contextmanager
def _alone_in(folder):
    """Context manager: a lock among all processes that fetch files to Keras's folder. Yields its file, or None if it cannot be made."""
    with contextlib.ExitStack() as held:
        try:
            os.makedirs(folder, exist_ok=True)
            lock = held.enter_context(open(os.path.join(folder, ".syncline.lock"), "a+"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            lock = None
        yield lock


def _downloads(module):
    """Lets one rank fetch and unpack a file that the others then find. A lock decides, so any rank may be the first or the only one."""
    original = module.get_file
    signature = inspect.signature(original)

    def after_rank_0(bound, folder):
        name = bound.arguments["fname"]
        path = os.path.join(os.path.expanduser(folder), bound.arguments.get("cache_subdir", "datasets"), name)
        number = _begin(name)
        if ranks.rank() != 0:
            if _end(name, number, (path, path + ".tar.gz"), tell=False) and bound.arguments.get("extract"):
                bound.arguments["extract"] = False
            return original(*bound.args, **bound.kwargs)
        try:
            return original(*bound.args, **bound.kwargs)
        finally:
            _end(name, number)

    @functools.wraps(original)
    def get_file(*arguments, **keywords):
        bound = signature.bind(*arguments, **keywords)
        folder = bound.arguments.get("cache_dir") or os.environ.get("KERAS_HOME") or os.path.join("~", ".keras")
        with _alone_in(os.path.expanduser(folder)) as lock:
            if not ranks.is_rank():
                return original(*arguments, **keywords)
            if lock is None:  # then rank 0 is the first
                return after_rank_0(bound, folder)
            # The lock file lists the files that this job has unpacked.
            lock.seek(0)
            job, *unpacked = lock.read().splitlines() or [""]
            unpacked = unpacked if job == ranks.job() else []
            if bound.arguments.get("extract") and bound.arguments["fname"] in unpacked:
                bound.arguments["extract"] = False
            with quiet.printing():  # on the rank that fetches it
                path = original(*bound.args, **bound.kwargs)
            if bound.arguments.get("extract"):
                lock.truncate(0)
                print(ranks.job(), *unpacked, bound.arguments["fname"], sep="\n", file=lock, flush=True)
            return path

    module.get_file = get_file


def write_on_primary():
    """Lets rank 0 write the files of Keras from now on."""
    folders.share()
    own_files.watch()
    after_import("tempfile", _temporary_files)
    after_import("h5py", _hdf5)
    after_import("keras.callbacks", _callbacks)  # Keras 2.2
    after_import("keras.callbacks.callbacks", _callbacks)
    after_import("keras.utils.io_utils", _questions)
    after_import("keras.utils.vis_utils", lambda module: _by_rank_0(module, "plot_model", "to_file"))
    after_import("keras.utils.data_utils", _downloads)
    after_import("keras_preprocessing.image.utils", lambda module: _by_rank_0(module, "save_img", "path"))
    after_import("keras_preprocessing.image.iterator", _saved_batches)
    after_import("keras_preprocessing.image.numpy_array_iterator", _saved_batches)
