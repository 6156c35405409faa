// What the bodies of loops and branches have in common: each is a graph of its own, whose placeholders stand for values
// from outside.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

using BodyMetas = std::unordered_map<const Node*, std::vector<Meta>>;

inline const Meta& meta_of(const BodyMetas& metas, const Expr& e) {
  return metas.at(&e.node())[static_cast<std::size_t>(e.output())];
}

// What is known of every value under `roots` if the placeholders `leaves` are as `metas` say. Throws DTypeError, naming
// `op`, if a leaf has another dtype, and what the operations throw.
BodyMetas infer_under(std::string_view op, std::span<const Expr> roots, std::span<const Expr> leaves,
                      std::span<const Meta> metas);

// The nodes under `roots` in words, the same on every rank. `names` holds the leaves' and receives the others'.
using BodyNames = std::unordered_map<const Node*, std::string>;
void name_leaves(BodyNames& names, std::span<const Expr> leaves, std::string_view prefix);
std::string describe_nodes(BodyNames& names, std::span<const Expr> roots);
std::string name_of(const BodyNames& names, const Expr& e);

// Whether it matters how often a node is computed: it, or a part of its body, draws random numbers or has an effect.
bool is_repeatable(const Node& node);
// Whether something under `roots`, also in bodies, has an effect.
bool has_effect(std::span<const Expr> roots);

// A number of the body's own, whose first node has the id `first`. Floating numbers from outside are captured like any
// value, since somebody may ask for their gradient; a plan makes them constants again.
bool is_own_number(const Expr& e, std::uint64_t first);

// A placeholder for a value of the same dtype and shape.
Expr stand_in(const Expr& value);

}  // namespace syncline
