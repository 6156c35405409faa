// InPhase: the choice between a training and a test branch. The plan looks for it to prune the branch not taken before
// anything else is computed (that branch may need feeds which nobody gives).
#pragma once

#include "ops/op.h"

namespace syncline {

struct InPhase {
  static constexpr std::string_view kName = "in_phase";
  using Attrs = NoAttrs;
  static constexpr std::tuple<> fields{};
  static Meta infer(const Attrs&, std::span<const Meta> in);
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static Expr simplify(const Attrs&, std::span<const Expr> in, const Meta&);
  static std::vector<Expr> grad(const Attrs&, const Expr& y, const Expr& dy);
};

}  // namespace syncline
