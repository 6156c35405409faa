// Print: identity that writes its value. The plan runs it exactly once if its value is used.
#pragma once

#include <string>
#include <vector>

#include "ops/graph/op.h"

namespace syncline {

// Inputs: x twice. The output is the first input in its current placement; the second input is gathered and written.
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
  // The text writer may throw.
  static bool may_throw(const Attrs&, std::span<const Meta>) { return true; }
  static void run(const Attrs& a, const KernelArgs& k);
  static std::vector<Expr> grad(const Attrs&, const Expr&, const Expr& dy) { return {dy, Expr{}}; }
};

// Returns the roots with every print replaced by its input.
std::vector<Expr> without_prints(const std::vector<Expr>& roots);

}  // namespace syncline
