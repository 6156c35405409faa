// LocalView: a placed graph on this rank: local shapes, and the values that are views of other values.
//
// Borrows the placements and shares, which must outlive it.
#pragma once

#include "ops/graph/op.h"
#include "runtime/placement/strategy.h"

namespace syncline {

class LocalView {
 public:
  LocalView(const PlacementMap& placement, const RowShares& shares) : placement_(placement), shares_(shares) {}

  Placement placement(const Expr& e) const;
  // Dtype and shape of this rank's part.
  Meta meta(const Expr& e) const;
  std::int64_t bytes(const Expr& e) const;
  // The position of this rank's part in the global value.
  Slice slice(const Expr& e) const;

  // True if e's bytes are a contiguous part of its input's bytes, so that no task computes e.
  bool is_view(const Expr& e) const;
  struct Place {
    Expr base;                // never a view
    std::int64_t offset = 0;  // bytes
  };
  Place resolve(const Expr& e) const;
  const RowShares& shares() const { return shares_; }

 private:
  const PlacementMap& placement_;
  const RowShares& shares_;
};

}  // namespace syncline
