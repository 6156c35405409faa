// Helpers for the bodies of loops and branches. A body is a separate graph; its placeholders represent outside values.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

struct RandomOp;

using BodyMetas = std::unordered_map<const Node*, std::vector<Meta>>;

inline const Meta& meta_of(const BodyMetas& metas, const Expr& e) {
  return metas.at(&e.node())[static_cast<std::size_t>(e.output())];
}

// Infers the metas of all values under `roots`, given the metas of the placeholders `leaves`. Throws DTypeError, naming
// `op`, if a leaf has another dtype, and whatever the operations' `infer` throws.
BodyMetas infer_under(std::string_view op, std::span<const Expr> roots, std::span<const Expr> leaves,
                      std::span<const Meta> metas);

// Describes the nodes under `roots` as text that is equal on all ranks. `names` holds the names of the leaves on entry;
// the names of the other nodes are added.
using BodyNames = std::unordered_map<const Node*, std::string>;
void name_leaves(BodyNames& names, std::span<const Expr> leaves, std::string_view prefix);
std::string describe_nodes(BodyNames& names, std::span<const Expr> roots);
std::string name_of(const BodyNames& names, const Expr& e);

// True if a node may be computed any number of times: neither the node nor its body draws random numbers or has an
// effect.
bool is_repeatable(const Node& node);
// True if any node under `roots`, or in a nested body, has an effect.
bool has_effect(std::span<const Expr> roots);
// The random operations under `roots` and in nested bodies, in the order of a walk from the roots to their inputs:
// equal graphs have equal orders, in whatever order their nodes were made. The nodes own them.
std::vector<RandomOp*> random_ops_under(std::span<const Expr> roots);

// True for a constant that belongs to the body, whose first node has the id `first`. A floating constant from outside
// is captured like any other value, because its gradient may be requested; a plan turns it back into a constant.
bool is_own_number(const Expr& e, std::uint64_t first);

// Creates a placeholder with the dtype and shape of `value`.
Expr stand_in(const Expr& value);

}  // namespace syncline
