// BatchReader: the batches of a data set. Which rows are in a batch, and in which order, depends on (seed, epoch, step)
// and the options alone: a resumed run meets the rows that the unbroken one would have met, and the ranks of a job meet
// together those of one process.
//
// A data set that fits into `memory` is read once, when the reader is made. One that does not is read from its files,
// a row at a time (Shuffle::kRows), in stretches (kNone), or a window at a time (kBlocks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "io/data/batch_split.h"
#include "io/data/row_order.h"
#include "io/data/shuffle_window.h"
#include "io/data/source.h"

namespace syncline::io {

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
  // Batches that are made before they are asked for (io/data/loader.h); 0: none, and no thread.
  std::int64_t prefetch = 2;
};

// An array a column of the source.
using Batch = std::vector<Array>;

class BatchReader {
 public:
  // Throws ValueError for options that make no sense, and if they need more than `memory`; IoError from reading.
  BatchReader(std::unique_ptr<Source> source, const LoaderOptions& options);

  const std::vector<Column>& columns() const { return source_->columns(); }
  std::int64_t rows() const { return split_.rows; }
  // Of an epoch.
  std::int64_t steps() const { return split_.steps(); }

  // Step 0 .. steps()-1 of an epoch from 0. Quick if steps are asked for in order. The batch is the caller's. Throws
  // ValueError for a step there is not, IoError from reading. For one thread at a time.
  Batch read(std::int64_t epoch, std::int64_t step);

 private:
  std::vector<std::int64_t> rows_at(std::int64_t epoch, Positions positions);
  void gather(std::span<const std::int64_t> rows, Batch& batch);

  std::unique_ptr<Source> source_;
  BatchSplit split_;
  RowOrder order_;
  std::optional<ShuffleWindow> shuffled_;  // for kBlocks and what does not fit
  std::vector<Array> all_;                 // the data set, if it fits
  RowOrder::Window window_;                // whose order window_rows_ is
  std::vector<std::int64_t> window_rows_;
};

}  // namespace syncline::io
