// BatchSplit: the positions of an epoch that form a step's batch, and those that a rank owns.
#pragma once

#include <algorithm>
#include <cstdint>

namespace syncline::io {

struct Positions {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

// Ranks get the same rows of a batch as when the runtime splits a feed given to all ranks (if every rank gets at
// least one), so both give the same bits. With parts of the batch, a rank has several shares.
struct BatchSplit {
  std::int64_t rows = 0, batch = 1;
  std::int64_t rank = 0, ranks = 1, shares = 1;

  // Written to avoid overflow for any batch.
  std::int64_t steps() const { return rows / batch + (rows % batch > 0 ? 1 : 0); }
  Positions global(std::int64_t step) const {
    const std::int64_t begin = step * batch;
    return {begin, begin + std::min(batch, rows - begin)};
  }
  Positions own(std::int64_t step) const {
    const auto [begin, end] = global(step);
    return {begin + (end - begin) * rank / ranks, begin + (end - begin) * (rank + shares) / ranks};
  }
  std::int64_t largest_own() const { return (std::min(batch, rows) * shares + ranks - 1) / ranks; }
};

}  // namespace syncline::io
