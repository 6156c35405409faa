// KnownSizes: the sizes that depend on values (syncline/dims.h) during concretize: the known ones, and the missing
// ones, which a plan must compute first.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "ops/graph/fill.h"
#include "ops/graph/leaf.h"
#include "runtime/graph/concretize.h"

namespace syncline {

// Thrown for a node that depends on a missing size.
struct SizeIsMissing {};

class KnownSizes {
 public:
  // Maps `sizes` to constants. Records the missing sizes, then throws SizeIsMissing if there are any.
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

  // The value of a condition that was computed like a size; empty if unknown.
  std::optional<bool> value_of(const Expr& condition) const {
    const auto found = known_.find(condition);
    double value = 0;
    return found != known_.end() && scalar_value(found->second, value) ? std::optional(value != 0) : std::nullopt;
  }

  const std::vector<Expr>& missing() const { return missing_; }
  // Keeps only the first `count` missing sizes.
  void forget_from(std::size_t count) { missing_.resize(count); }
  // Makes the missing sizes known. `values` has their order.
  void set_missing(const SizeValues& values) {
    for (std::size_t i = 0; i < missing_.size(); ++i) known_[missing_[i]] = constant_of(values[i]);
    missing_.clear();
  }

 private:
  Bindings known_;
  std::vector<Expr> missing_;  // nodes of the new graph
};

}  // namespace syncline
