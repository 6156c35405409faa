"""Connectionist temporal classification. The blank is the last class. y_pred: (samples, time, classes), the
probabilities of a softmax; lengths: (samples, 1) or (samples,)."""

from __future__ import annotations

from syncline import _core
from syncline.types import List, Tensor, TensorLike, Tuple


def ctc_label_dense_to_sparse(labels: TensorLike, label_lengths: TensorLike) -> Tensor:
    """The first label_lengths[i] elements of each row of labels, as a sparse tensor."""
    return _core.ctc_label_dense_to_sparse(labels, label_lengths)


def ctc_batch_cost(
    y_true: TensorLike, y_pred: TensorLike, input_length: TensorLike, label_length: TensorLike
) -> Tensor:
    """-log P(labels), (samples, 1). y_true: (samples, labels), of which the first label_length count. A label that is
    no class, and an input_length too short for the labels, raise ValueError when the step runs."""
    return _core.ctc_batch_cost(y_true, y_pred, input_length, label_length, _core.epsilon())


def ctc_decode(
    y_pred: TensorLike,
    input_length: TensorLike,
    greedy: bool = True,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = False,
) -> Tuple[List[Tensor], Tensor]:
    """The likeliest label sequences.

    # Arguments
        greedy: the best class of each step; otherwise a beam search that keeps beam_width sequences and returns
        top_paths.
        merge_repeated: of a beam search: equal neighbours in a result become one.
    # Returns
        A tuple: a list of int64 tensors (samples, time), filled up with -1, the likeliest first; and the log
        probability of each, (samples, top_paths) (greedy: its negative, (samples, 1)).
    """
    return _core.ctc_decode(y_pred, input_length, greedy, beam_width, top_paths, merge_repeated, _core.epsilon())
