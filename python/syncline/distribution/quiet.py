"""Only rank 0 prints. On the other ranks what goes to sys.stdout and sys.stderr is dropped, tracebacks excepted; sys.__stdout__ and
sys.__stderr__ are left alone. SYNCLINE_OUTPUT=all in the environment lets every rank print."""

import contextlib
import io
import os
import sys

_speaks = False
_dropped = None  # what sys.stdout is where it is silenced


def _is_wanted():
    """Of what is written to standard error, tracebacks are, and what the interpreter writes itself, as the text of SystemExit."""
    try:
        return sys._getframe(2).f_globals.get("__name__") == "traceback"
    except ValueError:
        return True


class _Tracebacks(io.TextIOBase):
    """A standard error that lets only the module `traceback` through, and all while somebody is `speaking`."""

    def __init__(self, stream):
        self._stream = stream

    encoding = property(lambda self: self._stream.encoding)
    errors = property(lambda self: self._stream.errors)

    def write(self, text):
        return self._stream.write(text) if _speaks or _is_wanted() else len(text)

    def writable(self):
        return True

    def flush(self):
        self._stream.flush()

    def fileno(self):
        # For faulthandler, which writes past us.
        return self._stream.fileno()


def hush():
    """Silences this process."""
    if os.environ.get("SYNCLINE_OUTPUT", "") == "all":
        return
    if sys.stdout is not None:
        sys.stdout.flush()
        global _dropped
        _dropped = sys.stdout = open(os.devnull, "w", encoding=sys.stdout.encoding)
    if sys.stderr is not None:
        sys.stderr = _Tracebacks(sys.stderr)


@contextlib.contextmanager
def speaking():
    """Lets everything through to standard error meanwhile."""
    global _speaks
    _speaks = True
    try:
        yield
    finally:
        _speaks = False


def say(text):
    """A line on this rank's standard error, whatever rank it is."""
    with speaking():
        print(f"syncline: {text}", file=sys.stderr)


@contextlib.contextmanager
def printing():
    """Lets print through meanwhile."""
    with contextlib.redirect_stdout(sys.__stdout__ if sys.stdout is _dropped and _dropped is not None else sys.stdout):
        yield
        sys.stdout.flush()
