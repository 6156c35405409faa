// Feed: a value for one input of a function. FedInputs: what the inputs of a function were fed with, as the arrays that
// its plans read.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/execution/sparse_feed.h"
#include "runtime/placement/distributor.h"
#include "syncline/array.h"
#include "syncline/expr.h"
#include "syncline/feed.h"
#include "syncline/sparse_array.h"

namespace syncline {

// A sparse input is a sparse tensor over four placeholders, the plan's leaves; a dense one is a leaf itself.
class FedInputs {
 public:
  // Throws ValueError if one of `inputs` is no placeholder. `function` is for messages.
  FedInputs(std::string function, std::vector<Expr> inputs);

  const std::vector<Expr>& leaves() const { return leaves_; }
  bool any_sparse() const { return !sparse_.empty(); }

  // Checks the values and keeps pointers to them, for one call. Throws ValueError, ShapeError, DTypeError.
  void take(std::span<const Array> feeds);
  void take(std::span<const Feed> feeds);

  // Whose rows are whose. Fills in `split` and `global` (shapes under all ranks), one a leaf. To be called before
  // arrays() is read, if there is a distributor or a sparse input. Under local feeds throws DisagreementError for a
  // value that has not the batch's rows and differs between ranks.
  RowShares share(Distributor* distributor, std::vector<Meta>& global, std::vector<bool>& split, bool& local);

  // One a leaf.
  std::span<const Array* const> arrays() const { return arrays_; }

 private:
  struct SparseInput {
    std::size_t input = 0, leaf = 0;
    SparseArray value;
    PackedSparse packed;
  };
  void check_count(std::size_t count) const;
  void check_meta(const Expr& input, DType dtype, const Shape& shape) const;
  void take(std::size_t input, const Array& value);
  void take(std::size_t input, const SparseArray& value);
  Meta meta_of(std::size_t input) const;
  std::uint64_t digest_of(std::size_t input) const;
  void agree_on_unsplit(Distributor& ranks, const std::vector<bool>& split) const;

  std::string function_;
  std::vector<Expr> inputs_, leaves_;
  std::vector<std::size_t> leaf_of_;    // an input's first leaf
  std::vector<std::size_t> sparse_of_;  // an input's number among the sparse ones, or kDense
  std::vector<const Array*> arrays_;    // one a leaf
  std::vector<SparseInput> sparse_;
  std::vector<Array> densified_;  // sparse values of dense inputs, one an input
};

}  // namespace syncline
