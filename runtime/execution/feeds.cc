#include "runtime/execution/feeds.h"

#include <algorithm>

#include "ops/graph/attrs.h"
#include "ops/graph/leaf.h"
#include "ops/kernels/digest.h"
#include "ops/sparse/tensor.h"
#include "runtime/placement/agreement.h"
#include "syncline/backend/sparse.h"

namespace syncline {
namespace {

constexpr std::size_t kDense = ~std::size_t{0};

}  // namespace

FedInputs::FedInputs(std::string function, std::vector<Expr> inputs)
    : function_(std::move(function)), inputs_(std::move(inputs)) {
  for (const Expr& input : inputs_) {
    const bool sparse = is_sparse(input);
    std::vector<Expr> leaves{input};
    if (sparse) leaves = input.node().inputs;
    if (!std::all_of(leaves.begin(), leaves.end(), [](const Expr& e) { return e.is<Placeholder>(); }))
      fail<ValueError>(function_, ": input '", input.name(), "' (", input.op().name, ") is not a placeholder");
    leaf_of_.push_back(leaves_.size());
    sparse_of_.push_back(sparse ? sparse_.size() : kDense);
    if (sparse) sparse_.push_back({.input = leaf_of_.size() - 1, .leaf = leaves_.size(), .value = {}, .packed = {}});
    leaves_.insert(leaves_.end(), leaves.begin(), leaves.end());
  }
  densified_.resize(inputs_.size());
  arrays_.resize(leaves_.size());
  for (const SparseInput& s : sparse_)
    for (std::size_t i = 0; i < s.packed.size(); ++i) arrays_[s.leaf + i] = &s.packed[i];
}

void FedInputs::check_count(std::size_t count) const {
  if (count != inputs_.size())
    fail<ValueError>(function_, ": ", count, " values are given for ", inputs_.size(), " inputs");
}

void FedInputs::check_meta(const Expr& input, DType dtype, const Shape& shape) const {
  if (dtype != input.dtype())
    fail<DTypeError>(function_, ": input '", input.name(), "' takes ", input.dtype(), ", but was fed ", dtype,
                     "; cast the value");
  if (!accepts(input.shape(), shape))
    fail<ShapeError>(function_, ": input '", input.name(), "' takes the shape ", input.shape(), ", but was fed ",
                     shape);
}

void FedInputs::take(std::size_t input, const Array& value) {
  check_meta(inputs_[input], value.dtype(), value.shape());
  if (sparse_of_[input] == kDense) arrays_[leaf_of_[input]] = &value;
  else sparse_[sparse_of_[input]].value = SparseArray::from_dense(value);
}

void FedInputs::take(std::size_t input, const SparseArray& value) {
  check_meta(inputs_[input], value.dtype(), value.shape());
  if (sparse_of_[input] != kDense) {
    sparse_[sparse_of_[input]].value = value;
    return;
  }
  densified_[input] = value.to_dense();
  arrays_[leaf_of_[input]] = &densified_[input];
}

void FedInputs::take(std::span<const Array> feeds) {
  check_count(feeds.size());
  for (std::size_t i = 0; i < feeds.size(); ++i) take(i, feeds[i]);
}

void FedInputs::take(std::span<const Feed> feeds) {
  check_count(feeds.size());
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    if (const Array* dense = feeds[i].dense()) take(i, *dense);
    else take(i, *feeds[i].sparse());
  }
}

Meta FedInputs::meta_of(std::size_t input) const {
  if (sparse_of_[input] == kDense) return {arrays_[leaf_of_[input]]->dtype(), arrays_[leaf_of_[input]]->shape()};
  const SparseArray& value = sparse_[sparse_of_[input]].value;
  return {value.dtype(), value.shape()};
}

std::uint64_t FedInputs::digest_of(std::size_t input) const {
  std::uint64_t digest = static_cast<std::uint64_t>(inputs_[input].dtype());
  for (const std::int64_t dim : meta_of(input).shape) digest = attrs::mix(digest, static_cast<std::uint64_t>(dim));
  const auto add = [&](const void* bytes, std::size_t size) {
    digest = attrs::mix(digest, kernels::digest(bytes, size));
  };
  if (sparse_of_[input] == kDense) {
    add(arrays_[leaf_of_[input]]->raw(), arrays_[leaf_of_[input]]->bytes());
    return digest;
  }
  const SparseArray& value = sparse_[sparse_of_[input]].value;
  add(value.values().raw(), value.values().bytes());
  add(value.column_indices().data(), value.column_indices().size_bytes());
  add(value.row_splits().data(), value.row_splits().size_bytes());
  return digest;
}

void FedInputs::agree_on_unsplit(Strategy& ranks, const std::vector<bool>& split) const {
  std::vector<std::string> names;
  std::vector<std::uint64_t> digests;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (split[i]) continue;
    names.push_back(inputs_[i].name());
    digests.push_back(digest_of(i));
  }
  if (!names.empty()) agree_on_values(ranks, function_, names, digests);
}

RowShares FedInputs::share(Strategy* strategy, std::vector<Meta>& global, std::vector<bool>& split, bool& local) {
  std::vector<Meta> metas;
  for (std::size_t i = 0; i < inputs_.size(); ++i) metas.push_back(meta_of(i));
  std::vector<std::int64_t> slots;  // for the value as one piece
  for (const SparseInput& s : sparse_) slots.push_back(slots_for(s.value, std::array{std::int64_t{0}, s.value.rows()}));
  std::vector<bool> input_split(inputs_.size(), false);
  RowShares shares;
  if (strategy != nullptr) shares = strategy->share(metas, slots, input_split, local);
  if (local) agree_on_unsplit(*strategy, input_split);
  for (std::size_t i = 0; i < sparse_.size(); ++i) {
    SparseInput& s = sparse_[i];
    std::vector<std::int64_t> borders{0, s.value.rows()};
    if (input_split[s.input] && !local) slots[i] = slots_for(s.value, borders = shares.begin);
    pack(s.value, slots[i], borders, s.packed);
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (sparse_of_[i] == kDense) {
      global.push_back(metas[i]);
      split.push_back(input_split[i]);
      continue;
    }
    for (const Meta& m : packed_metas(metas[i].dtype, metas[i].shape, slots[sparse_of_[i]])) {
      global.push_back(m);
      split.push_back(input_split[i]);
    }
    split.back() = false;  // the extent has no rows
  }
  return shares;
}

}  // namespace syncline
