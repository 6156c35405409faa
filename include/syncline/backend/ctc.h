// Connectionist temporal classification (Graves et al., 2006): losses and decoding of label sequences whose alignment
// with the input is unknown. The blank is the last class.
//
// y_pred (samples, time, classes) holds the probabilities of a softmax; lengths are (samples) or (samples, 1), of any
// integer dtype (ctc_batch_cost also takes and truncates floating lengths, as Keras does). Each sample is computed on
// the rank that holds its row. All throw ShapeError and DTypeError while the graph is built, and ValueError when a step
// meets a length outside [0, time].
#pragma once

#include <vector>

#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

struct CtcOptions {
  double epsilon = 1e-7;  // added to the probabilities before their logarithm
};
// -log P(label sequence), (samples, 1). y_true (samples, labels) holds class numbers of any dtype but bool; the first
// label_length count, but the blank or a larger number ends the sequence earlier. A step throws ValueError for a
// negative label, a label after the end, a label_length larger than y_true's, and an input_length too short for the
// labels: one step per label, plus one between equal neighbours. Without labels the probability is that of blanks only.
// There is no second derivative: a step that needs it throws ValueError.
Expr ctc_batch_cost(const Expr& y_true, const Expr& y_pred, const Expr& input_length, const Expr& label_length,
                    const CtcOptions& options = {});

struct CtcDecodeOptions {
  bool greedy = true;           // the best class of each step; false: a beam search over label sequences
  int beam_width = 100;         // sequences kept after each step
  int top_paths = 1;            // sequences returned, at most beam_width; greedy: 1
  bool merge_repeated = false;  // beam search: merge equal neighbours of a result
  double epsilon = 1e-7;
};
struct CtcDecoded {
  std::vector<Expr> decoded;  // most likely first; int64 (samples, time), padded with -1
  Expr log_probability;       // greedy: -log P of the path, (samples, 1); otherwise log P of each, (samples, top_paths)
};
// If a beam search finds fewer than top_paths sequences, the others are empty with log_probability -infinity.
CtcDecoded ctc_decode(const Expr& y_pred, const Expr& input_length, const CtcDecodeOptions& options = {});

// The first label_lengths[i] elements of each row of labels (samples, n) as a sparse tensor
// (syncline/backend/sparse.h). A length below 0 counts as 0, one above n as n.
Expr ctc_label_dense_to_sparse(const Expr& labels, const Expr& label_lengths);

}  // namespace syncline
#pragma GCC visibility pop
