// Sparse tensors of the Keras backend: matrices (samples, features) that store some entries only.
//
// placeholder({.sparse = true}), sparse variables (syncline/backend/sparse_variable.h) and ctc_label_dense_to_sparse
// make them. The functions below take them, and dot (as the first operand), concatenate (if all tensors are sparse;
// otherwise sparse ones are made dense), cast, shape, count and eval. Every other function throws ValueError; pass
// to_dense(x) instead. A sparse tensor has no gradient itself, but its values do (sparse_values).
#pragma once

#include "syncline/expr.h"

#pragma GCC visibility push(default)
namespace syncline {

bool is_sparse(const Expr& tensor);
// The matrix with its zeros; returns a dense tensor unchanged. Sums the entries of one place.
Expr to_dense(const Expr& tensor);
// The stored values of a sparse tensor, of shape (rows, slots of a row), for gradients. ops/sparse/tensor.h defines
// which slots are entries, and of which row.
Expr sparse_values(const Expr& tensor);

}  // namespace syncline
#pragma GCC visibility pop
