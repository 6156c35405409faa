"""syncline.keras_support.compat: only Keras 2 finds the names and behaviour that newer Python, numpy and h5py removed."""

import io
import os
import subprocess
import sys
import types
import warnings

import h5py
import numpy as np
import pytest

os.environ["KERAS_BACKEND"] = "syncline"

import keras  # noqa: E402

IN_KERAS = ["keras.callbacks", "keras_preprocessing.sequence", "keras_applications"]
OUTSIDE = ["__main__", "numpy.lib", "keras_tuner.tuners", "keras.src.saving"]


def run_as(module, code, **names):
    """Runs `code` as code of the module and returns its variables."""
    names["__name__"] = module
    exec(code, names)
    return names


def fresh(code, **environment):
    """Runs `code` in a new interpreter and returns its standard output and error."""
    environment = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("first", ["import keras", "import syncline, keras", "import numpy, h5py, inspect, syncline, keras"])
def test_keras_imports_in_any_order(first):
    assert "Using syncline backend" in fresh(first + "; keras.optimizers.SGD; assert keras.backend.backend() == 'syncline'")


def test_importing_us_imports_nothing_heavy():
    heavy = "{'keras', 'h5py', 'scipy', 'pandas', 'yaml'}"
    assert fresh(f"import syncline, sys; print({heavy} & set(sys.modules))") == "set()\n"


@pytest.mark.parametrize("module", IN_KERAS)
def test_old_names_inside(module):
    found = run_as(module, "from collections import Iterable, Mapping; import collections, inspect; s = collections.Sequence")
    assert issubclass(list, found["Iterable"]) and issubclass(dict, found["Mapping"]) and issubclass(tuple, found["s"])
    spec = run_as(module, "import inspect; s = inspect.ArgSpec([], None, None, (1,))")["s"]
    assert spec.defaults == (1,)
    found = run_as(module, "values = [np.bool, np.int, np.Inf, np.string_, np.unicode_]", np=np)
    assert found["values"][1:] == [int, np.inf, np.bytes_, np.str_] and np.dtype(found["values"][0]) == bool


@pytest.mark.parametrize("module", OUTSIDE)
def test_old_names_outside(module):
    for code in ["from collections import Iterable", "import collections; collections.Mapping", "import inspect; inspect.ArgSpec"]:
        with pytest.raises((ImportError, AttributeError), match="Iterable|Mapping|ArgSpec"):
            run_as(module, code)
    if np.lib.NumpyVersion(np.__version__) >= "1.24.0":
        with pytest.raises(AttributeError):
            run_as(module, "np.int", np=np)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        run_as(module, "np.nothing_of_this_name", np=np)


def test_getargspec_of_keras():
    assert keras.utils.generic_utils.getargspec(lambda a, b=2: a).defaults == (2,)


@pytest.fixture
def attributes(tmp_path):
    path = str(tmp_path / "attributes.h5")
    with h5py.File(path, "w") as file:
        file.attrs["ascii"] = "2.3.1".encode("utf8")
        file.attrs["utf8"] = "größer"
        file.attrs["list"] = [b"kernel:0", "größe:0".encode("utf8")]
        file.attrs["fixed"] = np.array([b"a", b"bc"])
        file.attrs["number"] = 3
    with h5py.File(path, "r") as file:
        yield file.attrs


def test_attributes_inside(attributes):
    code = "ascii, utf8, many, fixed, number = (a[n] for n in ('ascii', 'utf8', 'list', 'fixed', 'number')); got = a.get('ascii')"
    found = types.SimpleNamespace(**run_as("keras.engine.saving", code, a=attributes))
    assert found.ascii == found.got == b"2.3.1" and found.utf8 == "größer" and found.number == 3
    assert found.many.dtype.type == np.bytes_ and found.many.tolist() == [b"kernel:0", "größe:0".encode("utf8")]
    assert found.fixed.tolist() == [b"a", b"bc"]


def test_attributes_outside(attributes):
    assert attributes["ascii"] == attributes.get("ascii") == "2.3.1"
    assert attributes["list"].dtype.kind == "O" and attributes["list"][0] == "kernel:0"


def test_file_in_memory():
    code = """
with h5py.File("in-memory", driver="core", backing_store=False) as file:
    file["a"] = [1, 2]
    file.flush()
    image = file.fid.get_file_image()
"""
    assert run_as("keras.utils.io_utils", code, h5py=h5py)["image"][1:4] == b"HDF"
    with pytest.raises(OSError):
        run_as("__main__", code, h5py=h5py)
    with h5py.File("in-memory", "w", driver="core", backing_store=False) as file:
        assert not hasattr(file, "fid")


def test_hdf5_matrix_only_reads(tmp_path):
    path = str(tmp_path / "data.h5")
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(6).reshape(3, 2)
    os.chmod(path, 0o400)
    matrix = keras.utils.HDF5Matrix(path, "x")
    assert matrix[1:].tolist() == [[2, 3], [4, 5]] and keras.utils.HDF5Matrix.refs.pop(path).mode == "r"


@pytest.mark.parametrize("to", ["path", "stream"])
def test_model_is_saved_and_loaded(to, tmp_path):
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,)), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["acc"])
    x = np.arange(12, dtype="float32").reshape(4, 3)
    model.train_on_batch(x, x[:, :1])
    target = str(tmp_path / "model.h5") if to == "path" else io.BytesIO()
    model.save(target)
    if to == "stream":
        target.seek(0)
    loaded = keras.models.load_model(target)
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))
    assert len(loaded.optimizer.weights) == len(model.optimizer.weights)


def test_ragged_data_sets(tmp_path, monkeypatch):
    arrays = {"x_train": _ragged(), "x_test": _ragged(), "y_train": np.zeros(2), "y_test": np.zeros(2)}
    np.savez(tmp_path / "imdb.npz", **arrays)
    monkeypatch.setattr(keras.datasets.imdb, "get_file", lambda *_, **__: str(tmp_path / "imdb.npz"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (x, _), _ = keras.datasets.imdb.load_data()
    assert x.dtype == object and sorted(len(row) for row in x) == [3, 4]


def _ragged():
    rows = np.empty(2, dtype=object)
    rows[:] = [[4, 5], [6, 7, 8]]
    return rows


def test_lambda_infers_its_shape():
    K = keras.backend
    x = keras.layers.Input((5, 3))
    y = keras.layers.Lambda(lambda t: t[:, -1, :])(x)
    assert K.int_shape(y) == (None, 3) and y._keras_shape == (None, 3)
    both = keras.layers.Lambda(lambda t: [K.sum(t[0], axis=1), t[1]])([x, y])
    assert [t._keras_shape for t in both] == [(None, 3), (None, 3)]
    stated = keras.layers.Lambda(lambda t: t[:, -1, :], output_shape=(7,))(x)
    assert stated._keras_shape == (None, 7)
    assert keras.models.Model(x, keras.layers.Dense(2)(y)).predict(np.ones((4, 5, 3))).shape == (4, 2)


def test_names_keras_does_not_export():
    import syncline

    K = keras.backend
    for name in ["clear_session", "manual_variable_initialization", "image_dim_ordering", "set_image_dim_ordering"]:
        assert getattr(K, name) is getattr(syncline, name)
    assert K.get_variable_shape(K.zeros((2, 3))) == (2, 3)
    with pytest.raises(AttributeError, match="no_such_name"):
        K.no_such_name
    code = "import keras; keras.backend.clear_session; from keras.backend import get_variable_shape; print('found')"
    assert "found" in fresh(code)


SPAWNS = """
import multiprocessing

def work(_):
    import keras
    names = {"__name__": "keras.engine"}
    exec("import collections; seen = collections.Mapping.__name__", names)
    return names["seen"]

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map_async(work, [0]).get(60))
"""


def test_spawned_workers(tmp_path):
    program = tmp_path / "spawns.py"
    program.write_text(SPAWNS)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=100)
    assert done.stdout == "['Mapping']\n", done.stderr
