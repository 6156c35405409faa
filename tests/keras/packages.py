"""Runs the tests of Keras 2 packages on TensorFlow and on Syncline with one and two ranks (scripts/keras/packages).

usage: packages.py SOURCES [--tensorflow PYTHON PATH] [NAME...]

SOURCES has a folder NAME-VERSION for each package. Prints one line per package: the numbers of passed, failed and errors. An error is a
test whose setup or teardown fails, that cannot be collected, or during which the process ended; SOURCES/output holds the output. A test
that fails on any rank counts as failed. Tests that use TensorFlow itself or depend on the names of backends do not test a backend and are
counted separately. Fails if a test fails on Syncline and passes on TensorFlow; without --tensorflow, if any test fails.
"""

import collections
import dataclasses
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCH = os.path.join(HERE, "..", "mpi", "launch")
PROCESS_LIMIT, TEST_LIMIT = 900, 300  # seconds
# If the ranks' outcomes of a test differ, the first in this order counts. A test that only started becomes an error.
WORST_FIRST = ("error", "failed", "started", "tensorflow", "skipped", "passed")


@dataclasses.dataclass
class Setting:
    """How tests run: the backend's name, the Python program, the folders before the packages on its path, and the number of ranks."""

    title: str
    backend: str
    python: str
    path: str
    ranks: int = 1


def read_results(stem, ending):
    """Returns {test: (outcome, message)} over all ranks. `ending` describes how the process ended."""
    tests = {}
    for path in sorted(glob.glob(stem + ".*")):
        rank = {}
        with open(path, encoding="utf-8") as file:
            for test, outcome, message in map(json.loads, file):
                # A test may fail and then have an error in its teardown; the first message gives the reason.
                if rank.get(test, ("started",))[0] in ("started", "passed"):
                    rank[test] = outcome, message
        for test, found in rank.items():
            tests[test] = min(tests.get(test, ("passed", "")), found, key=lambda each: WORST_FIRST.index(each[0]))
    return {t: ("error", f"did not end: {ending}") if o == "started" else (o, m) for t, (o, m) in tests.items()}


def run(source, setting):
    """Returns ({test: (outcome, message)}, seconds) of one package in one setting."""
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(os.path.join(source, "tests"), os.path.join(work, "tests"))
        others = sorted(glob.glob(os.path.join(os.path.dirname(source), "*-*")))
        results = os.path.join(work, "results")
        environment = {
            **os.environ,
            "KERAS_BACKEND": setting.backend,
            "KERAS_HOME": os.path.join(work, "keras_home"),
            "PYTHONPATH": os.pathsep.join(filter(None, [setting.path, HERE, source, *others])),
            "RESULTS": results,
            "TMPDIR": work,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_USE_LEGACY_KERAS": "1",
        }
        command = [LAUNCH, os.path.basename(source), str(setting.ranks)] if setting.ranks > 1 else []
        command += [setting.python, "-W", "ignore", "-m", "pytest", "-p", "package_plugin", "-p", "no:cacheprovider", "--quiet"]
        command += ["--tb=short", "--disable-warnings", "--continue-on-collection-errors", f"--timeout={TEST_LIMIT}", "--rootdir=.", "tests"]
        start = time.monotonic()
        output = os.path.join(os.path.dirname(source), "output")
        os.makedirs(output, exist_ok=True)
        with open(os.path.join(output, f"{os.path.basename(source)}, {setting.title}"), "w", encoding="utf-8") as said:
            process = subprocess.Popen(
                command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
            try:
                ending = f"exit status {process.wait(PROCESS_LIMIT)}"
            except subprocess.TimeoutExpired:
                ending = f"longer than {PROCESS_LIMIT} s"
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        ending += f"; see {output}"
        tests = read_results(results, ending) or {"(no test ran)": ("error", ending)}
        return tests, time.monotonic() - start


def counts(tests):
    number = collections.Counter(outcome for outcome, _ in tests.values())
    return f"{number['passed']}/{number['failed']}/{number['error']}"


def defects(reference, tests):
    """Returns {test: message} of the tests that fail here. With a reference, only of those that pass in it or are missing in it."""
    return {
        test: message
        for test, (outcome, message) in tests.items()
        if outcome in ("failed", "error") and (reference is None or reference.get(test, ("passed",))[0] == "passed")
    }


def check(source, settings):
    """Returns (the package's line, its defects as lines)."""
    found = [run(source, setting) for setting in settings]
    reference = found[0][0] if settings[0].backend == "tensorflow" else None
    lines = []
    for setting, (tests, _) in zip(settings, found):
        if setting.backend != "tensorflow":
            lines += [f"{os.path.basename(source)}, {setting.title}: {t}: {m}" for t, m in sorted(defects(reference, tests).items())]
    apart = sum(outcome == "tensorflow" for outcome, _ in found[-1][0].values())
    cells = "".join(f"{counts(tests):>14}{seconds:5.0f} s" for tests, seconds in found)
    return f"{os.path.basename(source):42}{cells}{apart:14}", lines


def main(sources, *arguments):
    syncline = os.environ["SYNCLINE_PYTHONPATH"]
    settings = [Setting(f"{n} rank{'s' * (n > 1)}", "syncline", sys.executable, syncline, n) for n in (1, 2)]
    names = list(arguments)
    if names[:1] == ["--tensorflow"]:
        settings.insert(0, Setting("TensorFlow", "tensorflow", *names[1:3]))
        names = names[3:]
    everything = sorted(glob.glob(os.path.join(sources, "*-*")))
    chosen = [path for path in everything if not names or os.path.basename(path).rpartition("-")[0] in names]
    print(f"{'passed/failed/errors':42}" + "".join(f"{s.title:>14}{'':7}" for s in settings) + f"{'TensorFlow only':>14}")
    wrong = []
    for source in chosen:
        line, lines = check(source, settings)
        print(line, flush=True)
        wrong += lines
    print(*wrong, sep="\n")
    kind = "that TensorFlow does not have" if settings[0].backend == "tensorflow" else "of Syncline"
    print(f"packages: {len(chosen)} packages, {len(wrong)} failures {kind}")
    sys.exit(1 if wrong or not chosen or set(names) - {os.path.basename(c).rpartition("-")[0] for c in chosen} else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
