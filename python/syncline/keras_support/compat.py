"""Provides to Keras 2.2.5 and 2.3.1 what newer versions of Python, numpy and h5py have removed. `syncline` imports this module first.

No file of Keras is changed. Replacements are visible only to callers in Keras, which the calling frame shows; other code in the process
sees the unchanged Python, numpy and h5py. This module imports nothing large: h5py, numpy and Keras's modules are patched when they are
imported. Spawned worker processes import Keras, and so this module, again.
"""

import collections
import collections.abc
import functools
import itertools
import sys
import warnings

from syncline.keras_support.import_hook import after_import

_KERAS = ("keras", "keras_applications", "keras_preprocessing")

# Modules whose frames may lie between Keras and the patched function.
_BETWEEN = (
    "importlib._bootstrap",
    "_frozen_importlib",
    "_collections_abc",
    "collections.abc",
    "h5py._hl.base",
    "syncline.distribution.files",
)


def called_from_keras(depth=2):
    """True if the function that called our caller (depth 2), or the next function up the stack (depth 3), is code of Keras 2."""
    frame = sys._getframe(depth)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name not in _BETWEEN:
            # Keras 3 has all its code in keras.src and needs no patches.
            return name.partition(".")[0] in _KERAS and not name.startswith("keras.src")
        frame = frame.f_back
    return False


def _offer(module, names):
    """Makes removed attributes of the module, {name: value}, visible to callers in Keras."""
    previous = module.__dict__.get("__getattr__")
    if hasattr(previous, "syncline_names"):
        previous.syncline_names.update(names)
        return

    def __getattr__(name):
        if name in names and called_from_keras():
            return names[name]
        if previous is not None:
            return previous(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    __getattr__.syncline_names = names
    module.__getattr__ = __getattr__


def _mend_collections(collections):
    # Python 3.10 removed the abstract classes from this module.
    _offer(collections, {name: getattr(collections.abc, name) for name in collections.abc.__all__})


def _mend_inspect(inspect):
    # Python 3.11 removed ArgSpec.
    if not hasattr(inspect, "ArgSpec"):
        _offer(inspect, {"ArgSpec": collections.namedtuple("ArgSpec", "args varargs keywords defaults")})


def _mend_numpy(numpy):
    # numpy 1.24 removed the names of Python's types, 2.0 older names of its own types.
    names = {"bool": bool, "int": int, "float": float, "complex": complex, "object": object, "str": str}
    names.update(Inf=numpy.inf, NaN=numpy.nan, string_=numpy.bytes_, unicode_=numpy.str_, float_=numpy.float64)
    _offer(numpy, names)


class _RaggedArrays:
    """numpy with array() of old versions: lists of different lengths give an array of dtype object."""

    def __init__(self, numpy):
        self._numpy = numpy

    def __getattr__(self, name):
        return getattr(self._numpy, name)

    def array(self, values, *arguments, **keywords):
        if arguments or keywords:
            return self._numpy.array(values, *arguments, **keywords)
        # numpy until 1.23 warns; newer versions raise ValueError.
        warning = getattr(self._numpy, "exceptions", self._numpy).VisibleDeprecationWarning
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", warning)
                return self._numpy.array(values)
        except (ValueError, warning):
            return self._numpy.array(values, dtype=object)


def _mend_dataset(module):
    if not isinstance(module.np, _RaggedArrays):
        module.np = _RaggedArrays(module.np)


def _mend_h5py(h5py):
    if "fid" not in h5py.File.__dict__:
        h5py.File.fid = property(_file_id)
        h5py.File.__init__ = _writable_in_memory(h5py.File.__init__)
        h5py.AttributeManager.__getitem__ = _bytes_as_written(h5py, h5py.AttributeManager.__getitem__)


def _file_id(file):
    if called_from_keras():
        return file.id
    raise AttributeError(f"{type(file).__name__!r} object has no attribute 'fid'")


def _writable_in_memory(original):
    @functools.wraps(original)
    def __init__(self, name, *arguments, **keywords):
        # Without a mode h5py 2 opened a file for writing if possible, h5py 3 opens it for reading. Keras has two such calls: one writes
        # to a file in memory; HDF5Matrix only reads, which several processes may do at the same time.
        if not arguments and "mode" not in keywords and keywords.get("driver") == "core" and called_from_keras():
            keywords["mode"] = "a"
        original(self, name, *arguments, **keywords)

    return __init__


def _bytes_as_written(h5py, original):
    """h5py 3 decodes all strings of variable length; h5py 2 decoded only those marked as UTF-8, and Keras decodes the others."""

    @functools.wraps(original)
    def __getitem__(self, name):
        value = original(self, name)
        of_strings = isinstance(value, str) or getattr(getattr(value, "dtype", None), "kind", "") == "O"
        if not of_strings or not called_from_keras():
            return value
        stored = self.get_id(name).get_type()
        if not isinstance(stored, h5py.h5t.TypeStringID) or stored.get_cset() != h5py.h5t.CSET_ASCII:
            return value
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        numpy = sys.modules["numpy"]
        return numpy.array([text.encode("utf-8", "surrogateescape") for text in value.flat], "S").reshape(value.shape)

    return __getitem__


# Documented functions that keras/backend/__init__.py does not import from backends other than Keras's own.
_NOT_EXPORTED = (
    "clear_session",
    "get_session",
    "manual_variable_initialization",
    "get_variable_shape",
    "image_dim_ordering",
    "set_image_dim_ordering",
)


def _keras_uses_us():
    load_backend = sys.modules.get("keras.backend.load_backend")
    return getattr(load_backend, "_BACKEND", None) == "syncline"


def _complete_backend(backend):
    if "__getattr__" in backend.__dict__:
        return

    def __getattr__(name):
        # Looked up late, because Keras imports `syncline` while both modules are still being executed.
        if name in _NOT_EXPORTED and _keras_uses_us():
            return getattr(sys.modules["syncline"], name)
        raise AttributeError(f"module {backend.__name__!r} has no attribute {name!r}")

    backend.__getattr__ = __getattr__


def _infer_shape_of_lambda(core):
    original = core.Lambda.compute_output_shape
    if hasattr(original, "without_inference"):
        return

    def compute_output_shape(self, input_shape):
        # Keras infers the shape for two backends by name and returns the input's shape for all others.
        if self._output_shape is not None or not _keras_uses_us():
            return original(self, input_shape)
        K = core.K
        if isinstance(input_shape, list):
            inputs = [K.placeholder(shape=s, dtype=d) for s, d in zip(input_shape, self._input_dtypes)]
        else:
            inputs = K.placeholder(shape=input_shape, dtype=self._input_dtypes)
        outputs = self.call(inputs)
        if isinstance(outputs, list):
            return [K.int_shape(output) for output in outputs]
        return K.int_shape(outputs)

    compute_output_shape.without_inference = original
    core.Lambda.compute_output_shape = compute_output_shape


def _number_tensors(generic_utils):
    # Keras stores what belongs to a layer's call, such as its updates, under id() of the inputs. TensorFlow's graph keeps every tensor. Ours
    # does not, so another tensor may get the id of one that is gone, and with it that one's updates.
    numbers = itertools.count()

    def number(x):
        try:
            if not hasattr(x, "_syncline_number"):
                x._syncline_number = f"tensor {next(numbers)}"
            return x._syncline_number
        except AttributeError:  # None, for example
            return str(id(x))

    generic_utils.object_list_uid = lambda objects: ", ".join(map(number, generic_utils.to_list(objects)))


def _mend_metrics(metrics):
    # Keras saves a metric object as a dict, but `get` takes no dicts, so a model with such a metric could not be loaded.
    original = metrics.get

    def get(identifier):
        if not isinstance(identifier, dict):
            return original(identifier)
        kind = identifier["class_name"]  # load_model puts a class of custom_objects in the place of its name
        return kind.from_config(identifier["config"]) if isinstance(kind, type) else metrics.deserialize(identifier)

    metrics.get = get


after_import("collections", _mend_collections)
after_import("inspect", _mend_inspect)
after_import("numpy", _mend_numpy)
after_import("h5py", _mend_h5py)
after_import("keras.backend", _complete_backend)
after_import("keras.utils.generic_utils", _number_tensors)
after_import("keras.layers.core", _infer_shape_of_lambda)
after_import("keras.metrics", _mend_metrics)
after_import("keras.datasets.imdb", _mend_dataset)
after_import("keras.datasets.reuters", _mend_dataset)
