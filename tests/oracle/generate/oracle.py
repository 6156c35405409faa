"""Declares oracle cases, computes their expected results, and formats the fixtures.

A group's module (elementwise.py, shape.py, ...) declares its cases while it is imported. Then `compute` calls the function of
tensorflow.python.keras.backend in graph mode, or the case's own Python oracle.
"""

import base64
import json
import os
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # one order of summation on all processors
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.keras import backend as K  # noqa: E402

tf.compat.v1.disable_eager_execution()
# TensorFlow computes in the caller's thread, because its own threads flush subnormal numbers to 0, and without its graph optimizer,
# which replaces pow(x, 0.5) by sqrt(x) and adds the constants of 1 - x + epsilon first.
tf.config.threading.set_inter_op_parallelism_threads(-1)
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})

FIXTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures")

cases = {}  # function -> its cases, in the order of declaration


class Draw:
    """Random numbers that are drawn when the case is computed. They depend on the case and on the operand's index."""

    def __init__(self, dtype, shape, draw):
        self.dtype, self.shape, self.draw = dtype, shape, draw

    def array(self, generator):
        return np.asarray(self.draw(generator, self.shape)).astype(self.dtype)


def real(*shape, dtype="float32", low=-2.0, high=2.0):
    """Uniform floating numbers in [low, high)."""
    return Draw(dtype, shape, lambda g, s: g.uniform(low, high, s))


def whole(*shape, dtype="int32", low=-5, high=5):
    """Uniform whole numbers in [low, high]; any dtype."""
    return Draw(dtype, shape, lambda g, s: g.integers(low, high + 1, s))


def truth(*shape):
    """Random bools."""
    return Draw("bool", shape, lambda g, s: g.integers(0, 2, s))


def shares(*shape, dtype="float32", axis=-1):
    """Positive numbers that sum to 1 along an axis: probabilities."""

    def draw(g, s):
        numbers = g.uniform(0.1, 1.0, s)
        return numbers / numbers.sum(axis, keepdims=True)

    return Draw(dtype, shape, draw)


def array(values, dtype="float32"):
    return np.array(values, dtype)


def case(function, inputs=(), *, label=None, call=None, script=None, oracle=None, gradient=None, tolerance=None,
         open_batch=True, ranks=True, **args):
    """Declares a case of `function`. inputs: arrays, Draws, None for an absent argument, or lists of these.

    call(K, *tensors, **args): called instead of K's function of that name; returns tensors, arrays, numbers, text.
    script(K, *arrays, **args): the same with the operands' values, for sequences of calls that make variables and functions.
    oracle(*arrays, **args): computes the outputs without TensorFlow.
    gradient: False: not compared. A function (weights, *arrays) returns an array or None per input. Otherwise TensorFlow's gradient,
        which is stored if an input is float32 or float64; beside an `oracle` only with "tensorflow".
    tolerance: a kind of tests/oracle/tolerances.h.
    open_batch: whether the function can be built with unknown leading dimensions of the operands, or the indices of the operands
        whose leading dimension may be unknown. ranks=False: does not run on several ranks.
    """
    rows = cases.setdefault(function, [])
    label = f"{len(rows):03d}" + (f"_{label}" if label else "")
    rows.append(dict(function=function, label=label, inputs=list(inputs), call=call, script=script, oracle=oracle, gradient=gradient,
                     tolerance=tolerance, open_batch=open_batch, ranks=ranks, args=args))


def flat(nested):
    """The leaves of nested lists and tuples."""
    if isinstance(nested, (list, tuple)):
        return [leaf for entry in nested for leaf in flat(entry)]
    return [nested]


def mapped(nested, leaves):
    """The same nesting with other leaves, taken from an iterator."""
    if isinstance(nested, (list, tuple)):
        return [mapped(entry, leaves) for entry in nested]
    return next(leaves)


def weights_of(shape):
    """The fixed weights of the loss whose gradients are stored; exact in every dtype. compute.cc has the same."""
    return (((7 * np.arange(int(np.prod(shape))) + 3) % 11 - 5) / 8.0).reshape(shape)


def as_array(value):
    """An output that is not a tensor as an array: text becomes its bytes, an unknown dimension -1."""
    if isinstance(value, str):
        return np.frombuffer(value.encode(), np.uint8)
    if isinstance(value, tf.TensorShape):
        value = tuple(value.as_list())
    if isinstance(value, (tuple, list)):
        return np.array([-1 if entry is None else entry for entry in value], np.int32)
    if isinstance(value, bool):
        return np.array(value)
    if isinstance(value, int):
        return np.array(value, np.int32)
    return np.asarray(value)


def is_tensor(value):
    return isinstance(value, (tf.Tensor, tf.Variable, tf.SparseTensor))


def dense(value):
    """Sparse tensors and IndexedSlices as dense tensors; other tensors by identity, because a placeholder cannot be fetched."""
    if not is_tensor(value) and not isinstance(value, tf.IndexedSlices):
        return value
    if isinstance(value, tf.IndexedSlices):
        return tf.convert_to_tensor(value)
    return tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else tf.identity(value)


def leaves_of(result):
    """The outputs of a call: a list has several; a tuple of plain numbers (a shape) is one."""
    parts = (np.ndarray, np.generic, str, list, tuple)
    if isinstance(result, list) or isinstance(result, tuple) and any(is_tensor(v) or isinstance(v, parts) for v in result):
        return [leaf for entry in result for leaf in leaves_of(entry)]
    return [result] if is_tensor(result) else [as_array(result)]


def tensorflow_gradients(outputs, inputs):
    """The gradients of the weighted sum of the floating outputs, one per input; None if the input has none."""
    floating = [y for y in outputs if is_tensor(y) and y.dtype.is_floating]
    wrt = [x for x in inputs if x is not None and x.dtype.is_floating]
    if not floating or not wrt:
        return [None] * len(inputs)
    terms = [tf.reduce_sum(tf.cast(y, tf.float64) * weights_of(y.shape.as_list())) for y in floating]
    found = iter(tf.gradients(terms, wrt))
    return [dense(next(found)) if x is not None and x.dtype.is_floating else None for x in inputs]


def compute_tensorflow(row, arrays):
    K.clear_session()
    placeholders = [None if a is None else K.placeholder(shape=a.shape, dtype=a.dtype.name) for a in arrays]
    operands = mapped(row["inputs"], iter(placeholders))
    call = row["call"] or (lambda backend, *tensors, **args: getattr(backend, row["function"])(*tensors, **args))
    outputs = [dense(y) for y in leaves_of(call(K, *operands, **row["args"]))]
    derived = [None] * len(arrays)
    if row["gradient"] in (None, "tensorflow") and any(a is not None and a.dtype in (np.float32, np.float64) for a in arrays):
        if all(not is_tensor(y) or y.shape.is_fully_defined() for y in outputs):
            derived = tensorflow_gradients(outputs, placeholders)
    fetched = [v for v in outputs + derived if is_tensor(v)]
    used = [(p, a) for p, a in zip(placeholders, arrays) if p is not None]
    values = iter(K.function([p for p, _ in used], fetched)([a for _, a in used]) if fetched else [])
    results = [np.asarray(next(values)) if is_tensor(v) else v for v in outputs + derived]
    return results[: len(outputs)], results[len(outputs) :]


def compute(row):
    """The case as an entry of the fixture."""
    leaves = flat(row["inputs"])
    arrays = []
    for place, leaf in enumerate(leaves):
        key = zlib.crc32(f"{row['function']} {row['label'][:3]} {place}".encode())
        arrays.append(leaf.array(np.random.default_rng(key)) if isinstance(leaf, Draw) else leaf)
    if row["oracle"]:
        result = row["oracle"](*mapped(row["inputs"], iter(arrays)), **row["args"])
        outputs, derived = [as_array(y) for y in (result if isinstance(result, list) else [result])], []
        if row["gradient"] == "tensorflow":
            derived = compute_tensorflow(row, arrays)[1]
    elif row["script"]:
        K.clear_session()
        result = leaves_of(row["script"](K, *mapped(row["inputs"], iter(arrays)), **row["args"]))
        outputs, derived = [K.eval(y) if is_tensor(y) else y for y in result], []
    else:
        outputs, derived = compute_tensorflow(row, arrays)
    if callable(row["gradient"]):
        derived = row["gradient"]([weights_of(y.shape) for y in outputs], *mapped(row["inputs"], iter(arrays)))
    entry = {"name": row["label"], "args": plain(row["args"]), "inputs": [stored(a) for a in arrays],
             "outputs": [stored(y) for y in outputs]}
    if any(d is not None for d in derived):
        entry["gradients"] = [stored(d) for d in derived]
    if row["tolerance"]:
        entry["tolerance"] = row["tolerance"]
    if row["open_batch"] is not True:
        entry["open_batch"] = list(row["open_batch"] or [])
    if not row["ranks"]:
        entry["ranks"] = False
    return entry


def stored(value):
    if value is None:
        return None
    little = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
    return {"dtype": value.dtype.name, "shape": list(value.shape), "data": base64.b64encode(little.tobytes()).decode()}


def plain(value):
    """Arguments as values of JSON; infinities and NaN as text."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, (float, np.floating)) and not np.isfinite(value):
        return str(float(value))
    return value.item() if isinstance(value, np.generic) else value


def fixture_text(function, failed):
    """The fixture of one function, one case per line. Appends the cases that cannot be computed to `failed`, with the error."""
    lines = []
    for row in cases[function]:
        try:
            lines.append(json.dumps(compute(row), separators=(",", ":")))
        except Exception as error:  # any error of TensorFlow
            failed.append(f"{function} {row['label']}: {type(error).__name__}: {str(error)[:300]}")
    return f'{{"function":"{function}","cases":[\n' + ",\n".join(lines) + "\n]}\n"
