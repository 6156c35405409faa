"""Activations, losses and normalization."""

import numpy as np

from generate.oracle import array, case, real, shares, truth, whole

INF, NAN = np.inf, np.nan
SHAPES = [(), (4,), (2, 3), (2, 3, 4), (2, 1, 3, 2), (0, 3), (3, 0), (1, 19)]
SPECIAL = [[0.0, -0.0, 100.0, -100.0], [INF, -INF, NAN, 1e-30]]


def activation(function, low=-4.0, high=4.0):
    for shape in SHAPES:
        case(function, [real(*shape, low=low, high=high)])
        case(function, [real(*shape, dtype="float64", low=low, high=high)])
    case(function, [array(SPECIAL)], label="special")
    case(function, [array(SPECIAL, "float64")], label="special")


for name in ("sigmoid", "hard_sigmoid", "tanh", "softplus", "softsign"):
    activation(name)
case("softplus", [array([-800.0, -40.0, 40.0, 800.0], "float64")], label="range")
case("sigmoid", [array([-800.0, -40.0, 40.0, 800.0], "float64")], label="range")

activation("relu")
for options in (dict(alpha=0.125), dict(alpha=0.5), dict(max_value=1.5), dict(alpha=0.25, max_value=1.0), dict(threshold=0.5),
                dict(threshold=1.0, max_value=2.0), dict(alpha=0.375, threshold=0.7), dict(threshold=-1.0),
                dict(alpha=0.125, threshold=-0.5, max_value=3.0), dict(max_value=6.0), dict(alpha=-0.5)):
    case("relu", [real(3, 5, low=-4, high=8)], **options)
    case("relu", [real(4, dtype="float64", low=-4, high=8)], **options)
for dtype in ("int32", "int64"):
    case("relu", [whole(3, 4, dtype=dtype)])

activation("elu")
for alpha in (0.5, 2.0, 0.1):
    case("elu", [real(3, 4)], alpha=alpha)
    case("elu", [real(2, 3, 2, dtype="float64")], alpha=alpha)

for dtype in ("float32", "float64"):
    for axis in (-1, 0, 1, -2):
        case("softmax", [real(3, 4, dtype=dtype)], axis=axis)
    for axis in (0, 1, 2, -1, -3):
        case("softmax", [real(2, 3, 4, dtype=dtype)], axis=axis)
    case("softmax", [real(2, 2, 2, 3, dtype=dtype)], axis=1)
    case("softmax", [real(2, 1, dtype=dtype)])
case("softmax", [array([[1000.0, 1001.0, 0.0], [-1000.0, -1000.0, -1000.0]])], label="large")
case("softmax", [array([[-INF, 0.0, 1.0], [NAN, 0.0, 1.0]])], label="special")
case("softmax", [real(0, 4)], label="empty")
case("softmax", [real(3, 33)], label="wide")

for dtype in ("float32", "float64"):
    for shape, axis in (((4, 5), -1), ((2, 3, 4), -1), ((2, 3, 4), 1), ((3, 2), 1), ((2, 2, 2, 3), -1), ((1, 7), -1)):
        case("categorical_crossentropy", [shares(*shape, dtype=dtype, axis=axis), shares(*shape, dtype=dtype)],
             axis=axis)
        case("categorical_crossentropy", [shares(*shape, dtype=dtype, axis=axis), real(*shape, dtype=dtype)],
             label="logits", from_logits=True, axis=axis)
    case("categorical_crossentropy", [shares(4, 5, dtype=dtype), real(4, 5, dtype=dtype, low=0.1, high=3)], label="unscaled")
    case("categorical_crossentropy", [array(np.eye(4), dtype), array(np.eye(4)[[0, 2, 1, 3]], dtype)], label="certain")
    case("categorical_crossentropy", [array(np.eye(3), dtype), array([[90.0, -90, 0], [0, 1, 0], [5, 5, 5]], dtype)],
         label="logits_large", from_logits=True)
    case("categorical_crossentropy", [shares(0, 3, dtype=dtype), shares(0, 3, dtype=dtype)], label="empty")

for dtype in ("float32", "float64"):
    for shape in ((5, 4), (3, 2), (1, 9)):
        for labels in ("int32", "int64", dtype):
            target = whole(shape[0], dtype=labels, low=0, high=shape[1] - 1)
            case("sparse_categorical_crossentropy", [target, shares(*shape, dtype=dtype)])
            case("sparse_categorical_crossentropy", [target, real(*shape, dtype=dtype)], label="logits", from_logits=True)
    for logits in (False, True):
        output = real(2, 3, 4, dtype=dtype) if logits else shares(2, 3, 4, dtype=dtype)
        case("sparse_categorical_crossentropy", [whole(2, 3, low=0, high=3), output], label="steps", from_logits=logits)
        case("sparse_categorical_crossentropy", [whole(2, 3, low=0, high=3), output], label="steps", from_logits=logits,
             axis=2)


def of_inner_axis(target, output, from_logits, axis):
    """sparse_categorical_crossentropy by the documentation. TensorFlow rejects an axis before the last one if the batch is known."""
    moved = np.moveaxis(output.astype("float64"), axis, -1)
    if from_logits:
        moved = np.exp(moved - moved.max(-1, keepdims=True))
        moved = moved / moved.sum(-1, keepdims=True)
    else:
        moved = np.clip(moved, 1e-7, 1 - 1e-7)
    chosen = np.take_along_axis(moved, target.reshape(moved.shape[:-1] + (1,)), -1)[..., 0]
    return -np.log(chosen).astype(output.dtype)


for logits in (False, True):
    output = real(2, 3, 4, dtype="float64") if logits else shares(2, 4, 3, dtype="float64")
    if not logits:
        # probabilities along axis 1
        output = np.moveaxis(np.array([[[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], [[0.6, 0.2, 0.2], [0.3, 0.3, 0.4]]]), 2, 1)
    target = whole(2, output.shape[2], low=0, high=2)
    case("sparse_categorical_crossentropy", [target, output], label="inner_axis", oracle=of_inner_axis,
         from_logits=logits, axis=1)

for dtype in ("float32", "float64"):
    for shape in ((4,), (3, 4), (2, 3, 2), (1, 1), (0, 2)):
        case("binary_crossentropy", [real(*shape, dtype=dtype, low=0, high=1), real(*shape, dtype=dtype, low=0.01, high=0.99)])
        case("binary_crossentropy", [real(*shape, dtype=dtype, low=0, high=1), real(*shape, dtype=dtype, low=-6, high=6)],
             label="logits", from_logits=True)
    case("binary_crossentropy", [array([0, 1, 0, 1], dtype), array([0, 1, 1, 0], dtype)], label="certain")
    case("binary_crossentropy", [array([0, 1, 0, 1], dtype), array([-90, 90, 90, -90], dtype)], label="large",
         from_logits=True)

for k in (1, 2, 3, 5):
    case("in_top_k", [real(6, 5), whole(6, low=0, high=4)], k=k)
    case("in_top_k", [array(np.random.default_rng(k).integers(0, 3, (5, 6))), whole(5, low=0, high=5)], label="ties", k=k)
for k in (1, 3):
    case("in_top_k", [real(4, 7), whole(4, dtype="int64", low=0, high=6)], k=k)
    case("in_top_k", [array([[NAN, 1.0, 2.0], [INF, 1.0, 2.0], [-INF, 1.0, 2.0]]), array([1, 2, 2], "int32")],
         label="special", k=k)
case("in_top_k", [real(3, 4), array([-1, 4, 0], "int32")], label="no_class", k=2)
case("in_top_k", [real(1, 1), array([0], "int32")], k=1)

for dtype in ("float32", "float64"):
    for shape, axis in (((5,), None), ((3, 4), None), ((3, 4), 0), ((3, 4), 1), ((3, 4), -1), ((2, 3, 4), 1), ((2, 3, 4), -1),
                        ((2, 3, 4), [1, 2]), ((2, 3, 4), [0, 2])):
        case("l2_normalize", [real(*shape, dtype=dtype)], axis=axis)
    case("l2_normalize", [array(np.zeros((2, 3)), dtype)], label="zero", axis=1)
case("l2_normalize", [real(0, 3)], label="empty", axis=1)
case("l2_normalize", [array([[1e-8, 0.0], [1e-20, 1e-20]])], label="tiny", axis=1)
