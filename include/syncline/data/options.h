// Options that determine the batches of a data set: their size, their rows, and how rows are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "syncline/array.h"

#pragma GCC visibility push(default)
namespace syncline::io {

enum class Shuffle {
  kNone,    // the file's order
  kRows,    // all orders equally likely: epoch_order (io/data/data_order.h), 8 bytes per row
  kBlocks,  // for data larger than memory: see BlockShuffle
};

// Cuts the rows into blocks of adjacent rows, shuffles the blocks, and shuffles the rows within each window of `window`
// consecutive shuffled blocks. The disk is then read in long runs.
//
// The cost is less randomness: rows of one block always share a window, so they are at most 1/windows of an epoch
// apart. In a sorted file (by label, by day), a batch sees the mixture of its window's blocks, not that of the data
// set: use many small blocks, or shuffle the file once.
struct BlockShuffle {
  std::int64_t block = 256;   // rows per block
  std::int64_t window = 256;  // blocks per window
};

struct LoaderOptions {
  std::int64_t batch = 32;  // rows of the global batch; an epoch's last batch may be smaller
  Shuffle shuffle = Shuffle::kRows;
  BlockShuffle blocks = {};  // for Shuffle::kBlocks
  std::uint64_t seed = 0;
  // Read only this rank's rows of each batch, for local feeds: rank r of n. 0 of 1 reads the global batch. With parts
  // of the batch set all three: the rank's first part, the number of parts, and how many of them the rank has
  // (first_parts in syncline/distributed/data_parallel.h). No rank reads the rows of shares that are missing.
  std::int64_t rank = 0, ranks = 1, shares = 1;
  std::int64_t rows = 0;  // use only the first `rows` rows of the data set; 0: all
  // Maximum bytes of rows held in memory, prefetched batches included. It affects how rows are read, not which.
  std::size_t memory = std::size_t{1} << 30;
  // Batches to prefetch (syncline/data/loader.h); 0: none, and no thread.
  std::int64_t prefetch = 2;
};

// One array per column of the source.
using Batch = std::vector<Array>;

}  // namespace syncline::io
#pragma GCC visibility pop
