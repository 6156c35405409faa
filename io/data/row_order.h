// RowOrder: which row stands at which position of an epoch. A pure function of (seed, epoch) and what it is made of, so
// that resumed runs and other numbers of ranks meet the same rows.
#pragma once

#include <cstdint>
#include <vector>

namespace syncline::io {

enum class Shuffle {
  kNone,    // the file's order
  kRows,    // every order of the rows is equally likely: epoch_order (io/data_order.h), 8 bytes a row
  kBlocks,  // for what does not fit in memory: see BlockShuffle
};

// The rows are cut into blocks of neighbours, the blocks are put into a random order, and the rows of `window` blocks
// in a row of this order are shuffled among each other. So a disk is read in long stretches.
//
// What it costs in randomness: rows of one block are always met in the same window, 1/windows of an epoch apart at
// most. Where a file is sorted (by label, by day), a batch sees the mixture of the `window` blocks that its window
// happens to hold, not that of the data set: take many small blocks, or shuffle the file once.
struct BlockShuffle {
  std::int64_t block = 256;   // rows of a block
  std::int64_t window = 256;  // blocks that are shuffled together
};

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
