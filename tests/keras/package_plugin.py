"""pytest plugin for the tests of Keras 2 packages (packages.py). It prepares `import tensorflow` for the backend that KERAS_BACKEND
names, and writes each outcome at once, so that a process that ends early loses none.

Each rank writes the file RESULTS.RANK. A line is JSON: [test, outcome, message]. The outcome is started, passed, failed, error, skipped
or tensorflow. The last one means that the test, or the code under test, uses TensorFlow itself or depends on the names of backends, so
it does not test a backend.
"""

import importlib.abc
import importlib.machinery
import json
import os
import random
import re
import sys
import types

import numpy as np
import pytest

# Older packages use these names, which numpy 1.24 removed.
for _name, _type in {"bool": bool, "int": int, "float": float, "object": object}.items():
    if _name not in np.__dict__:
        setattr(np, _name, _type)

ASKS_TENSORFLOW = "asks TensorFlow itself"
# The errors of _NoTensorFlow, of K.tf (the module tensorflow), and of keras-rl for names of backends that it does not know.
NO_TEST_OF_A_BACKEND = re.compile(
    f"{ASKS_TENSORFLOW}|cannot import name .* from 'tensorflow|'keras.backend' has no attribute 'tf'|Unknown (Keras )?backend"
)


class _NoTensorFlow(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes `import tensorflow` succeed without TensorFlow. Each access to a name of the module raises an error with that name."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "tensorflow":
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)

        def __getattr__(name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(f"{ASKS_TENSORFLOW} for {spec.name}.{name}")

        module.__getattr__ = __getattr__
        return module

    def exec_module(self, module):
        pass


if os.environ["KERAS_BACKEND"] == "tensorflow":
    import tensorflow_1  # noqa: F401
else:
    sys.meta_path.append(_NoTensorFlow())

_results = open(os.environ["RESULTS"] + "." + os.environ.get("OMPI_COMM_WORLD_RANK", "0"), "w", encoding="utf-8")  # noqa: SIM115


def _write(test, outcome, message=""):
    if outcome in ("failed", "error") and NO_TEST_OF_A_BACKEND.search(message):
        outcome = "tensorflow"
    _results.write(json.dumps([test, outcome, message]) + "\n")
    _results.flush()


def _message(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr).strip().split("\n")[-1]
    return " ".join(text.split())[:300]


def pytest_runtest_logstart(nodeid):
    _write(nodeid, "started")


def pytest_runtest_logreport(report):
    if report.failed:
        _write(report.nodeid, "failed" if report.when == "call" else "error", _message(report))
    elif report.skipped:
        _write(report.nodeid, "skipped")
    elif report.when == "call":
        _write(report.nodeid, "passed")


def pytest_collectreport(report):
    if report.failed:
        _write(report.nodeid, "error", "cannot be collected: " + _message(report))


@pytest.fixture(autouse=True)
def same_numbers_in_each_run():
    random.seed(0)
    np.random.seed(0)
