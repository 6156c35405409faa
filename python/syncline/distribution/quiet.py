"""Output of rank 0 only. The other ranks discard text written to sys.stdout, and to sys.stderr except tracebacks; sys.__stdout__ and
sys.__stderr__ are not changed. SYNCLINE_OUTPUT=all in the environment lets every rank print."""

import contextlib
import io
import os
import sys

_unsilenced = False
_dropped = None  # the object that replaces sys.stdout on a silenced rank


def _is_wanted():
    """True for text of tracebacks, and of the interpreter itself, such as the text of SystemExit."""
    try:
        return sys._getframe(2).f_globals.get("__name__") == "traceback"
    except ValueError:
        return True


class _Tracebacks(io.TextIOBase):
    """A standard error that passes only the text of tracebacks, and inside `unsilenced` all text."""

    def __init__(self, stream):
        self._stream = stream

    encoding = property(lambda self: self._stream.encoding)
    errors = property(lambda self: self._stream.errors)

    def write(self, text):
        return self._stream.write(text) if _unsilenced or _is_wanted() else len(text)

    def writable(self):
        return True

    def flush(self):
        self._stream.flush()

    def fileno(self):
        # For faulthandler, which writes to the descriptor.
        return self._stream.fileno()


def silence():
    """Silences this process, unless SYNCLINE_OUTPUT=all."""
    if os.environ.get("SYNCLINE_OUTPUT", "") == "all":
        return
    if sys.stdout is not None:
        sys.stdout.flush()
        global _dropped
        _dropped = sys.stdout = open(os.devnull, "w", encoding=sys.stdout.encoding)
    if sys.stderr is not None:
        sys.stderr = _Tracebacks(sys.stderr)


@contextlib.contextmanager
def unsilenced():
    """Context manager: inside it all text passes to standard error."""
    global _unsilenced
    _unsilenced = True
    try:
        yield
    finally:
        _unsilenced = False


def say(text):
    """Prints a line on standard error, on any rank."""
    with unsilenced():
        print(f"syncline: {text}", file=sys.stderr)


@contextlib.contextmanager
def printing():
    """Context manager: inside it print() writes to the original standard output on any rank."""
    with contextlib.redirect_stdout(sys.__stdout__ if sys.stdout is _dropped and _dropped is not None else sys.stdout):
        yield
        sys.stdout.flush()
