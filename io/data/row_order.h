// RowOrder: maps positions of an epoch to rows. It is a pure function of the epoch and the constructor's arguments, so
// resumed runs and runs with other numbers of ranks read the same rows.
#pragma once

#include <cstdint>
#include <vector>

#include "syncline/data/options.h"

namespace syncline::io {

// Positions are divided into windows, each with its own order. With kRows the window is the epoch. Not thread-safe.
class RowOrder {
 public:
  // Throws ValueError if a count is not positive (rows: negative).
  RowOrder(std::int64_t rows, Shuffle shuffle, std::uint64_t seed, BlockShuffle blocks = {});

  struct Window {
    std::int64_t epoch = -1, begin = 0, end = 0;  // positions
    friend bool operator==(const Window&, const Window&) = default;
  };
  // The window of `position`, which must be below the number of rows. Throws ValueError for a negative epoch.
  Window window_of(std::int64_t epoch, std::int64_t position);
  // The rows at the positions of a window, in order.
  std::vector<std::int64_t> rows_of(const Window& window);
  // With kBlocks, the largest number of positions in a window.
  std::int64_t largest_window() const;

 private:
  void begin_epoch(std::int64_t epoch);
  std::int64_t rows_of_block(std::int64_t block) const;

  std::int64_t rows_;
  Shuffle shuffle_;
  std::uint64_t seed_;
  BlockShuffle blocks_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> block_order_;    // of epoch_
  std::vector<std::int64_t> window_begins_;  // positions; then the end of the last window
};

}  // namespace syncline::io
