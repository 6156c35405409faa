"""Sparse tensors: TensorFlow's, and SciPy's matrices as variables and feeds."""

import numpy as np
import scipy.sparse
import tensorflow as tf

from generate.oracle import Draw, array, case, real

SHAPES = ((3, 4), (1, 5), (6, 2), (4, 1), (2, 0), (0, 3))
DTYPES = ("float32", "float64", "float16", "int32", "int64", "uint8", "bool")
HOW = ("variable", "feed")  # for tests/oracle/calls_sparse.cc


def thin(*shape, dtype="float32", density=0.4):
    """A matrix with a fraction `density` of nonzero elements."""

    def draw(g, s):
        numbers = np.round(g.uniform(1, 9, s)) * np.where(np.dtype(dtype).kind == "f", np.where(g.random(s) < 0.5, -0.25, 0.25), 1)
        return np.where(g.random(s) < density, numbers, 0)

    return Draw(dtype, shape, draw)


def sparse(x):
    """A dense tensor as a sparse tensor, without a gradient."""
    return tf.sparse.from_dense(tf.stop_gradient(x))


def matrix(x):
    return scipy.sparse.coo_matrix(scipy.sparse.csr_matrix(x))


def from_scipy(x, how):
    wide = x.astype("float32") if x.dtype == np.float16 else x  # SciPy has no matrices of float16
    return matrix(wide).toarray().astype(x.dtype)


def is_sparse_cases():
    answers = {
        "placeholder": lambda K, x: K.placeholder(shape=x.shape, sparse=True),
        "dense_placeholder": lambda K, x: K.placeholder(shape=x.shape),
        "variable": lambda K, x: K.variable(matrix(x)),
        "dense_variable": lambda K, x: K.variable(x),
        "to_dense": lambda K, x: K.to_dense(K.variable(matrix(x))),
        "concatenate": lambda K, x: K.concatenate([K.variable(matrix(x)), K.variable(matrix(x))]),
        "concatenate_mixed": lambda K, x: K.concatenate([K.variable(matrix(x)), K.constant(x)]),
        "dot": lambda K, x: K.dot(K.variable(matrix(x)), K.constant(x.T)),
        "cast": lambda K, x: K.cast(K.variable(matrix(x)), "float64"),
        "labels": lambda K, x: K.ctc_label_dense_to_sparse(K.constant(x), K.constant([1] * len(x), dtype="int32")),
    }
    for shape in ((2, 2), (3, 5)):
        for how, make in answers.items():
            case("is_sparse", [thin(*shape)], label=how, script=lambda K, x, how, make=make: K.is_sparse(make(K, x)), how=how)


def to_dense_cases():
    for how in HOW:
        for shape in SHAPES:
            for dtype in ("float32", "float64"):
                case("to_dense", [thin(*shape, dtype=dtype)], label=how, call=lambda K, x, how: K.to_dense(sparse(x)), how=how)
        for dtype in DTYPES[2:]:
            case("to_dense", [thin(4, 5, dtype=dtype)], label=f"{how}_{dtype}", oracle=from_scipy, how=how)
        for density in (0, 1):
            case("to_dense", [thin(4, 5, density=density)], label=how, call=lambda K, x, how: K.to_dense(sparse(x)), how=how)
        case("to_dense", [array([[0, np.nan, 0], [np.inf, 0, -np.inf]])], label=f"{how}_special",
             oracle=from_scipy, how=how)
    case("to_dense", [real(3, 4, dtype="float64")], label="of_dense", how="dense", call=lambda K, x, how: K.to_dense(x))


def dot_cases():
    for dtype in ("float32", "float64"):
        for rows, inner, columns in ((3, 4, 2), (1, 5, 7), (6, 2, 1), (5, 9, 33), (0, 3, 2), (4, 0, 3)):
            case("dot", [thin(rows, inner, dtype=dtype), real(inner, columns, dtype=dtype)], label="sparse",
                 call=lambda K, x, y, sparse_by: K.dot(sparse(x), y), sparse_by="variable")
        for rows, inner, columns in ((4, 6, 3), (7, 3, 5)):
            case("dot", [thin(rows, inner, dtype=dtype), real(inner, columns, dtype=dtype)], label="sparse_scipy",
                 oracle=lambda x, y, sparse_by: matrix(x) @ y, sparse_by="feed")
    for density in (0, 1):
        case("dot", [thin(4, 6, dtype="float64", density=density), real(6, 3, dtype="float64")], label="sparse",
             call=lambda K, x, y, sparse_by: K.dot(sparse(x), y), sparse_by="variable")


def concatenate_cases():
    for dtype in ("float32", "float64"):
        for axis in (0, 1, -1, -2):
            second = (3, 4) if axis in (0, -2) else (5, 2)
            for how in HOW:
                case("concatenate", [[thin(5, 4, dtype=dtype), thin(*second, dtype=dtype)]], label=f"sparse_{how}",
                     call=lambda K, tensors, axis, sparse_by: K.concatenate([sparse(x) for x in tensors], axis=axis),
                     axis=axis, sparse_by=how)
    three = [thin(3, 2, dtype="int32"), thin(3, 4, dtype="int32", density=1), thin(3, 1, dtype="int32", density=0)]
    for how in HOW:
        case("concatenate", [three], label="sparse_scipy", oracle=lambda tensors, axis, sparse_by: scipy.sparse.hstack(
            [matrix(x) for x in tensors]).toarray().astype("int32"), axis=1, sparse_by=how)
    case("concatenate", [[thin(3, 2), thin(3, 3)]], label="sparse_and_dense", axis=1, sparse_by="first",
         call=lambda K, tensors, axis, sparse_by: K.concatenate([sparse(tensors[0]), tf.stop_gradient(tensors[1])], axis=axis))


is_sparse_cases()
to_dense_cases()
dot_cases()
concatenate_cases()
