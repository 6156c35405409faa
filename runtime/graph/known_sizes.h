// Sizes that follow from values (syncline/dims.h), while a graph is made concrete: those that are known, and those that
// a plan has to compute first.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "runtime/graph/concretize.h"

namespace syncline {

// Thrown for a node that cannot be made concrete yet.
struct SizeIsMissing {};

class KnownSizes {
 public:
  // The numbers that `sizes` are. Throws SizeIsMissing after noting those that are missing.
  Bindings of(std::span<const Expr> sizes) {
    Bindings known;
    for (const Expr& size : sizes) {
      if (is_constant(size)) known[size] = size;
      else if (const auto found = known_.find(size); found != known_.end()) known[size] = found->second;
      else if (std::ranges::find(missing_, size) == missing_.end()) missing_.push_back(size);
    }
    const auto is_missing = [&](const Expr& size) { return !known.contains(size); };
    if (std::ranges::any_of(sizes, is_missing)) throw SizeIsMissing();
    return known;
  }

  // Of a condition that has been computed as a size is.
  std::optional<bool> value_of(const Expr& condition) const {
    const auto found = known_.find(condition);
    double value = 0;
    return found != known_.end() && scalar_value(found->second, value) ? std::optional(value != 0) : std::nullopt;
  }

  const std::vector<Expr>& missing() const { return missing_; }
  // Those after the first `count` are not missed any more.
  void forget_from(std::size_t count) { missing_.resize(count); }
  void set_missing(const SizeValues& values) {
    for (std::size_t i = 0; i < missing_.size(); ++i) known_[missing_[i]] = constant_of(values[i]);
    missing_.clear();
  }

 private:
  Bindings known_;
  std::vector<Expr> missing_;  // in terms of the new graph
};

}  // namespace syncline
