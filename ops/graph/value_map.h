// ValueMap, ValueSet: tables keyed by values of graphs. They do not own their keys; ids are never reused, so an entry of
// a freed value is never found again. References to entries are valid until the entry's map is cleared or ends. Not
// thread-safe.
//
// Consecutive nodes share a page, because a graph's ids are dense and passes walk graphs in order: the table of pages
// stays in the cache where a hash table of values does not.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "syncline/expr.h"

namespace syncline {

struct ValueKey {
  std::uint64_t node;
  int output;
  ValueKey(const Expr& e) : node(e ? e.node().id : 0), output(e.output()) {}
  ValueKey(const Node& n) : node(n.id), output(0) {}  // of nodes, or of the values of nodes with one output

  // The page, and the entry within it. Further outputs have pages of their own.
  template <std::size_t kPage>
  std::pair<std::uint64_t, std::size_t> place() const {
    return {node / kPage + (static_cast<std::uint64_t>(output) << 40), node % kPage};
  }
};

class ValueSet {
 public:
  ValueSet() = default;
  template <class Iterator>
  ValueSet(Iterator begin, Iterator end) {
    insert(begin, end);
  }

  // True if the key is new.
  bool insert(const ValueKey& key) {
    const auto [page, entry] = key.place<kPage>();
    auto bit = pages_[page][entry];
    if (bit) return false;
    bit = true;
    return true;
  }
  template <class Iterator>
  void insert(Iterator begin, Iterator end) {
    for (; begin != end; ++begin) insert(*begin);
  }
  bool contains(const ValueKey& key) const {
    const auto [page, entry] = key.place<kPage>();
    const auto found = pages_.find(page);
    return found != pages_.end() && found->second[entry];
  }
  bool empty() const { return pages_.empty(); }

 private:
  static constexpr std::size_t kPage = 64;
  std::unordered_map<std::uint64_t, std::bitset<kPage>> pages_;
};

template <class T>
class ValueMap {
 public:
  // Null if absent.
  const T* find(const ValueKey& key) const {
    const auto [page, entry] = key.place<kPage>();
    const auto found = pages_.find(page);
    if (found == pages_.end() || !found->second[entry]) return nullptr;
    return &*found->second[entry];
  }
  T* find(const ValueKey& key) { return const_cast<T*>(std::as_const(*this).find(key)); }
  T value_or(const ValueKey& key, const T& fallback) const {
    const T* found = find(key);
    return found == nullptr ? fallback : *found;
  }
  bool contains(const ValueKey& key) const { return find(key) != nullptr; }
  // Throws std::bad_optional_access or std::out_of_range if absent.
  const T& at(const ValueKey& key) const {
    const auto [page, entry] = key.place<kPage>();
    return pages_.at(page)[entry].value();
  }
  T& operator[](const ValueKey& key) { return try_emplace(key).first; }
  // The entry, and whether it is new. Makes a new entry of `args`.
  template <class... Args>
  std::pair<T&, bool> try_emplace(const ValueKey& key, Args&&... args) {
    const auto [page, entry] = key.place<kPage>();
    std::optional<T>& value = pages_[page][entry];
    const bool fresh = !value;
    if (fresh) value.emplace(std::forward<Args>(args)...);
    return {*value, fresh};
  }
  void clear() { pages_.clear(); }

 private:
  static constexpr std::size_t kPage = 32;
  std::unordered_map<std::uint64_t, std::array<std::optional<T>, kPage>> pages_;
};

}  // namespace syncline
