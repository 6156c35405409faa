// Print: identity that writes its value. The plan keeps it where its value is used, once.
#pragma once

#include <string>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// Inputs: x, and x again: the output is the first, wherever its rows are; what is written is the second, whole.
struct Print {
  static constexpr std::string_view kName = "print";
  static constexpr bool kInPlace = true;
  static constexpr bool kTakesFloat16 = true;
  static constexpr bool kEffect = true;
  struct Attrs {
    std::string message;
  };
  static constexpr auto fields = std::tuple{field("message", &Attrs::message)};
  static Meta infer(const Attrs&, std::span<const Meta> in) { return in[0]; }
  static Placed place(const Attrs&, const PlaceArgs& args);
  // Whoever writes the text may throw.
  static bool may_refuse(const Attrs&, std::span<const Meta>) { return true; }
  static void run(const Attrs& a, const KernelArgs& k);
  static std::vector<Expr> grad(const Attrs&, const Expr&, const Expr& dy) { return {dy, Expr{}}; }
};

// The roots with every print replaced by what it prints.
std::vector<Expr> without_prints(const std::vector<Expr>& roots);

}  // namespace syncline
