// Chunks: many short arrays in a few allocations. Elements keep their addresses when more are added and when the owner
// moves. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace syncline {

template <class T>
class Chunks {
 public:
  Chunks() = default;
  Chunks(Chunks&&) = default;  // a copy would leave the spans with the old owner
  Chunks& operator=(Chunks&&) = default;

  // Adds the array make(0), ..., make(count - 1). Valid until the Chunks end.
  template <class Make>
  std::span<const T> add(std::size_t count, const Make& make) {
    if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < count)
      chunks_.emplace_back().reserve(std::max(count, kChunk));
    std::vector<T>& chunk = chunks_.back();
    for (std::size_t i = 0; i < count; ++i) chunk.push_back(make(i));
    return std::span(chunk).last(count);
  }

 private:
  static constexpr std::size_t kChunk = 64;
  std::vector<std::vector<T>> chunks_;
};

}  // namespace syncline
