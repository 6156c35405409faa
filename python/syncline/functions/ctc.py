"""Connectionist temporal classification. The blank is the last class. y_pred is (samples, time, classes), the
probabilities of a softmax; lengths are (samples, 1) or (samples,)."""

from __future__ import annotations

from syncline import _core
from syncline.types import List, Tensor, TensorLike, Tuple


def ctc_label_dense_to_sparse(labels: TensorLike, label_lengths: TensorLike) -> Tensor:
    """The first elements of each row of labels, as a sparse tensor.

    Args:
        labels: tensor (samples, n); any dtype.
        label_lengths: tensor (samples,) or (samples, 1); integers: the number of elements used of each row, limited to [0, n].
    Returns:
        Sparse tensor (samples, n) of labels' dtype.
    Raises:
        TypeError: an argument is not numeric.
        ValueError: the shapes do not fit, or an argument is sparse.
    See: ops/ctc/labels.cc
    Example:
        >>> K.eval(K.ctc_label_dense_to_sparse([[1, 2, 3], [4, 5, 6]], [2, 3]))
        array([[1, 2, 0],
               [4, 5, 6]], dtype=int32)
    """
    return _core.ctc_label_dense_to_sparse(labels, label_lengths)


def ctc_batch_cost(
    y_true: TensorLike, y_pred: TensorLike, input_length: TensorLike, label_length: TensorLike
) -> Tensor:
    """The connectionist temporal classification loss of each sample: -log P(labels), summed over all alignments of the
    labels with the time steps. The blank is the last class.

    Args:
        y_true: tensor (samples, labels); any dtype but bool: class numbers; the first label_length of each row are used,
            up to the first number that is not below the blank's.
        y_pred: tensor (samples, time, classes); floating: the probabilities of a softmax.
        input_length: tensor (samples, 1) or (samples,); integers, or floating and truncated to integers: the number of
            time steps used.
        label_length: tensor (samples, 1) or (samples,); integers, or floating and truncated to integers: the number of
            labels used.
    Returns:
        Tensor (samples, 1) of y_pred's dtype.
    Raises:
        TypeError: y_pred is not floating, or y_true is bool.
        ValueError: the shapes do not fit, or an argument is sparse. When the step runs: a label is negative, or a class
            follows a number that ends the labels; a length is negative or larger than the number of steps or labels; the
            labels need more steps.
    See: ops/ctc/cost.cc
    Example:
        >>> K.eval(K.ctc_batch_cost([[0]], [[[0.5, 0.5], [0.5, 0.5]]], [[2]], [[1]])).round(3)
        array([[0.288]], dtype=float32)
    """
    return _core.ctc_batch_cost(y_true, y_pred, input_length, label_length, _core.epsilon())


def ctc_decode(
    y_pred: TensorLike,
    input_length: TensorLike,
    greedy: bool = True,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = False,
) -> Tuple[List[Tensor], Tensor]:
    """The most probable label sequences. The blank is the last class.

    Args:
        y_pred: tensor (samples, time, classes); floating: the probabilities of a softmax.
        input_length: tensor (samples,) or (samples, 1); integers: the number of time steps used.
        greedy: bool: take the best class of each step, merge equal neighbours and drop blanks; otherwise a beam search.
        beam_width: int >= 1: the number of sequences that a beam search keeps after each step. Unused if greedy.
        top_paths: int from 1 to beam_width: the number of sequences that a beam search returns. Unused if greedy.
        merge_repeated: bool: whether equal neighbours in the result of a beam search are merged.
    Returns:
        Tuple: a list of int64 tensors (samples, time), padded with -1, most probable sequences first (greedy: one);
        and their log probabilities, a tensor (samples, top_paths) of y_pred's dtype (greedy: -log P of the path,
        (samples, 1)).
    Raises:
        TypeError: y_pred is not floating, or an option is not of its type (bool or int).
        ValueError: the shapes do not fit, or an argument is sparse; in a beam search, top_paths is larger than beam_width or
            below 1. When the step runs: a length is negative or larger than the number of steps.
    See: ops/ctc/decode.cc; the beam search ops/ctc/beam.cc
    Example:
        >>> decoded, log_probability = K.ctc_decode([[[0.9, 0.1], [0.1, 0.9], [0.8, 0.2]]], [3])
        >>> K.eval(decoded[0])
        array([[ 0,  0, -1]])
    """
    return _core.ctc_decode(y_pred, input_length, bool(greedy), beam_width, top_paths, bool(merge_repeated), _core.epsilon())
