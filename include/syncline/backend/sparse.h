// Sparse tensors of the Keras backend: matrices (samples, features) of which only some entries are stored.
//
// placeholder({.sparse = true}), sparse variables (syncline/backend/sparse_variable.h) and ctc_label_dense_to_sparse
// make them. These functions take them, and some of the others: dot (as its first operand), concatenate (if all tensors
// are sparse; otherwise the sparse ones are made dense), cast, shape, count, eval. Everything else refuses them with
// ValueError; give it to_dense(x). A sparse tensor has no gradient itself, but its values have (sparse_values).
#pragma once

#include "syncline/expr.h"

namespace syncline {

bool is_sparse(const Expr& tensor);
// The same matrix with its zeros; a dense tensor is returned as it is. Entries of one place are summed.
Expr to_dense(const Expr& tensor);
// The stored values of a sparse tensor, of shape (rows, slots of a row); which slots are entries, and of which row, is
// an affair of ops/sparse/tensor.h. For gradients.
Expr sparse_values(const Expr& tensor);

}  // namespace syncline
