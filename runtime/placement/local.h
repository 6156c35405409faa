// A placed graph as this rank sees it: local shapes, and which values are only another look at somebody else's bytes.
#pragma once

#include "ops/graph/op.h"
#include "runtime/placement/distributor.h"

namespace syncline {

class LocalView {
 public:
  LocalView(const PlacementMap& placement, const RowShares& shares) : placement_(placement), shares_(shares) {}

  Placement placement(const Expr& e) const;
  // dtype and shape of this rank's part.
  Meta meta(const Expr& e) const;
  std::int64_t bytes(const Expr& e) const;
  // Which part of the global value that is.
  Slice slice(const Expr& e) const;

  // True if e's bytes are (a contiguous part of) its input's: no task computes it.
  bool is_view(const Expr& e) const;
  struct Place {
    Expr base;                // not a view
    std::int64_t offset = 0;  // bytes
  };
  Place resolve(const Expr& e) const;
  const RowShares& shares() const { return shares_; }

 private:
  const PlacementMap& placement_;
  const RowShares& shares_;
};

}  // namespace syncline
