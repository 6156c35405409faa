// ValueMap, ValueSet: flat hash tables keyed by values of graphs. They do not own their keys; ids are never reused, so
// an entry of a freed value is never found again. References to entries are valid until the next insertion. Iteration
// has no order that ranks may rely on. Not thread-safe.
#pragma once

#include <tsl/hopscotch_map.h>
#include <tsl/hopscotch_set.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "syncline/expr.h"

namespace syncline {

struct ValueKey {
  std::uint64_t node;
  int output;
  ValueKey(const Expr& e) : node(e ? e.node().id : 0), output(e.output()) {}
  ValueKey(const Node& n) : node(n.id), output(0) {}  // of nodes, or of the values of nodes with one output
  friend bool operator==(const ValueKey&, const ValueKey&) = default;

  // Eight consecutive nodes have neighbouring places, because passes walk graphs in order.
  struct Hash {
    std::size_t operator()(const ValueKey& key) const {
      const std::uint64_t block = (key.node >> 3) + (static_cast<std::uint64_t>(key.output) << 32);
      return (block * 0x9e3779b97f4a7c15ULL >> 32 << 3) + (key.node & 7);
    }
  };
};

using ValueSet = tsl::hopscotch_set<ValueKey, ValueKey::Hash>;

template <class T>
class ValueMap {
 public:
  // Null if absent.
  const T* find(const ValueKey& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  T* find(const ValueKey& key) { return const_cast<T*>(std::as_const(*this).find(key)); }
  T value_or(const ValueKey& key, const T& fallback) const {
    const T* found = find(key);
    return found == nullptr ? fallback : *found;
  }
  bool contains(const ValueKey& key) const { return entries_.contains(key); }
  const T& at(const ValueKey& key) const { return entries_.at(key); }
  T& operator[](const ValueKey& key) { return entries_[key]; }
  // The entry, and whether it is new. Makes a new entry of `args`.
  template <class... Args>
  std::pair<T&, bool> try_emplace(const ValueKey& key, Args&&... args) {
    const auto [place, fresh] = entries_.try_emplace(key, std::forward<Args>(args)...);
    return {place.value(), fresh};
  }
  void reserve(std::size_t count) { entries_.reserve(count); }
  void clear() { entries_.clear(); }

 private:
  tsl::hopscotch_map<ValueKey, T, ValueKey::Hash> entries_;
};

}  // namespace syncline
