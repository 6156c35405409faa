"""pytest plugin that runs Keras 2.3.1's own tests on a backend that is not Keras's own (scripts/keras/tests).

Keras names its backends in its tests: they test `keras.backend.tensorflow_backend` whichever backend runs, skip some tests on all
backends but TensorFlow, and clear the session for TensorFlow only. This plugin handles that without changes to Keras or its tests.
"""

import importlib.machinery
import os
import random
import sys
import types

import keras
import numpy as np
import pytest
from keras import backend as K

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.getcwd()

# Keras skips these on all backends but TensorFlow, although any complete backend passes them: by module, and by the mark's reason.
SKIPPED_MODULES = ("metrics_test", "metrics_confusion_matrix_test")
SKIPPED_REASONS = ("Need TensorFlow to __call__ a loss",)

# Tests that train a small network on random data and require an accuracy, which about one draw of weights in thirty misses.
TRAINING_MODULES = ("optimizers_test", "test_image_data_tasks", "test_temporal_data_tasks", "test_vector_data_tasks")


def expected_failures():
    """Returns {test id: reason}."""
    with open(os.path.join(HERE, "expected_failures.txt"), encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    return dict(line.split("  # ", 1) for line in lines)


def _alias_backends():
    # backend_test.py compares the first with numpy and, in tests for Theano, with the second. The second must be another object, because
    # the tests flip kernels for Theano.
    for name, module in (("tensorflow_backend", K), ("theano_backend", sys.modules["syncline"])):
        sys.modules["keras.backend." + name] = module
        setattr(K, name, module)
    # Two test modules import tensorflow and use only its version.
    tensorflow = types.ModuleType("tensorflow")
    tensorflow.__version__ = "1.15.0"
    tensorflow.__spec__ = importlib.machinery.ModuleSpec("tensorflow", None)
    sys.modules.setdefault("tensorflow", tensorflow)


def _tests_see_h5py_2():
    from syncline.keras_support import compat

    called_from_keras = compat.called_from_keras

    def called_from_keras_or_its_tests(depth=2):
        file = sys._getframe(depth).f_globals.get("__file__") or ""
        return file.startswith(TESTS) or called_from_keras(depth + 1)

    compat.called_from_keras = called_from_keras_or_its_tests


def pytest_configure():
    assert K.backend() == "syncline", f"KERAS_BACKEND is {K.backend()}"
    _alias_backends()
    _tests_see_h5py_2()


def _keep(mark, module):
    if mark.name not in ("skip", "skipif"):
        return True
    if module in SKIPPED_MODULES and mark.name == "skip":
        return False
    return mark.kwargs.get("reason") not in SKIPPED_REASONS


def pytest_collection_modifyitems(items):
    for item in items:
        for node in item.listchain():
            node.own_markers[:] = [mark for mark in node.own_markers if _keep(mark, item.module.__name__)]
        if item.module.__name__ in TRAINING_MODULES:
            item.add_marker(pytest.mark.flaky(max_runs=3, min_passes=1))
        # test_loss_weighting.py lists a precision for three backends only.
        getattr(item.module, "decimal_precision", {}).setdefault("syncline", 6)


@pytest.fixture(autouse=True)
def each_test_for_itself():
    # Many tests train on random data and require a loss or an accuracy; each run gets the same data.
    random.seed(0)
    np.random.seed(0)
    yield
    K.clear_session()


class _Results:
    def __init__(self):
        self.passed = set()
        self.skipped = set()
        self.failed = {}

    def pytest_runtest_logreport(self, report):
        # A test that the flaky plugin runs again counts by its last run.
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = crash.message if crash else str(report.longrepr)
            self.failed[report.nodeid] = " ".join(message.split())[:200]
            self.passed.discard(report.nodeid)
        elif report.skipped:
            self.skipped.add(report.nodeid)
        elif report.when == "call":
            self.passed.add(report.nodeid)
            self.failed.pop(report.nodeid, None)

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed[report.nodeid] = "cannot be collected: " + str(report.longrepr).strip().split("\n")[-1][:200]


RESULTS = _Results()


def pytest_sessionstart(session):
    session.config.pluginmanager.register(RESULTS)


def pytest_sessionfinish(session, exitstatus):
    if exitstatus == 1 and not RESULTS.failed.keys() - expected_failures().keys():
        session.exitstatus = 0


def pytest_terminal_summary(terminalreporter):
    expected = expected_failures()
    write = terminalreporter.write_line
    write(f"Keras {keras.__version__} on {K.backend()}")
    for test, message in sorted(RESULTS.failed.items()):
        write(f"{'expected' if test in expected else 'FAILED  '} {test}: {expected.get(test, message)}")
    for test in sorted(expected.keys() & RESULTS.passed):
        write(f"passes although it is listed: {test}")
    unexpected = len(RESULTS.failed.keys() - expected.keys())
    write(
        f"keras_tests: {len(RESULTS.passed)} passed, {len(RESULTS.failed)} failed ({unexpected} not expected), "
        f"{len(RESULTS.skipped)} skipped"
    )
