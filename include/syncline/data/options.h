// What decides the batches of a data set: how large they are, which rows are in them, how they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "syncline/array.h"

namespace syncline::io {

enum class Shuffle {
  kNone,    // the file's order
  kRows,    // every order of the rows is equally likely: epoch_order (io/data/data_order.h), 8 bytes a row
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

struct LoaderOptions {
  std::int64_t batch = 32;  // rows of the global batch; the last one of an epoch may be smaller
  Shuffle shuffle = Shuffle::kRows;
  BlockShuffle blocks = {};  // for Shuffle::kBlocks
  std::uint64_t seed = 0;
  // This rank's rows of each batch only, for feeds that are local: rank r of n. 0 of 1 is the global batch.
  std::int64_t rank = 0, ranks = 1;
  std::int64_t rows = 0;  // the first so many rows are the data set; 0: all
  // The most bytes of rows that are held, prefetched batches included. It decides how rows are read, not which.
  std::size_t memory = std::size_t{1} << 30;
  // Batches that are made before they are asked for (syncline/data/loader.h); 0: none, and no thread.
  std::int64_t prefetch = 2;
};

// An array a column of the source.
using Batch = std::vector<Array>;

}  // namespace syncline::io
