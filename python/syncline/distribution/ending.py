"""Uncaught exceptions of a job of several ranks: one ends the job on every rank, and its traceback is printed once.

leave() in python/binding/distributed.cc handles exit codes. The hooks of this file run before it, print, and do not wait.
"""

import os
import signal
import sys
import threading
import time

from syncline import _core
from syncline.distribution import quiet, ranks

# Modules whose functions wait for another thread.
_WAITING = ("threading", "queue", "multiprocessing", "concurrent", "asyncio", "selectors")

# After a thread has died, the main thread is watched for _WATCHED_SECONDS. If it waits at one place for _IN_VAIN_SECONDS, the job ends.
_WATCHED_SECONDS = 60.0
_IN_VAIN_SECONDS = 4.0


def watch():
    """Installs hooks that end the job on an uncaught exception."""
    process = os.getpid()
    previous, previous_in_thread = sys.excepthook, threading.excepthook

    def excepthook(kind, value, trace):
        if os.getpid() != process:
            return previous(kind, value, trace)
        time.sleep(_delay(value))
        with quiet.unsilenced():
            _say("ends the job:")
            previous(kind, value, trace)
        _end(exit_code(value))

    def thread_excepthook(what):
        if os.getpid() != process or issubclass(what.exc_type, SystemExit):
            return previous_in_thread(what)
        with quiet.unsilenced():
            _say("has lost a thread:")
            previous_in_thread(what)
        threading.Thread(target=_end_if_waited_for, name="syncline-ending", daemon=True).start()

    sys.excepthook = excepthook
    threading.excepthook = thread_excepthook


def _delay(error):
    # That another rank has ended is a consequence: the rank with the cause prints first.
    return _core.report_delay() + (0.5 if "has ended, while rank" in str(error) else 0)


def exit_code(error):
    """The exit code of a program that ends with this exception (docs/exit_codes.md)."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, _core.DisagreementError):
        return 65
    if isinstance(error, _core.StallError):
        return 66
    return 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def _say(what):
    print(f"syncline: rank {ranks.rank()} of {ranks.size()} {what}", file=sys.stderr)


def _end(exit_code):
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # the stream is closed, or its reader is gone
    _core.abort(exit_code)


def _end_if_waited_for():
    """Ends the job if the main thread waits for another thread without progress. A program may otherwise continue without the thread."""
    watched_until = time.monotonic() + _WATCHED_SECONDS
    main = threading.main_thread().ident
    place, since = None, 0.0
    while time.monotonic() < watched_until:
        time.sleep(0.05)
        frame = sys._current_frames().get(main)
        if frame is None:
            return
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _WAITING:
            place = None
        elif place != (id(frame), frame.f_lasti):
            place, since = (id(frame), frame.f_lasti), time.monotonic()
        elif time.monotonic() - since > _IN_VAIN_SECONDS:
            break
        del frame
    else:
        return
    with quiet.unsilenced():
        _say("ends the job: its main thread waits for another thread, and a thread has died (see above)")
    _end(1)
