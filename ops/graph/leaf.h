// The leaves of a graph: placeholders (fed), variables (stored) and constants (fixed).
#pragma once

#include <memory>

#include "ops/graph/op.h"
#include "syncline/array.h"
#include "syncline/expr.h"

namespace syncline {

class VariableState;  // the storage (syncline/backend/variable.h); a graph only points to it

struct Placeholder {
  static constexpr std::string_view kName = "placeholder";
  static constexpr bool kLeaf = true;
  struct Attrs {
    DType dtype = DType::kFloat32;
    Shape shape;
    std::uint64_t key = 0;  // distinguishes placeholders of equal shape
  };
  static constexpr auto fields =
      std::tuple{field("dtype", &Attrs::dtype), field("shape", &Attrs::shape), field("key", &Attrs::key)};
  static Meta infer(const Attrs& a, std::span<const Meta>) { return {a.dtype, a.shape}; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }  // the strategy places feeds
  static constexpr NoGradient grad{"a placeholder has no inputs"};
};

struct VariableLeaf {
  static constexpr std::string_view kName = "variable";
  static constexpr bool kLeaf = true;
  struct Attrs {
    std::shared_ptr<VariableState> state;
    DType dtype = DType::kFloat32;
    Shape shape;
  };
  static constexpr auto fields = std::tuple{field("dtype", &Attrs::dtype), field("shape", &Attrs::shape)};
  static Meta infer(const Attrs& a, std::span<const Meta>) { return {a.dtype, a.shape}; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static constexpr NoGradient grad{"a variable has no inputs"};
};

// Every rank holds the same value.
struct Constant {
  static constexpr std::string_view kName = "constant";
  static constexpr bool kLeaf = true;
  struct Value {
    Array array;
    std::string describe() const;  // dtype, shape and a digest of the bytes
  };
  struct Attrs {
    std::shared_ptr<const Value> value;
  };
  static constexpr auto fields = std::tuple{field("value", &Attrs::value)};
  static Meta infer(const Attrs& a, std::span<const Meta>) { return {a.value->array.dtype(), a.value->array.shape()}; }
  static Placed place(const Attrs&, const PlaceArgs& args) { return gathered(args); }
  static constexpr NoGradient grad{"a constant has no inputs"};
};

Expr constant_of(Array value, std::string name = {});
// Creates a scalar constant of the given dtype.
Expr scalar(double value, DType dtype);
// Stores the value of a one-element constant or of a fill in `value`. Returns false for other expressions.
bool scalar_value(const Expr& e, double& value);

}  // namespace syncline
