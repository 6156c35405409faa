// The elements of small integer tensors that are known while a graph is built: those of constants, and the sizes in
// shapes and in what is made from shapes (ops with a member `known_elements`).
//
// Pure. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "syncline/expr.h"

namespace syncline {

// The elements of a tensor in C order, nullopt for those that are not known. Empty: none is known.
using KnownElements = std::vector<std::optional<std::int64_t>>;

// Empty for tensors that are not integers, have more than 64 elements, or follow from constants and shapes by more than
// 1,000 ops.
KnownElements known_elements(const Expr& e);

// Appends the elements of a constant or a fill. Returns false for other tensors.
bool read_numbers(const Expr& e, std::vector<std::int64_t>& numbers);

}  // namespace syncline
