// RowOrder: which row stands at which position of an epoch. A pure function of (seed, epoch) and what it is made of, so
// that resumed runs and other numbers of ranks meet the same rows.
#pragma once

#include <cstdint>
#include <vector>

#include "syncline/data/options.h"

namespace syncline::io {

// Positions come in windows, each with an order of its own: with kRows the window is the epoch. Not thread-safe.
class RowOrder {
 public:
  // Throws ValueError if a count is not positive (rows: negative).
  RowOrder(std::int64_t rows, Shuffle shuffle, std::uint64_t seed, BlockShuffle blocks = {});

  struct Window {
    std::int64_t epoch = -1, begin = 0, end = 0;  // positions
    friend bool operator==(const Window&, const Window&) = default;
  };
  // The window with this position, which must be below the number of rows. Throws ValueError for a negative epoch.
  Window window_of(std::int64_t epoch, std::int64_t position);
  // The rows at the positions of a window, from its beginning on.
  std::vector<std::int64_t> rows_of(const Window& window);
  // With kBlocks, the most positions of a window.
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
  std::vector<std::int64_t> window_begins_;  // positions, and the end of the last one
};

}  // namespace syncline::io
