// Layers: for profiles, the layer that a value belongs to. The layer of a variable is the scope of its name.
#pragma once

#include <string>

#include "ops/graph/value_map.h"

namespace syncline {

// What the placeholders of a loop's body stand for. Empty outside loops.
struct Layers {
  std::string loop;             // the loop's layer, for steps that read no variable
  ValueMap<std::string> feeds;  // placeholders that stand for variables, or for values computed from one variable
};

// "dense_1" of dense_1/kernel; "" if the name has no scope.
std::string scope_of(const std::string& variable);

// The layer of a variable or of a value computed from one variable alone, such as a packed matrix; "" for others.
std::string layer_of(const Expr& value, const Layers& layers);

}  // namespace syncline
