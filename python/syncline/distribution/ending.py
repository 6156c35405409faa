"""How a job of several ranks ends: an exception that nobody catches ends it on every rank, and its traceback is printed once.

Exit codes need nothing here: leave() in python/binding/distributed.cc gets them. What is here is told earlier, prints, and does not wait.
"""

import os
import signal
import sys
import threading
import time

from syncline import _core
from syncline.distribution import quiet, ranks

# Where a thread waits for another one.
_WAITING = ("threading", "queue", "multiprocessing", "concurrent", "asyncio", "selectors")

# After a thread has died the main one is watched for a while. If it then waits so long, it waits in vain.
_WATCHED_SECONDS = 60.0
_IN_VAIN_SECONDS = 4.0


def watch():
    """From now on uncaught exceptions end the job."""
    process = os.getpid()
    previous, previous_in_thread = sys.excepthook, threading.excepthook

    def excepthook(kind, value, trace):
        if os.getpid() != process:
            return previous(kind, value, trace)
        time.sleep(_delay(value))
        with quiet.speaking():
            _say("ends the job:")
            previous(kind, value, trace)
        _end(exit_code(value))

    def thread_excepthook(what):
        if os.getpid() != process or issubclass(what.exc_type, SystemExit):
            return previous_in_thread(what)
        with quiet.speaking():
            _say("has lost a thread:")
            previous_in_thread(what)
        threading.Thread(target=_end_if_waited_for, name="syncline-ending", daemon=True).start()

    sys.excepthook = excepthook
    threading.excepthook = thread_excepthook


def _delay(error):
    # That another rank has ended is an effect; the cause, if it is an error, is that rank's to tell.
    return _core.report_delay() + (0.5 if "has ended, while rank" in str(error) else 0)


def exit_code(error):
    """What a program that this exception ends exits with, as docs/exit_codes.md says."""
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
            pass  # closed, or its reader is gone
    _core.abort(exit_code)


def _end_if_waited_for():
    """A program may do without a thread, but not if its main thread then waits for another one, and nothing comes."""
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
    with quiet.speaking():
        _say("ends the job: its main thread waits for another thread, and one has died, see above")
    _end(1)
