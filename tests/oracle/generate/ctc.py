"""Connectionist temporal classification. Where TensorFlow rejects the arguments, the oracle enumerates every path of classes."""

import itertools

import numpy as np
import tensorflow as tf

from generate.oracle import array, case, shares, whole

EPSILON = 1e-7


def scores(y):
    """log(y + epsilon), and the logarithm of y + epsilon normalized to sum 1."""
    raw = np.log(y.astype("float64") + EPSILON)
    return raw, raw - np.log(np.exp(raw).sum(-1, keepdims=True))


def sequences(y, steps):
    """The probability of each sequence of labels."""
    normalized, found = scores(y)[1], {}
    for path in itertools.product(range(y.shape[-1]), repeat=int(steps)):
        labels = tuple(c for c, _ in itertools.groupby(path) if c != y.shape[-1] - 1)
        found[labels] = found.get(labels, 0) + np.exp(sum(normalized[t, c] for t, c in enumerate(path)))
    return found


def enumerated_cost(y_true, y_pred, input_length, label_length):
    rows = zip(y_true.astype(int), y_pred, input_length.ravel(), label_length.ravel())
    return np.array([[-np.log(sequences(y, steps)[tuple(labels[:n])])] for labels, y, steps, n in rows]).astype(y_pred.dtype)


def enumerated_decode(y_pred, input_length, top_paths, **_):
    paths = np.full((top_paths, *y_pred.shape[:2]), -1, "int64")
    found = np.full((len(y_pred), top_paths), -np.inf)
    for i, (y, steps) in enumerate(zip(y_pred, input_length.ravel())):
        best = sorted(sequences(y, steps).items(), key=lambda item: -item[1])[:top_paths]
        for path, (labels, probability) in enumerate(best):
            paths[path, i, : len(labels)] = labels
            found[i, path] = np.log(probability)
    return [*paths, found.astype(y_pred.dtype)]


def beam_search(K, y_pred, input_length, beam_width, top_paths, **_):
    """Without merge_repeated, as in Keras. TensorFlow's copy of Keras leaves it at its default."""
    inputs = tf.math.log(tf.transpose(y_pred, [1, 0, 2]) + EPSILON)
    decoded, log_probability = tf.nn.ctc_beam_search_decoder(inputs, tf.cast(input_length, tf.int32), beam_width, top_paths)
    shape = y_pred.shape.as_list()[:2]
    return [tf.sparse.to_dense(tf.SparseTensor(d.indices, d.values, shape), default_value=-1) for d in decoded] + [log_probability]


def column(values, dtype="int32"):
    return array(values, dtype)[:, None]


SINGLE = dict(tolerance="single")  # TensorFlow's kernels accept float64, but compute in float32


def cost_cases():
    for dtype in ("float32", "float64"):
        labels = array([[0, 1], [0, 0], [1, 0]], "int32")
        case("ctc_batch_cost", [labels, shares(3, 4, 3, dtype=dtype), column([4, 4, 3]), column([2, 2, 1])], **SINGLE)
        case("ctc_batch_cost", [labels.astype("float32"), shares(3, 4, 3, dtype=dtype), column([4, 4, 3], "int64"),
                                column([2, 2, 1], "int64")], label="floating_labels", **SINGLE)
        case("ctc_batch_cost", [whole(4, 5, low=0, high=5), shares(4, 12, 7, dtype=dtype), column([12, 11, 12, 10]),
                                column([5, 3, 4, 1])], **SINGLE)
        case("ctc_batch_cost", [whole(2, 3, low=0, high=0), shares(2, 7, 2, dtype=dtype), column([7, 6]), column([3, 3])],
             label="repeated", **SINGLE)
        case("ctc_batch_cost", [whole(3, 2, low=0, high=18, dtype="int64"), shares(3, 1, 20, dtype=dtype), column([1, 1, 1]),
                                column([1, 1, 1])], label="one_step", **SINGLE)
        case("ctc_batch_cost", [whole(2, 8, low=0, high=3), shares(2, 16, 5, dtype=dtype), column([16, 16]), column([8, 8])],
             label="long", **SINGLE)
        case("ctc_batch_cost", [array([[0, 1, 2], [2, 1, 0]], "uint8"), shares(2, 3, 4, dtype=dtype), column([3, 3]),
                                column([3, 3])], label="as_many_steps_as_labels", **SINGLE)
        sharp = np.full((2, 5, 3), 1e-3)
        sharp[:, range(5), [0, 2, 1, 2, 0]] = 1 - 2e-3
        case("ctc_batch_cost", [array([[0, 1, 0], [1, 1, 0]], "int32"), array(sharp, dtype), column([5, 5]), column([3, 3])],
             label="sharp", **SINGLE)
        certain = np.zeros((2, 4, 3))
        certain[:, range(4), [0, 2, 1, 2]] = 1
        case("ctc_batch_cost", [array([[0, 1], [1, 0]], "int32"), array(certain, dtype), column([4, 4]), column([2, 2])],
             label="zeros", **SINGLE)
        case("ctc_batch_cost", [labels, shares(3, 4, 3, dtype=dtype), column([4, 3, 0]), column([0, 2, 0])],
             label="no_labels", oracle=enumerated_cost)
        case("ctc_batch_cost", [labels, shares(3, 5, 3, dtype=dtype), column([5, 3, 4]), column([1, 2, 1])],
             label="enumerated", oracle=enumerated_cost)
        case("ctc_batch_cost", [array(np.zeros((0, 2)), "int32"), shares(0, 4, 3, dtype=dtype), column([]), column([])],
             label="no_samples", oracle=enumerated_cost_of_none)


def enumerated_cost_of_none(y_true, y_pred, input_length, label_length):
    return np.zeros((0, 1), y_pred.dtype)


def decode_cases():
    for dtype in ("float32", "float64"):
        for shape, lengths in (((3, 4, 3), [4, 3, 2]), ((2, 9, 5), [9, 8]), ((4, 1, 3), [1, 1, 1, 0]), ((2, 6, 2), [6, 0])):
            case("ctc_decode", [shares(*shape, dtype=dtype), array(lengths, "int32")], label="greedy", gradient=False)
            case("ctc_decode", [shares(*shape, dtype=dtype), array(lengths, "int64")], label="greedy", gradient=False,
                 greedy=True, beam_width=3)
        for shape, lengths, width, paths in (((3, 4, 3), [4, 3, 2], 100, 3), ((2, 9, 5), [9, 8], 10, 5), ((2, 9, 5), [9, 7], 2, 2),
                                             ((2, 12, 4), [12, 11], 4, 1), ((3, 6, 8), [6, 5, 4], 20, 4),
                                             ((2, 8, 3), [8, 8], 1, 1)):
            case("ctc_decode", [shares(*shape, dtype=dtype), array(lengths, "int32")], label="beam", call=beam_search,
                 gradient=False, greedy=False, beam_width=width, top_paths=paths, **SINGLE)
        case("ctc_decode", [shares(3, 4, 3, dtype=dtype), array([4, 3, 2], "int32")], label="enumerated",
             oracle=enumerated_decode, greedy=False, beam_width=100, top_paths=4)
        case("ctc_decode", [shares(2, 3, 2, dtype=dtype), array([1, 0], "int32")], label="fewer_sequences_than_paths",
             oracle=enumerated_decode, greedy=False, beam_width=9, top_paths=4)
    repeated = np.full((1, 5, 3), 0.1 / 3)
    repeated[0, range(5), [0, 2, 0, 2, 0]] += 0.9
    case("ctc_decode", [array(repeated), array([5], "int32")], label="repeated", call=beam_search, gradient=False,
         greedy=False, beam_width=5, top_paths=2)
    case("ctc_decode", [array(repeated), array([5], "int32")], label="merge_repeated", gradient=False,
         call=lambda K, y, n, merge_repeated, **args: K.ctc_decode(y, n, **args), greedy=False, beam_width=5, top_paths=2,
         merge_repeated=True)
    case("ctc_decode", [array(np.full((1, 3, 3), 1 / 3)), array([3], "int32")], label="ties", gradient=False)


def label_cases():
    convert = dict(call=lambda K, labels, lengths: K.ctc_label_dense_to_sparse(labels, tf.cast(lengths, tf.int32)))
    for dtype in ("int32", "int64", "float32", "uint8"):
        for shape, lengths in (((2, 3), [2, 3]), ((3, 2), [1, 0, 1]), ((4, 5), [5, 0, 2, 9]), ((1, 4), [4]), ((3, 2), [0, 0, 0])):
            case("ctc_label_dense_to_sparse", [whole(*shape, dtype=dtype, low=1, high=9), array(lengths, "int32")], gradient=False,
                 **convert)
    case("ctc_label_dense_to_sparse", [whole(3, 1, low=1, high=9), array([1, 0, 1], "int32")], label="one_column",
         oracle=lambda labels, lengths: labels * lengths[:, None])
    case("ctc_label_dense_to_sparse", [whole(3, 4, low=1, high=9), array([1, 2, 3], "int64")], **convert)
    case("ctc_label_dense_to_sparse", [whole(3, 4, low=1, high=9), array([4, 0, 3], "uint8")], **convert)


cost_cases()
decode_cases()
label_cases()
