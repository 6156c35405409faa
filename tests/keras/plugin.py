"""pytest plugin that lets Keras 2.3.1's own tests meet a backend which is not Keras's own (scripts/keras_tests).

Keras names its backends in its tests: they test `keras.backend.tensorflow_backend` whichever backend runs, skip what only TensorFlow
was trusted with, and clear the session for TensorFlow alone. All that is answered here; neither Keras nor its tests are changed.
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

# Skips that say "not TensorFlow" where any complete backend does it: the mark's reason, or the whole module's.
SKIPPED_MODULES = ("metrics_test", "metrics_confusion_matrix_test")
SKIPPED_REASONS = ("Need TensorFlow to __call__ a loss",)

# Tests that train a small network on random data and ask for an accuracy, which one draw of weights in some thirty misses.
TRAINING_MODULES = ("optimizers_test", "test_image_data_tasks", "test_temporal_data_tasks", "test_vector_data_tasks")


def expected_failures():
    """{test id: reason}"""
    with open(os.path.join(HERE, "expected_failures.txt"), encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    return dict(line.split("  # ", 1) for line in lines)


def _alias_backends():
    # backend_test.py compares the first with numpy and, where it has a test for Theano, with the second, which must be another object:
    # kernels for Theano it turns around.
    for name, module in (("tensorflow_backend", K), ("theano_backend", sys.modules["syncline"])):
        sys.modules["keras.backend." + name] = module
        setattr(K, name, module)
    # Two modules of tests import it and use its version only.
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
        # test_loss_weighting.py knows the precision of three backends.
        getattr(item.module, "decimal_precision", {}).setdefault("syncline", 6)


@pytest.fixture(autouse=True)
def each_test_for_itself():
    # Many tests train on random data and ask for a loss or an accuracy: the same data in each run.
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
