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
  std::vector<Meta> metas(std::span<const Expr> values) const;
  std::int64_t bytes(const Expr& e) const;
  // The position of this rank's part in the global value.
  OutputSlice slice(const Expr& e) const;
  // Of a split value whose parts lie behind each other in rank order: how many elements each rank has, and the bytes of
  // the ranks before this one.
  std::vector<std::int64_t> elements_by_rank(const Expr& part) const;
  std::int64_t bytes_before(const Expr& part) const;

  // True if e's bytes are a contiguous part of its input's bytes, so that no task computes e.
  bool is_view(const Expr& e) const;
  struct Place {
    const Expr& base;         // never a view; `e` or an operand of a node under it
    std::int64_t offset = 0;  // bytes
  };
  Place resolve(const Expr& e) const;
  Place resolve(Expr&&) const = delete;
  const RowShares& shares() const { return shares_; }

 private:
  const PlacementMap& placement_;
  const RowShares& shares_;
};

}  // namespace syncline
