// FedInputs: the values fed to one function's inputs, as the arrays that its plans read.
//
// Dense values are borrowed for one call; sparse values are packed into memory that FedInputs owns and reuses. Not
// thread-safe.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/execution/sparse_feed.h"
#include "runtime/placement/strategy.h"
#include "syncline/array.h"
#include "syncline/expr.h"
#include "syncline/feed.h"
#include "syncline/sparse_array.h"

namespace syncline {

// A leaf is a placeholder of the plan. A dense input is one leaf; a sparse input is a sparse tensor over four leaves.
class FedInputs {
 public:
  // Throws ValueError if an input is not a placeholder. Error messages name `function`.
  FedInputs(std::string function, std::vector<Expr> inputs);

  const std::vector<Expr>& leaves() const { return leaves_; }
  bool any_sparse() const { return !sparse_.empty(); }

  // Checks the values and keeps pointers to them, for one call. Throws ValueError, ShapeError, DTypeError.
  void take(std::span<const Array> feeds);
  void take(std::span<const Feed> feeds);

  // Assigns rows to ranks. Fills `global` (shapes over all ranks) and `split` with one entry per leaf, and packs sparse
  // values. With a strategy or a sparse input, call it before arrays(). Under local feeds, throws DisagreementError
  // if a value without the batch's rows differs between ranks.
  RowShares share(Strategy* strategy, std::vector<Meta>& global, std::vector<bool>& split, bool& local);

  // One array per leaf.
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
  void agree_on_unsplit(Strategy& ranks, const std::vector<bool>& split) const;

  std::string function_;
  std::vector<Expr> inputs_, leaves_;
  std::vector<std::size_t> leaf_of_;    // the first leaf of each input
  std::vector<std::size_t> sparse_of_;  // each input's index in sparse_, or kDense
  std::vector<const Array*> arrays_;    // one per leaf
  std::vector<SparseInput> sparse_;
  std::vector<Array> densified_;  // sparse values fed to dense inputs; one per input
};

}  // namespace syncline
